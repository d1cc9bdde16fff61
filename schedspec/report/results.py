"""What came of a run, one row a scenario: the data that the matrix of schedulers is made of.

A run writes it as `results.json` beside its reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from ..api.errors import HarnessError
from ..api.kinds import Kind
from ..monitors import amounts
from ..observe import queries
from ..observe.history import History

FILE = "results.json"
Verdict = Literal["passed", "failed", "known", "lacks", "skipped", "error"]
"""`known`: it differs as its adapter says; `lacks`: the scheduler was not asked; `error`: nothing was judged."""


class Numbers(msgspec.Struct, frozen=True):
    """What is measured beside a verdict; None where nothing ran or nothing was evicted."""

    seconds_to_run: float | None = None
    """The mean over all pods that ran: from when the pod was first seen until it was seen running."""
    evictions: int = 0
    evicted_to_requested: float | None = None
    """The cpu (or, where no cpu was asked for, cards or memory) of the evicted pods, over that of the pods of other
    workloads that were bound after the first eviction."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one scenario, or of one row of its examples."""

    feature: str
    """Its file, relative to the root of the run."""
    scenario: str
    example: dict[str, str]
    node_id: str = ""
    """What pytest runs it by; its record has the same."""
    run: int
    verdict: Verdict
    why: str = ""
    """What happened instead, or what it lacks."""
    seconds: float = 0.0
    numbers: Numbers | None = None


class RunResults(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one scheduler."""

    schema: int = 1
    scheduler: str
    version: str
    """Of the scheduler; empty where it does not say."""
    kubernetes: str
    """Of the API server; empty where no scenario asked for a cluster."""
    cluster: str
    results: list[Result]


def read(path: Path) -> RunResults:
    """The results of a run: its folder or the file. Raises HarnessError."""
    file = path / FILE if path.is_dir() else path
    try:
        return msgspec.json.decode(file.read_bytes(), type=RunResults)
    except OSError as problem:
        raise HarnessError(f"{file}: {problem.strerror}\n  do next: name the folder of a run (--out)") from None
    except msgspec.MsgspecError as problem:
        raise HarnessError(f"{file} is no result of a run: {problem}") from None


def read_all(folders: Iterable[Path]) -> Iterator[RunResults]:
    """The results of every run below some folders. Raises HarnessError."""
    for folder in folders:
        for file in sorted(folder.glob(f"**/{FILE}")):
            yield read(file)


def numbers_of(history: History) -> Numbers:
    """What is measured of one scenario."""
    view = history.now()
    began: dict[str, float] = {}
    for version in history.versions(Kind.POD):
        began.setdefault(version.uid, version.at)
    waits = [it.at - began[it.uid] for it in queries.starts(view)]
    evicted = queries.evictions(view)
    return Numbers(
        round(sum(waits) / len(waits), 3) if waits else None,
        len(evicted),
        _ratio(evicted, [it for it in queries.binds(view) if evicted and it.seq > evicted[0].seq]),
    )


def _ratio(evicted: list[queries.Happened], bound: list[queries.Happened]) -> float | None:
    losers = {queries.workload(it) for it in evicted}
    served = [it for it in bound if queries.workload(it) not in losers]
    gone, came = (amounts.total(amounts.of_pod(it.object) for it in part) for part in (evicted, served))
    for name in (*(it for it in gone if "/" in it), "cpu", "memory"):
        if gone.get(name) and came.get(name):
            return round(float(gone[name] / came[name]), 2)
    return None
