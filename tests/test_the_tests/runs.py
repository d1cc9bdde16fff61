"""Run scenarios in a separate pytest process on a separate cluster, and read the results.

Faults of decisions run on a simulated cluster, where waits take no time; faults of the scheduler's process run on an
embedded cluster. Verdicts are read from the files that every run writes (JUnit and a record of each scenario), not from
its output.
"""

from __future__ import annotations

import multiprocessing
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import msgspec

from schedspec.report.record import ScenarioRecord
from tests.test_the_tests import specimens, virtual_run
from tests.test_the_tests.faults import FAULTS
from tests.test_the_tests.faults.fault import TAG
from tests.test_the_tests.specimens import Specimen

ROOT = Path(__file__).parents[2]
JUNIT = "junit.xml"
MAX_SCENARIOS = 50
"""Maximum number of scenarios on one simulated cluster."""


@dataclass(frozen=True)
class Result:
    """The result of one scenario. A scenario that failed without a failed sentence has not begun."""

    specimen: Specimen
    passed: bool
    broken: tuple[int, ...]
    """The positions of the sentences that failed."""
    monitors: tuple[str, ...]
    failure: str
    skipped: bool = False
    """Whether the scenario needs something that the scheduler lacks, so that its result says nothing about a fault."""

    @property
    def sentence(self) -> str:
        """Return the first sentence that failed; empty if none did."""
        return self.specimen.steps[self.broken[0]].text if self.broken else ""


class RunError(Exception):
    """A run ended without verdicts."""


def run(chosen: Sequence[Specimen], folder: Path, start: Callable[[list[str], Path], int], *options: str) -> None:
    """Run scenarios in a separate pytest run. Raises RunError with the end of its log.

    Args:
        chosen: The scenarios.
        folder: Folder of pytest's files.
        start: Function of pytest's arguments and a log file that runs pytest and returns its exit status.
        options: More options of pytest.
    """
    shutil.rmtree(folder, ignore_errors=True)
    feature, junit, log = folder / "features" / "specimens.feature", folder / JUNIT, folder / "pytest.log"
    specimens.write(chosen, feature)
    own = ("-p", "tests.test_the_tests.keep_judging", "-p", "tests.test_the_tests.scheduled_by")
    arguments = [
        *("-q", "--rootdir", str(ROOT), "-c", str(ROOT / "pyproject.toml"), "-p", "no:cacheprovider", *own),
        *("-p", "conftest", "--out", str(folder / "out"), "--junitxml", str(junit), *options, str(feature)),
    ]
    status = start(arguments, log)
    if status not in (0, 1) or not junit.exists():
        last = "\n".join(log.read_text("utf-8").splitlines()[-20:])
        raise RunError(f"pytest ended with status {status}; see {log}\n{last}")


def _as_process(arguments: list[str], log: Path) -> int:
    command = [sys.executable, "-m", "pytest", *arguments]
    with log.open("wb") as out:
        return subprocess.run(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, check=False).returncode


def results(chosen: Sequence[Specimen], folder: Path) -> list[Result]:
    """Return the results of a run, one for each scenario in the same order."""
    problems, skipped = _problems(folder / JUNIT)
    records = _records(folder / "out" / "scenarios")
    return [_result(it, problems[n], records.get(n), skipped=n in skipped) for n, it in enumerate(chosen)]


def _problems(junit: Path) -> tuple[dict[int, str], set[int]]:
    """Return why each scenario failed (empty if it did not), and the skipped scenarios."""
    found: dict[int, str] = {}
    skipped: set[int] = set()
    for case in ET.parse(junit).iter("testcase"):
        number = int(re.search(r"\d+", case.attrib["name"]).group())  # type: ignore[union-attr] - numbers as names
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
class Part:
    """Scenarios that run one after the other on one cluster, by their positions in the run."""

    name: str
    fault: str
    """The fault of the simulated cluster's scheduler. On an embedded cluster, each scenario's tag names its fault."""
    is_simulated: bool
    positions: Sequence[int]


@dataclass(frozen=True)
class Lab:
    """Settings of runs: the folder of their files, the number of clusters at a time, the factor of timeouts."""

    out: Path
    jobs: int
    timeout_scale: str

    def run(self, name: str, chosen: Sequence[Specimen]) -> list[Result]:
        """Run scenarios on `jobs` clusters at a time; return their results in order."""
        parts = list(self._parts(name, chosen))
        found: dict[int, Result] = {}
        for is_simulated in (True, False):
            mine = [it for it in parts if it.is_simulated == is_simulated]
            pool: Executor = _process_pool(self.jobs) if is_simulated else ThreadPoolExecutor(self.jobs)
            with pool:
                for part, results_of_part in zip(mine, pool.map(self._run, mine, [chosen] * len(mine)), strict=True):
                    found |= dict(zip(part.positions, results_of_part, strict=True))
        return [found[at] for at in range(len(chosen))]

    def _parts(self, name: str, chosen: Sequence[Specimen]) -> Iterator[Part]:
        """Yield up to `jobs` parts for faults of the process; split each other fault into parts of `MAX_SCENARIOS`."""
        live = [at for at, it in enumerate(chosen) if (fault := fault_of(it)) and FAULTS[fault].of_process]
        for number in range(min(self.jobs, len(live))):  # round-robin, because slow scenarios follow each other
            yield Part(f"{name}-live-{number + 1}", "", False, live[number :: self.jobs])
        rest = [at for at in range(len(chosen)) if at not in live]
        for fault, positions in groupby(rest, lambda at: fault_of(chosen[at])):
            of_fault = list(positions)
            for first in range(0, len(of_fault), MAX_SCENARIOS):
                yield Part(f"{name}-{fault or 'none'}-{first}", fault, True, of_fault[first : first + MAX_SCENARIOS])

    def _run(self, part: Part, all_of_them: Sequence[Specimen]) -> list[Result]:
        began = time.monotonic()
        chosen = [all_of_them[at] for at in part.positions]
        cluster = "simulated" if part.is_simulated else "embedded"
        start = virtual_run.of(part.fault) if part.is_simulated else _as_process
        run(chosen, self.out / part.name, start, "--cluster", cluster, "--timeout-scale", self.timeout_scale)
        found = results(chosen, self.out / part.name)
        failed, skipped = sum(not it.passed for it in found), sum(it.skipped for it in found)
        took = f"in {time.monotonic() - began:.0f} s"
        sys.stderr.write(f"{part.name}: {failed} of {len(found)} failed, {skipped} skipped, {took}\n")
        return found


def fault_of(specimen: Specimen) -> str:
    """Return the fault with which a scenario runs, by its tag; empty for none."""
    return next((it.removeprefix(f"@{TAG}") for it in specimen.tags if it.startswith(f"@{TAG}")), "")


def _process_pool(jobs: int) -> ProcessPoolExecutor:
    """Return a pool with a new process for each part, because injections are never undone; imports are preloaded."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([virtual_run.__name__])
    return ProcessPoolExecutor(jobs, context, max_tasks_per_child=1)
