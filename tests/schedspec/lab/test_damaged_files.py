"""Each command that reads files refuses damaged ones: no traceback, at most 1 GB and 30 seconds of CPU time.

What it prints about them controls no terminal.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import resource
import shlex
import shutil
import signal
import socket
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from schedspec import cli, results
from schedspec.ci.sharding import SHARD_FILE
from schedspec.report import record
from schedspec.scheduler.model.printable import printable
from schedspec.virtual.state.renaming import NameRow
from tests.schedspec.lab.plan.test_plan import POLICY, queue, write_state
from tests.schedspec.lab.plan.test_submitted import vcjob
from tests.schedspec.lab.recorder import story
from tests.schedspec.lab.simulate.test_synthetic import LOAD
from tests.support.damage import damaged_lines, damaged_text
from tests.support.scene import reclaim

FEATURES = Path(__file__).parents[3] / "features"
MANIFESTS = "queues/a.json manifests.yaml"
TRACE = "when,secs,gpus,team\n100,60,4,a\n110,30,1,b\n120,30,8,a\n"
LOADED = "simulate --nodes 2x8 --map submitted=when,duration=secs,job_cards=gpus,queue=team --no-monitors"
BOTH = "--sweep policy.yaml --sweep other.yaml"
PLAN = "plan --model --max-age 100000d --load none --out out/plan"
WAITS = "reduce {} --because 'job t/new waits' --cases 1 -o out/x.feature"
COMMANDS = {
    "check PATHS": ("check {}", f"first_job.feature policy.yaml {MANIFESTS}"),
    "ci --join": ("ci --join run --out out/ci", "run/*.json"),
    "conformance --from": ("conformance --from run --out out/conformance", "run/results.json"),
    "judge FOLDER": ("judge recording", "recording/*.gz"),
    "judge --policy": ("judge recording --policy {}", "policy.yaml"),
    "matrix RUNS": ("matrix run --out out/matrix", "run/results.json"),
    "names TABLE": ("names {} plan.txt", "names.jsonl"),
    "names TEXT": ("names names.jsonl {}", "plan.txt"),
    "plan --state": (f"{PLAN} --state {{}} --proposed queues", "state.json"),
    "plan --now": (f"{PLAN} --state state.json --now queues --proposed proposed", "queues/a.json"),
    "plan --proposed": (f"{PLAN} --state state.json --proposed proposed", "proposed/*"),
    "plan --submit": (f"{PLAN} --state state.json --submit {{}}", "job.json"),
    "reduce STATE": (WAITS, "state.json"),
    "reduce --policy": (f"{WAITS.format('state.json')} --policy {{}}", "policy.yaml"),
    "report DIRECTORIES": ("report run -o out/report.html --perfetto out/p.json", "run/*.json run/scenarios/*/*.json"),
    "report --against": ("report run -o out/report.html --against before", "before/results.json"),
    "scheduler explain RECORDING": ("explain {} job load/job-2", "cycles/*.gz"),
    "scheduler lint --queues": ("lint policy.yaml --queues {}", MANIFESTS),
    "scheduler replay RECORDING": ("replay {}", "cycles/*.gz"),
    "scheduler replay --policy": ("replay cycles --policy {}", "policy.yaml"),
    "simulate --against": (f"{LOADED} --trace trace.csv --out out/r --against {{}}", "result.jsonl"),
    "simulate --join": ("simulate --join sweep", "sweep/*"),
    "simulate --policy": (f"{LOADED} --trace trace.csv --out out/r --policy {{}}", "policy.yaml"),
    "simulate --queues": (f"{LOADED} --trace trace.csv --out out/r --queues {{}}", MANIFESTS),
    "simulate --state": ("simulate --state {} --out out/r", "state.json"),
    "simulate --sweep": (f"{LOADED} --trace trace.csv --out out/sweep {BOTH} --index 1", "other.yaml"),
    "simulate --synthetic": ("simulate --nodes 2x8 --out out/r --until 2h --synthetic {}", "load.yaml"),
    "simulate --trace": (f"{LOADED} --out out/r --trace {{}}", "trace.csv"),
    "who evicted --recording": ("who evicted team/train-0 --recording recording", "recording/*.gz"),
    "why --recording": ("why new --state {}", "state.json cycles/*.gz"),
    "why --policy": ("why new --state state.json --policy {}", "policy.yaml"),
}
"""Option or argument → a command that reads its files, with `{}` for the damaged one, and which files are damaged."""
WRITTEN = {"--out", "-o", "--output", "--page", "--record", "--perfetto", "--cucumber-messages", "--names"}
NOT_HERE = {
    *(f"{command} --kubeconfig" for command in ("dump", "record", "scheduler run", "scheduler controllers")),
    *("dump --policy", "record --policy", "scheduler run --policy"),  # they need a cluster; the policy's reader is here
    *("plan --scheduler-binaries", "check --scheduler-binaries", "binary --binaries", "up --binaries"),  # programs
    *("up --kind-config", "scheduler lint --definitions", "init FOLDER", "plan --features"),  # read by other programs
}


def parameters() -> Iterator[str]:
    """Yield the options and arguments of all commands that name files or folders."""
    pending: list[tuple[str, click.Command]] = [("", cli.schedspec)]
    while pending:
        name, command = pending.pop()
        if isinstance(command, click.Group):
            context = click.Context(command)
            inner = ((one, command.get_command(context, one)) for one in command.list_commands(context))
            pending += [(f"{name} {one}".strip(), found) for one, found in inner if found is not None]
            continue
        for option in command.params:
            if isinstance(option.type, click.Path | click.File):
                is_option = isinstance(option, click.Option)
                yield f"{name} {option.opts[-1] if is_option else str(option.name).upper()}"


def test_every_option_that_names_files_is_in_the_table() -> None:
    read = {one for one in parameters() if one.rpartition(" ")[2] not in WRITTEN}
    assert read - NOT_HERE <= COMMANDS.keys()


def run(words: str) -> tuple[int, str]:
    """Run a command in this process; return its exit status and what it prints. A defect raises its error."""
    done = CliRunner().invoke(cli.schedspec, shlex.split(words), standalone_mode=False)
    if isinstance(done.exception, click.ClickException):
        return done.exception.exit_code, done.output + done.exception.format_message()
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.return_value or done.exit_code, done.output


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the working directory, with one real input of each kind."""
    folder = tmp_path_factory.mktemp("inputs")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name in ("queues", "proposed", "run", "before", "recording", "out"):
            Path(name).mkdir()
        write_state(folder)
        for name, cards in (("queues", 1), ("proposed", 2)):
            Path(name, "a.json").write_text(json.dumps(queue("a", cards)))
        for name in ("policy.yaml", "other.yaml", "proposed/policy.yaml"):
            Path(name).write_text(POLICY)
        shutil.copy(FEATURES / "lifecycle" / "first_job.feature", ".")
        shutil.copy(sorted((FEATURES / "manifests").glob("*.yaml"))[0], "manifests.yaml")
        Path("trace.csv").write_text(TRACE)
        Path("load.yaml").write_text(LOAD)
        Path("job.json").write_text(json.dumps(vcjob(2)))
        rows = [NameRow("queues", name, f"a000000{at}") for at, name in enumerate("ab")]
        Path("names.jsonl").write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
        Path("plan.txt").write_text("queue a0000000 waits for a0000001\n")
        one = results.Result(feature="f.feature", scenario="s", example={}, level="core", run=1, verdict="passed")
        found = results.RunResults(scheduler="x", version="v1", kubernetes="v1", cluster="embedded", results=[one])
        for name in ("run", "before"):
            Path(name, results.FILE).write_bytes(msgspec.json.encode(found))
        Path("run", SHARD_FILE).write_text('{"shard": 1, "of": 1, "suite": "x", "scenarios": 1}')
        record.write(reclaim(), Path("run", "scenarios", "reclaim"))
        story.tell(Path("recording"))
        for words in ("--out result.jsonl --policy policy.yaml --record cycles", f"--out sweep {BOTH}"):
            status, output = run(f"{LOADED} --trace trace.csv {words}")
            assert status == 0, output
        yield folder


@pytest.mark.parametrize("name", COMMANDS)
@given(data=st.data())
@settings(max_examples=settings().max_examples // 20)
def test_a_damaged_file_never_ends_in_a_traceback(inputs: Path, name: str, data: st.DataObject) -> None:
    words, patterns = COMMANDS[name]
    path = data.draw(st.sampled_from(sorted(file for one in patterns.split() for file in inputs.glob(one))))
    content = path.read_bytes()
    plain = zlib.decompressobj(wbits=31).decompress(content) if path.suffix == ".gz" else content  # may lack its end
    if "json" in path.name and data.draw(st.booleans()):
        plain = damaged_lines(data, plain)
    else:
        plain = damaged_text(data, plain.decode()).encode("utf-8", "surrogatepass")
    packed = gzip.compress(plain, compresslevel=1) if path.suffix == ".gz" else plain
    path.write_bytes(packed[: data.draw(st.integers(0, len(packed)) | st.just(len(packed)))])
    began = time.process_time()
    try:
        status, output = run(words.format(path.relative_to(inputs)))
    finally:
        path.write_bytes(content)
    assert status in (0, 1, 2)
    assert "Traceback" not in output
    assert output == printable(output), "what is printed controls no terminal"
    assert time.process_time() - began < 30
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1 << 20, "more than 1 GB"


class TooSlowError(Exception):
    """A command did not end in time."""


def refused_in_time(words: str) -> tuple[int, str]:
    def end(*_: object) -> None:
        raise TooSlowError(words)

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(20)
    try:
        return run(words)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(path.parent):  # the address has at most 108 bytes
        made.bind(path.name)


NO_FILES: dict[str, Callable[[Path], object]] = {
    "a FIFO": os.mkfifo,
    "a socket": make_socket,
    "a character device": lambda path: path.symlink_to("/dev/zero"),
    "no data": lambda path: path.symlink_to("/dev/null"),
    "a folder": Path.mkdir,
    "a link in a circle": lambda path: path.symlink_to(path.name),
    "a link to nowhere": lambda path: path.symlink_to("absent"),
}
LIKE_NONE = ("a folder", "a link in a circle", "a link to nowhere")


@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_not_a_file_is_refused_at_once(inputs: Path, name: str, kind: str) -> None:
    words, patterns = COMMANDS[name]
    if kind in LIKE_NONE and "{}" not in words:
        pytest.skip("in a folder, this is like no file")
    for pattern in patterns.split():
        path = sorted(inputs.glob(pattern))[0]
        path.rename(aside := inputs / "aside")
        NO_FILES[kind](path)
        try:
            status, output = refused_in_time(words.format(path.relative_to(inputs)))
        finally:
            path.rmdir() if kind == "a folder" else path.unlink()
            aside.rename(path)
        assert status in (1, 2), output
        assert path.stem in output
        assert "Traceback" not in output
