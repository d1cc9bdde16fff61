"""Arguments that contradict each other: an option that is given twice, and a file that is read and written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from schedspec import cli
from schedspec.cli import answers


def options() -> Iterator[tuple[str, str]]:
    """Yield each command with each of its options that has one value."""
    pending: list[tuple[str, click.Command]] = [("", cli.schedspec)]
    while pending:
        name, command = pending.pop()
        if isinstance(command, click.Group):
            context = click.Context(command)
            inner = (
                (f"{name} {one}".strip(), command.get_command(context, one)) for one in command.list_commands(context)
            )
            pending += [(full, one) for full, one in inner if one is not None]
        else:
            for option in command.params:
                if isinstance(option, click.Option) and not option.multiple and not option.is_flag:
                    yield name, option.opts[-1]


@pytest.mark.parametrize(("name", "option"), list(options()))
def test_an_option_with_one_value_is_refused_if_it_is_given_twice(
    capsys: pytest.CaptureFixture[str], name: str, option: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main([*name.split(), option, "1", f"{option}=2"])
    assert ended.value.code == 2
    assert f"{option} is given twice, and only one value is read" in capsys.readouterr().err


NUMBERS = {
    (name, option.opts[-1]): option
    for name in ("explore", "reduce", "plan", "simulate")
    for option in cli.schedspec.get_command(click.Context(cli.schedspec), name).params  # type: ignore[union-attr]
    if isinstance(option.type, click.types.IntParamType | click.types.FloatParamType | click.types.FuncParamType)
    and option.opts[-1] not in ("--resource", "--run-time")
}


@pytest.mark.parametrize("value", ["-5", "nan", "1" + "0" * 30, "1e308"])
@pytest.mark.parametrize(("name", "option"), NUMBERS)
def test_a_number_that_counts_nothing_or_that_no_run_can_do_is_refused(
    capsys: pytest.CaptureFixture[str], name: str, option: str, value: str
) -> None:
    needed = {"reduce": (".", "--because", "monitor gang", "-o", "x.feature"), "plan": ("--state", "x")}
    with pytest.raises(SystemExit) as ended:
        cli.main([name, *needed.get(name, ()), f"{option}={value}"])
    assert ended.value.code == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert option in said
    assert re.search("Invalid value|no run|below 0|nothing reads it without", said)


def test_the_arguments_of_pytest_are_not_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["conformance", "--profile", "none", "--out", "a", "--", "--out", "b"])
    assert "given twice" not in capsys.readouterr().err


SIMULATE = ("simulate", "--trace", "t", "--synthetic", "s", "--state", "l", "--policy", "p", "--against", "a")
SIMULATE_MORE = ("--queues", "q", "--queues", "r", "--nodes", "n", "--sweep", "w")
PLAN = ("plan", "--state", "l", "--now", "n", "--proposed", "p", "--load", "t", "--features", "q")
REPORT = ("report", ".", "-o", "r", "--perfetto", "p")
ONE_FILE = [
    *((*SIMULATE, *SIMULATE_MORE, option, file) for option in ("--out", "--page", "--record") for file in "tslpaqrnw"),
    (*SIMULATE, "--out", "o", "--page", "o"),
    (*SIMULATE, "--out", "o", "--record", "o"),
    *((*PLAN, "--out", file) for file in "lnptq"),
    ("reduce", "x.feature", "--because", "monitor gang", "-o", "x.feature"),
    ("reduce", "x", "--because", "monitor gang", "--policy", "y.feature", "-o", "./y.feature"),
    ("report", ".", "-o", "results.json"),
    ("report", ".", "--perfetto", "run.json"),
    (*REPORT, "--cucumber-messages", "r"),
    (*REPORT, "--cucumber-messages", "p"),
    ("dump", "--policy", "p", "--out", "p"),
    ("dump", "--redact", "--names", "p", "--out", "p"),
    ("dump", "--kubeconfig", "p", "--out", "p"),
]


OF_PEOPLE = [
    *((*("report", "y"), option, "{}") for option in ("-o", "--perfetto", "--cucumber-messages")),
    *(
        ("simulate", "--synthetic", "uniform", "--nodes", "1x8", option, "{}")
        for option in ("--out", "--page", "--record")
    ),
    *(("dump", "--redact", option, "{}") for option in ("--out", "--names")),
]


@pytest.mark.parametrize("suffix", answers.OF_PEOPLE)
@pytest.mark.parametrize("arguments", OF_PEOPLE, ids=" ".join)
def test_no_command_overwrites_a_file_that_people_write(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    suffix: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "y").mkdir()
    (file := tmp_path / f"mine{suffix}").write_text("mine")
    with pytest.raises(SystemExit) as ended:
        cli.main([*arguments[:-1], file.name])
    assert ended.value.code in (1, 2)
    assert f"{arguments[-2]}: {file.name} exists" in capsys.readouterr().err
    assert file.read_text() == "mine"


@pytest.mark.parametrize("arguments", ONE_FILE, ids=" ".join)
def test_no_command_writes_a_file_that_it_reads_or_one_file_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in arguments[-1].removeprefix("./"), "y.feature", "x.feature":
        folder = arguments[0] == "plan" and name == arguments[-1]
        (tmp_path / name).mkdir() if folder else (tmp_path / name).write_text("mine")
    if arguments[0] == "plan":
        (tmp_path / "q").mkdir(exist_ok=True)
    with pytest.raises(SystemExit) as ended:
        cli.main([*arguments])
    assert ended.value.code in (1, 2)
    assert "is the file of" in capsys.readouterr().err
    assert all(file.read_text() == "mine" for file in tmp_path.iterdir() if file.is_file())


def test_a_run_counts_once_in_a_matrix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["matrix", str(tmp_path), f"{tmp_path}/../{tmp_path.name}"])
    assert ended.value.code == 1
    assert "a RUN is named twice" in capsys.readouterr().err


def test_two_spellings_of_one_option_are_told_apart_from_one_given_twice(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["why", "job", "--state", "x", "--recording", "y"])
    assert "--state and --recording are one option, and only one value is read" in capsys.readouterr().err


READERS = {"dump": ("dump",), "record": ("record", "--out", "x"), "why": ("why", "job")}


@pytest.mark.parametrize("kubeconfig", ["", "missing", "missing:gone"])
@pytest.mark.parametrize("command", READERS)
def test_a_command_that_reads_a_cluster_says_that_none_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, kubeconfig: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(SystemExit) as ended:
        cli.main([*READERS[command]])
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert "no cluster is named: " in said
    assert (kubeconfig.partition(":")[0] or str(tmp_path / ".kube" / "config")) in said
    assert "do next: set KUBECONFIG to the file that kubectl uses" in said
    assert not [*tmp_path.iterdir()]
