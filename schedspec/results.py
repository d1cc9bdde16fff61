"""The outcome of a run: one row for each scenario, each other test, and each file that could not be collected.

A run writes it as `results.json` beside its reports. The matrix, the comparison, the report page and `schedspec ci`
read what a run found from this file alone.

A place (file and line) is a field of its own and never read from the text of a failure, which the author of a pull
request controls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from .api import untrusted
from .api.errors import HarnessError

FILE = "results.json"
SIMULATED = "simulated"
"""The kind of cluster in which virtual time decides."""
BY_DESIGN = "differs by design"
"""The beginning of the reason of a difference that the scheduler's design explains."""
Verdict = Literal["passed", "failed", "known", "by design", "lacks", "skipped", "error"]
"""`known`: a known difference of the adapter; `by design`: one that the scheduler's project documents as its design;
`lacks`: the scheduler lacks something; `error`: could not be judged."""

Seconds = Annotated[float, msgspec.Meta(ge=0, lt=1e9)]


def of_difference(reason: str) -> Verdict:
    """Return the verdict of a scenario that failed as expected, by the reason of its difference."""
    return "by design" if reason.startswith(BY_DESIGN) else "known"


class FeatureLine(msgspec.Struct, frozen=True):
    """A line of a feature file, and its problem."""

    path: Annotated[str, msgspec.Meta(max_length=4096)]
    line: Annotated[int, msgspec.Meta(ge=0, lt=10_000_000)]
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Numbers(msgspec.Struct, frozen=True):
    """Measurements of a scenario; None if nothing ran or nothing was evicted."""

    seconds_to_run: float | None = None
    """The mean over all pods that ran: from when the pod was first seen until it was seen running."""
    evictions: int = 0
    evicted_to_requested: float | None = None
    """Evicted cards divided by requested cards (cpu or memory if no card was requested); equal to the record's."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one scenario, or of one row of its examples."""

    feature: str
    """The feature file, relative to the root of the run."""
    scenario: str = ""
    """Empty for a test that is no scenario, and for a file that could not be collected."""
    example: dict[str, str] = {}
    level: str = ""
    """Conformance level; empty for a scenario without one."""
    node_id: str = ""
    """The id by which pytest runs the test; the record has the same id."""
    run: int = 1
    verdict: Verdict
    why: str = ""
    """The error of a failure, or the missing capability."""
    seconds: Seconds = 0.0
    numbers: Numbers | None = None
    text: str = ""
    """The complete output of pytest about a failure."""
    places: list[FeatureLine] = []
    """The lines that a failure names, in order."""
    anchor: str = ""
    """The anchor of the scenario in the report's page; empty without a record."""
    expected: str = ""
    """The expectation of a failure with a record; `seen` and `because` have the observation and its explanation."""
    seen: str = ""
    because: str = ""

    @property
    def name(self) -> str:
        """The name of the test, with its example; of a file that could not be collected, the file."""
        test, bracket, example = self.node_id.partition("[")
        return test.rpartition("::")[2] + bracket + example


class RunResults(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one scheduler."""

    schema: int = 1
    scheduler: str
    version: str
    """The version of the scheduler; empty if unknown."""
    kubernetes: str
    """Version of the API server; empty if no scenario needed a cluster, or if virtual time decided."""
    cluster: str
    results: list[Result]
    others: list[Result] = []
    """Tests that are no scenarios, and files that could not be collected."""


def where(cluster: str, kubernetes: str) -> str:
    """Return where a scheduler was judged, for reports: a version of Kubernetes, or `simulated` for virtual time."""
    return cluster if cluster == SIMULATED else kubernetes


def read(path: Path) -> RunResults:
    """Return the results of a run, from its folder or the file. Raises HarnessError."""
    file = path / FILE if path.is_dir() else path
    if not file.exists():
        raise HarnessError(f"{file}: No such file or directory\n  do next: name the folder of a run (--out)")
    return untrusted.decode(file, untrusted.read_bytes(file), RunResults, "the results of a run")


def read_all(folders: Iterable[Path]) -> Iterator[RunResults]:
    """Return the results of every run below some folders. Raises HarnessError."""
    for folder in folders:
        for file in sorted(folder.glob(f"**/{FILE}")):
            yield read(file)
