"""A command replaces no file of the user whose name the user did not write."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedspec.cli import main

COMMANDS = {
    "simulate": ("--trace in.csv --map submitted=start,duration=seconds --nodes 1x8 --out out/r.jsonl", "r.jsonl"),
    "plan": ("--state in.json --proposed in.csv --out out", "plan.json"),
    "matrix": ("in --out out", "matrix.json"),
    "conformance": ("--from in --profile core --out out", "conformance.svg"),
}
"""Words of each command, and the file that each of its runs writes."""
BESIDE = [
    ("simulate", "r.html"),
    *(("plan", name) for name in ("plan.md", "plan.html")),
    *(("matrix", name) for name in ("matrix.md", "matrix.html", "summary.md")),
    ("conformance", "conformance.yaml"),
]


def call(command: str, more: str = "") -> int:
    for name in ("in.csv", "in.json"):
        Path(name).write_text("")
    Path("out").mkdir(exist_ok=True)
    Path("in").mkdir(exist_ok=True)
    with pytest.raises(SystemExit) as ended:
        main([command, *COMMANDS[command][0].split(), *more.split()])
    return int(ended.value.code or 0)


@pytest.mark.parametrize(("command", "name"), BESIDE)
def test_a_file_that_the_user_did_not_name_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    Path("out", name).write_text("mine")
    assert call(command) != 0
    assert f"out/{name} exists, and no earlier run of this command wrote it" in capsys.readouterr().err
    assert Path("out", name).read_text() == "mine"


@pytest.mark.parametrize(("command", "name"), BESIDE)
def test_a_file_of_an_earlier_run_may_be_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    for one in (name, COMMANDS[command][1]):
        Path("out", one).write_text("of an earlier run")
    assert call(command) != 0  # the inputs are empty
    assert "no earlier run" not in capsys.readouterr().err


@pytest.mark.parametrize("earlier", ["r.jsonl", "r"])
def test_a_sweep_may_replace_the_page_of_a_run_and_of_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], earlier: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("out", earlier).mkdir(parents=True)
    Path("out", "r.html").write_text("of an earlier run")
    assert call("simulate", "--seeds 2") != 0  # a sweep needs a synthetic load
    assert "no earlier run" not in capsys.readouterr().err
