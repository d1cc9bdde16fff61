"""Results of other machines are read with limits: the error names the invalid file and never quotes its content."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from schedspec.api.errors import HarnessError
from schedspec.api.untrusted import MAX_BYTES
from schedspec.ci import github, joined
from schedspec.report import cucumber, record
from tests.support.scene import reclaim

ROOT = Path(__file__).parents[3]
DIGITS = "9" * 5000
ROW = {"feature": "a.feature", "node_id": "a.feature::n", "verdict": "failed"}
RESULTS = {
    "time that is not a number": {"seconds": "soon"},
    "time of 5,000 digits": {"seconds": int(DIGITS[:4000])},
    "infinite time": {"seconds": 1e400},
    "line of 5,000 digits": {"places": [{"path": "a.feature", "line": int(DIGITS[:4000]), "text": ""}]},
    "place without a line": {"places": [{"path": "a.feature", "text": ""}]},
    "path of 5,000 letters": {"places": [{"path": DIGITS, "line": 1, "text": ""}]},
    "unknown verdict": {"verdict": "perhaps"},
}


def results_of(**row: Any) -> bytes:
    """Return the results of a run with one row."""
    run = {"scheduler": "s", "version": "", "kubernetes": "", "cluster": "", "results": [{**ROW, **row}]}
    return json.dumps(run).encode()


JSON = {
    "numbers of 5,000 digits": f'{{"shard": {DIGITS}, "of": 2, "suite": "x", "scenarios": 1}}',
    "too many shards": '{"shard": 1, "of": 99999999999, "suite": "x", "scenarios": 1}',
    "not UTF-8": b'{"shard": "\xff"}',
    "deep": "[" * 100_000,
}


@pytest.mark.parametrize("row", RESULTS.values(), ids=RESULTS)
def test_the_error_for_invalid_results_names_the_file(tmp_path: Path, row: dict[str, Any]) -> None:
    (tmp_path / "results.json").write_bytes(results_of(**row))
    with pytest.raises(HarnessError, match=r"results\.json"):
        joined.read([tmp_path])


@pytest.mark.parametrize("content", JSON.values(), ids=JSON)
@pytest.mark.parametrize("name", ["shard.json", "more/results.json"])
def test_the_error_for_an_invalid_json_file_names_the_file(tmp_path: Path, name: str, content: str | bytes) -> None:
    (tmp_path / "results.json").write_bytes(results_of())
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(HarnessError, match=name):
        joined.read([tmp_path])


UNREADABLE: dict[str, Callable[[Path], object]] = {
    "too large": lambda path: path.touch() or os.truncate(path, MAX_BYTES + 1),
    "a FIFO": os.mkfifo,
    "a link": lambda path: path.symlink_to("/etc/hostname"),
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("make", UNREADABLE.values(), ids=UNREADABLE)
@pytest.mark.parametrize("name", ["more/results.json", "shard.json", "scenarios/a/b.json"])
def test_only_regular_files_of_bounded_size_are_read(tmp_path: Path, name: str, make: Callable[[Path], object]) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    make(tmp_path / name)
    (tmp_path / "results.json").write_bytes(results_of())
    read: Callable[..., Any] = record.read_all if name.startswith("scenarios") else joined.read
    with pytest.raises(HarnessError, match=Path(name).name):
        list(read([tmp_path]))


def test_the_text_of_a_failure_cannot_annotate_another_file(tmp_path: Path) -> None:
    text = "x.feature:99999: forged\ndeploy/rbac.feature:1: forged"
    (tmp_path / "results.json").write_bytes(results_of(text=text, why=text))
    assert list(github.annotate(joined.read([tmp_path]))) == []
    places = [{"path": "own.feature", "line": 7, "text": text}]
    (tmp_path / "results.json").write_bytes(results_of(text=text, places=places))
    (line,) = github.annotate(joined.read([tmp_path]))
    assert line.startswith("::error file=own.feature,line=7,")


SECRET = "root:x:0:0"
FILES: dict[str, Callable[[Path], str]] = {
    "above the root": lambda root: _made(root.parent / "secret.feature", root, "../secret.feature"),
    "absolute": lambda root: str(_made(root.parent / "secret.feature", root, root.parent / "secret.feature")),
    "another kind of file": lambda root: _made(root / "secret.txt", root, "secret.txt"),
    "through a link": lambda root: _linked(root, root / "a.feature"),
    "through a folder that is a link": lambda root: _linked_folder(root),  # noqa: PLW0108 - defined below
    "no Gherkin": lambda root: _made(root / "b.feature", root, "b.feature"),
    "a FIFO": lambda root: (os.mkfifo(root / "c.feature"), "c.feature")[1],
    "a name that no file has": lambda root: "a\0b.feature",
}


def _made(path: Path, root: Path, uri: Any) -> Any:
    path.write_text(f"{SECRET}\n")
    return uri


def _linked(root: Path, link: Path) -> str:
    (root.parent / "secret").write_text(f"{SECRET}\n")
    link.symlink_to(root.parent / "secret")
    return link.name


def _linked_folder(root: Path) -> str:
    (root.parent / "out").mkdir()
    (root.parent / "out" / "d.feature").write_text(f"{SECRET}\n")
    (root / "in").symlink_to(root.parent / "out")
    return "in/d.feature"


@pytest.mark.parametrize("make", FILES.values(), ids=FILES)
def test_a_record_can_only_open_features_below_the_root(tmp_path: Path, make: Callable[[Path], str]) -> None:
    root = tmp_path / "root"
    root.mkdir()
    foreign = msgspec.structs.replace(reclaim(), feature_file=make(root))
    with pytest.raises(HarnessError) as refused:
        cucumber.write([foreign], root, tmp_path / "messages.ndjson")
    assert SECRET not in str(refused.value)
    assert SECRET not in (tmp_path / "messages.ndjson").read_text()


def test_github_ignores_workflow_commands_in_pytests_output(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text("def test_x():\n    print('::error file=x::forged')\n")
    done = subprocess.run(
        [sys.executable, "-m", "schedspec", "ci", "--", "-s", "-p", "no:cacheprovider", "test_x.py"],
        cwd=tmp_path,
        env={**os.environ, "GITHUB_ACTIONS": "true", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    before, forged, after = done.stdout.partition("::error file=x::forged")
    assert forged
    token = before.partition("::stop-commands::")[2].split("\n")[0]
    assert len(token) == 32
    assert f"\n::{token}::\n" in after
