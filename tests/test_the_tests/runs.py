"""Run scenarios in a pytest process and a cluster of their own, and read the results.

A verdict is read from the files that every run writes (JUnit, the record of each scenario), never from its output.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from schedspec.report.record import ScenarioRecord
from tests.test_the_tests import specimens
from tests.test_the_tests.specimens import Specimen

ROOT = Path(__file__).parents[2]
JUNIT = "junit.xml"


@dataclass(frozen=True)
class Result:
    """What came of one scenario. Without a sentence that failed it was not begun."""

    specimen: Specimen
    passed: bool
    broken: tuple[int, ...]
    """Which of the scenario's sentences failed, by their positions."""
    monitors: tuple[str, ...]
    failure: str
    skipped: bool = False
    """It needs what the scheduler under test lacks, and says nothing of a fault."""

    @property
    def sentence(self) -> str:
        """The first one that failed."""
        return self.specimen.steps[self.broken[0]].text if self.broken else ""


class RunError(Exception):
    """A run gave no verdicts."""


def run(chosen: Sequence[Specimen], folder: Path, *options: str) -> None:
    """Run scenarios on an embedded cluster. Raises RunError with its last words."""
    shutil.rmtree(folder, ignore_errors=True)
    feature, junit = folder / "features" / "specimens.feature", folder / JUNIT
    specimens.write(chosen, feature)
    own = ("-p", "tests.test_the_tests.keep_judging", "-p", "tests.test_the_tests.scheduled_by")
    files = ("--out", str(folder / "out"), "--junitxml", str(junit))
    command = [
        *(sys.executable, "-m", "pytest", "-q", "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml")),
        *("-p", "no:cacheprovider", *own, "-p", "conftest", *files),
        *("--cluster", "embedded", *options, str(feature)),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    (folder / "pytest.log").write_text(done.stdout + done.stderr, "utf-8")
    if done.returncode not in (0, 1) or not junit.exists():
        last = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise RunError(f"pytest ended with status {done.returncode}; see {folder / 'pytest.log'}\n{last}")


def results(chosen: Sequence[Specimen], folder: Path) -> list[Result]:
    """What came of a run: one result for each scenario, in their order."""
    problems, skipped = _problems(folder / JUNIT)
    records = _records(folder / "out" / "scenarios")
    return [_result(it, problems[n], records.get(n), skipped=n in skipped) for n, it in enumerate(chosen)]


def _problems(junit: Path) -> tuple[dict[int, str], set[int]]:
    """Scenario → why it failed, empty where it did not; and those that were skipped."""
    found: dict[int, str] = {}
    skipped: set[int] = set()
    for case in ET.parse(junit).iter("testcase"):
        number = int(re.search(r"\d+", case.attrib["name"]).group())  # type: ignore[union-attr] - we named them
        texts = [it.text or it.get("message", "") for it in case if it.tag in ("failure", "error")]
        found[number] = "\n".join([found.get(number, ""), *texts]).strip()
        if case.find("skipped") is not None:
            skipped.add(number)
    return found, skipped


def _records(folder: Path) -> dict[int, ScenarioRecord]:
    read = (msgspec.json.decode(path.read_bytes(), type=ScenarioRecord) for path in folder.glob("*/*.json"))
    return {int(record.scenario): record for record in read}


def _result(specimen: Specimen, failure: str, record: ScenarioRecord | None, *, skipped: bool) -> Result:
    broken: tuple[int, ...] = ()
    monitors: tuple[str, ...] = ()
    if record is not None:
        broken = tuple(n for n, sentence in enumerate(record.sentences) if sentence.verdict == "failed")
        monitors = tuple(sorted({finding.monitor for finding in record.findings}))
    return Result(specimen, not failure, broken, monitors, failure, skipped)


@dataclass(frozen=True)
class Lab:
    """Where runs take place: the folder of their files, how many at a time, how far timeouts are scaled."""

    out: Path
    jobs: int
    timeout_scale: str

    def run(self, name: str, chosen: Sequence[Specimen]) -> list[Result]:
        """Run scenarios on as many clusters as may run at a time, dealt out in turns, as those that wait to their ends
        are next to each other; one result each, in their order.
        """
        width = min(self.jobs, len(chosen))
        parts = [(f"{name}-{n + 1}", chosen[n::width]) for n in range(width)]
        with ThreadPoolExecutor(self.jobs) as pool:
            found = list(pool.map(self._run, parts))
        return [found[at % width][at // width] for at in range(len(chosen))]

    def _run(self, part: tuple[str, Sequence[Specimen]]) -> list[Result]:
        name, chosen = part
        began = time.monotonic()
        run(chosen, self.out / name, "--timeout-scale", self.timeout_scale)
        found = results(chosen, self.out / name)
        failed, skipped = sum(not it.passed for it in found), sum(it.skipped for it in found)
        took = f"in {time.monotonic() - began:.0f} s"
        sys.stderr.write(f"{name}: {failed} of {len(found)} failed, {skipped} skipped, {took}\n")
        return found
