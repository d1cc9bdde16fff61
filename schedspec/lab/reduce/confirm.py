"""Run written features on a cluster as a user does, and report their outcome.

A candidate is judged by the records of its runs. With a scheduler whose order is not deterministic, a feature shows an
incident if enough of its runs do (`Site.needed` of `Site.runs`).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ... import distribution, results
from ...api.errors import HarnessError
from ...report import record as records
from ...report.record import ScenarioRecord
from ...schedulers.pdeathsig import dying_with_us

SIMULATED = "simulated"
OWN = "schedspec"
_TIMEOUT_SECONDS = 180.0
"""Time limit of a run for each of its features, including the boot of a cluster."""


@dataclass(frozen=True, slots=True)
class Site:
    """Where features run: the cluster, the scheduler, and how many of the runs have to show the incident."""

    cluster: str = SIMULATED
    scheduler: str = OWN
    needed: int = 1
    runs: int = 1

    @property
    def is_simulated(self) -> bool:
        """Whether the cluster is simulated, with our scheduler in virtual time."""
        return self.cluster == SIMULATED

    @property
    def where(self) -> str:
        return f"on {self.cluster} with {self.scheduler}" if self.scheduler != OWN else f"in the {self.cluster} cluster"

    @property
    def shown(self) -> str:
        """The options of a user's run."""
        return f"--cluster {self.cluster}" + (f" --scheduler {self.scheduler}" if self.scheduler != OWN else "")

    def options(self) -> list[str]:
        """Return the options of pytest. A live cluster keeps running for the next candidate."""
        if self.is_simulated:
            return ["--cluster", self.cluster]
        return ["--cluster", self.cluster, "--scheduler", self.scheduler, "--reuse-cluster", "--runs", "1"]


@dataclass(slots=True)
class FeatureRun:
    problem: str
    records: list[ScenarioRecord] = field(default_factory=list)
    results: list[results.Result] = field(default_factory=list)

    def finds(self, monitor: str) -> bool:
        return any(finding.monitor == monitor for record in self.records for finding in record.findings)


def run(features: Sequence[Path], site: Site = Site()) -> FeatureRun:
    """Run features once in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        options = [*site.options(), "--out", folder, "-q", "-p", "no:cacheprovider"]
        files = [str(feature.resolve()) for feature in features]
        command = [sys.executable, "-m", "pytest", "-p", "schedspec.plugin", *files, *options]
        try:
            ran = subprocess.run(
                dying_with_us(*command),
                env=distribution.environment(),
                capture_output=True,
                text=True,
                check=False,
                timeout=_TIMEOUT_SECONDS * len(features),
                cwd=folder,
            )
            found = results.read(Path(folder) / results.FILE).results
            seen = list(records.read_all([Path(folder)]))
        except subprocess.TimeoutExpired:
            return FeatureRun(f"the run did not end within {_TIMEOUT_SECONDS * len(features):g} s")
        except HarnessError:
            return FeatureRun(
                "\n".join(ran.stdout.strip().splitlines()[-5:]) or ran.stderr.strip()[-500:] or "no output"
            )
    failed = [result for result in found if result.verdict != "passed"]
    if failed or not found:
        why = "\n".join(result.why for result in failed if result.why)
        return FeatureRun(why or ran.stdout.strip()[-800:] or "no scenario ran", seen, found)
    return FeatureRun("", seen, found)


def shows(site: Site, once: Callable[[], bool]) -> bool:
    """Whether enough runs show an incident. Starts no further run once the answer is certain."""
    left, needed = site.runs, site.needed
    while needed and left >= needed:
        needed, left = needed - once(), left - 1
    return not needed


def problem_of(feature: Path, site: Site = Site()) -> str:
    """Return why a feature does not pass; empty if it does."""
    problems: list[str] = []

    def passes() -> bool:
        problems.append(run([feature], site).problem)
        return not problems[-1]

    return "" if shows(site, passes) else next(filter(None, problems))


def unbroken(feature: Path, monitor: str, site: Site = Site()) -> str:
    """Return why a feature shows no fault; empty if it shows one.

    `monitor`: the monitor that has to find something; empty if any failure will do.
    """
    problems: list[str] = []

    def breaks() -> bool:
        ran = run([feature], site)
        is_broken = ran.finds(monitor) if monitor else bool(ran.problem)
        if not is_broken:
            problems.append(f"it fails for another reason: {ran.problem}" if ran.problem else "it passes")
        return is_broken

    return "" if shows(site, breaks) else problems[0]
