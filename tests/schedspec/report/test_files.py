"""The files of a run: readable unless private, in a folder of its own, and without effect on verdicts."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from schedspec.report import files

Run = Callable[..., pytest.RunResult]

FEATURE = "Feature: f\n  Scenario: s\n    Given there are 2 pods\n    Then all is well\n"
FULL_DISK = f'''
def pytest_schedspec_ended(running):
    """As on a full disk."""
    raise OSError({errno.ENOSPC}, "No space left on device", str(running.folder))
'''


def mode(path: Path) -> str:
    return oct(path.stat().st_mode & 0o777)


@pytest.mark.parametrize(("private", "modes"), [(False, ("0o755", "0o644")), (True, ("0o700", "0o600"))])
def test_files_are_readable_by_others_unless_they_are_private(
    tmp_path: Path, private: bool, modes: tuple[str, str]
) -> None:
    before = os.umask(0o022)
    try:
        folder = files.make_folder(tmp_path / "a", private=private)
        (folder / "old").write_text("x")
        written = [files.write(folder / name, "x", private=private) for name in ("new", "old")]
    finally:
        os.umask(before)
    assert [mode(folder), *map(mode, written)] == [modes[0], modes[1], modes[1]]


def test_a_run_takes_the_next_name_if_the_default_folder_is_in_use(tmp_path: Path) -> None:
    first, second = (files.Claim(tmp_path / "run", named=False) for _ in range(2))
    assert [first.folder.name, second.folder.name] == ["run", "run-2"]
    first.release()
    assert files.Claim(tmp_path / "run", named=False).folder.name == "run"


def test_a_named_folder_that_is_in_use_is_refused(tmp_path: Path) -> None:
    claim = files.Claim(tmp_path / "run", named=True)
    with pytest.raises(files.FolderTakenError, match=r"another run writes into .*run now; do next: wait"):
        files.Claim(tmp_path / "run", named=True)
    claim.release()


def test_a_folder_is_free_again_when_its_run_was_killed(tmp_path: Path) -> None:
    code = ("import os, sys", "from pathlib import Path", "from schedspec.report.files import Claim")
    code += ("it = Claim(Path(sys.argv[1]), named=True)", "os._exit(9)")
    subprocess.run([sys.executable, "-c", "; ".join(code), str(tmp_path / "run")], check=False)
    assert files.Claim(tmp_path / "run", named=True).folder.name == "run"


def test_a_second_run_is_refused_a_named_folder_and_gets_another_default_one(
    specs: Run, pytester: pytest.Pytester
) -> None:
    with_junit = files.Claim(pytester.path / "junit", named=True)
    unnamed = files.Claim(pytester.path / "out" / "run", named=False)
    refused = specs("--junitxml=junit.xml", f=FEATURE)
    assert refused.ret == pytest.ExitCode.USAGE_ERROR
    refused.stderr.fnmatch_lines(["*another run writes into *junit now*"])
    specs(f=FEATURE).stdout.fnmatch_lines(["*reports in out/run-2"])
    with_junit.release()
    unnamed.release()
    specs("--junitxml=junit.xml", f=FEATURE).assert_outcomes(passed=1)


@pytest.mark.parametrize("workers", [(), ("-n", "2", "-p", "xdist")])
def test_an_unwritable_report_is_mentioned_once_and_changes_no_verdict(specs: Run, workers: tuple[str, ...]) -> None:
    result = specs(*workers, steps=FULL_DISK, a=FEATURE, b=FEATURE)
    assert result.ret == 0
    result.assert_outcomes(passed=2)
    text = result.stdout.str()
    assert text.count("No space left on device") == 1
    assert "(and 1 more); the verdicts stand" in text
    assert "Traceback" not in text


def test_a_junit_file_that_cannot_be_written_changes_no_verdict(specs: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "full").write_text("no folder")
    result = specs("--junitxml=full/junit.xml", "--out=out/x", f=FEATURE)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["not written: *full*; the verdicts stand"])
    assert "INTERNALERROR" not in result.stdout.str() + result.stderr.str()
