"""`schedspec conformance --from` reports on an existing run; its exit status shows whether the run is conformant."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from schedspec.cli.conformance import BADGE, REPORT, conformance_command
from schedspec.conformance.report_file import ConformanceReport
from schedspec.results import FILE, Result, RunResults, Verdict


@pytest.mark.parametrize(("verdict", "status", "word"), [("passed", 0, "conformant"), ("failed", 1, "not conformant")])
def test_an_existing_run_is_reported(tmp_path: Path, verdict: Verdict, status: int, word: str) -> None:
    one = Result(feature="f.feature", scenario="s", example={}, level="core", run=1, verdict=verdict)
    run = RunResults(scheduler="x", version="v1", kubernetes="v1.36.3", cluster="embedded", results=[one])
    (tmp_path / FILE).write_bytes(msgspec.json.encode(run))
    out = tmp_path / "out"
    done = CliRunner().invoke(conformance_command, ["--from", str(tmp_path), "--out", str(out)], standalone_mode=False)
    assert done.return_value == status, done.output
    assert f"core: {word}; of 1 scenarios" in done.output
    found = msgspec.yaml.decode((out / REPORT).read_bytes(), type=ConformanceReport)
    assert [it.result for it in found.profiles] == [word]
    assert (out / BADGE).read_text("utf-8").startswith("<svg")


def test_a_refused_run_has_one_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["--scheduler", "kuue", "--profile", "core", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(conformance_command, words, standalone_mode=False)
    said = capfd.readouterr().err + done.output
    assert done.return_value == 4, said
    assert said.count("do next") == 1
    assert "is 'kueue' meant?" in said
