"""The answer of a plan as data; `-o json` prints it (docs/plan.md)."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from ...scheduler.reasons.text import count

_MADE = re.compile(r"[\w.-]+/[\w.-]*[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
"""The key of a PodGroup whose name a controller made: `team/podgroup-UID`, `team/train-UID`."""


SUBMITTED = "is submitted"
_OTHERS = "; others: "
"""Begins the part of a reason that tells what protects the candidates that were not chosen."""


class PlanInputs(msgspec.Struct):
    """The state and the two sets of files that the plan compares."""

    state: str
    taken: str
    age_seconds: float
    sha256: str
    redacted: bool
    nodes: int
    queues: int
    pods: int
    resource: str
    now: str
    proposed: str
    schedulers: list[str]
    workloads: int = 0


class PlannedEviction(msgspec.Struct):
    """A pod that is evicted at once."""

    pod: str
    job: str
    queue: str
    node: str
    preemptor: str
    preemptor_queue: str
    action: str
    why: str
    runs_again: bool = False
    """Whether its replacement is placed at once."""
    runs: int = 1
    pods: int = 1
    """Number of pods, where a scheduler evicts a job as one unit, whose name then stands in `pod`."""

    @property
    def rule(self) -> str:
        """The part of the reason that names the deciding tier."""
        return self.why.partition("; ")[2] or self.why


def pods_of(evictions: Iterable[PlannedEviction]) -> int:
    """Return the number of evicted pods."""
    return sum(eviction.pods for eviction in evictions)


class Start(msgspec.Struct):
    """A job whose pods are placed at once."""

    job: str
    queue: str
    pods: int
    nodes: list[str] = []
    """The node of each placed pod, in the order of the pods' names."""
    runs: int = 1


class NewlyWaiting(msgspec.Struct):
    """A job that waits with the change and does not wait without it. Jobs of victims do not count."""

    job: str
    queue: str
    why: str
    was: str
    """The fate of the job without the change: `runs` or `starts`; `SUBMITTED` if it is part of the change."""

    @property
    def before(self) -> str:
        """Return that fate in words."""
        return self.was if self.was == SUBMITTED else f"{self.was} without the change"


class PlannedWorld(msgspec.Struct):
    evictions: list[PlannedEviction] = []
    starts: list[Start] = []
    waiting: dict[str, str] = {}
    """Job → why it waits, once the world has settled."""
    held: dict[str, float] = {}
    """Queue → amount of the plan's resource that its pods hold, once the world has settled."""
    deserved: dict[str, float] = {}
    """Queue → the amount that it deserves, where the policy computes it."""
    cycles: int = 0
    problem: str = ""


class QueueAtOnce(msgspec.Struct):
    """A queue that holds another amount because of the change."""

    queue: str
    now: float
    proposed: float
    deserved: float | None
    """With the change; None if the policy computes no shares."""
    lose: int
    start: int


class AtOnce(msgspec.Struct):
    """The first answer: both worlds until they settle."""

    now: PlannedWorld
    proposed: PlannedWorld
    evictions: list[PlannedEviction] = []
    """Evictions that the change causes: they do not happen without it."""
    spared: list[PlannedEviction] = []
    starts: list[Start] = []
    refused: list[NewlyWaiting] = []
    queues: list[QueueAtOnce] = []


class QueueChange(msgspec.Struct):
    """A queue over the load: the metrics of both worlds, by name."""

    queue: str
    now: dict[str, float | None]
    proposed: dict[str, float | None]


class JobChange(msgspec.Struct):
    """A job whose wait changes. A job that never starts has no wait."""

    job: str
    queue: str
    now: float | None
    proposed: float | None
    why: str = ""


class LoadFinding(msgspec.Struct):
    """A finding of a monitor over the load (`findings`)."""

    rule: str
    subject: str
    """A job, or a queue."""
    queue: str
    text: str


class OverLoad(msgspec.Struct):
    """The second answer: both worlds over the load."""

    load: str
    run_times: str
    until: str
    jobs: int
    now: dict[str, float | None]
    proposed: dict[str, float | None]
    queues: list[QueueChange] = []
    changed: list[JobChange] = []
    starved: list[str] = []
    """Jobs that start without the change and never start with it."""
    findings: list[LoadFinding] = []
    """What monitors find with the change and not without it."""
    problem: str = ""


class TeamRules(msgspec.Struct):
    """The third answer: the team's own scenarios on both sides of the change."""

    scenarios: int
    flips: list[str] = []
    """Scenarios that pass without the change and fail with it, or the other way round."""
    problem: str = ""
    by: str = ""
    """The schedulers whose programs ran them on embedded clusters; empty for our scheduler in virtual time."""

    @property
    def title(self) -> str:
        """How many scenarios flip, and who ran them."""
        found = self.problem or f"{count(self.scenarios, 'scenario')}, {count(len(self.flips), 'flip')}"
        return f"{found} ({self.by})" if self.by else found


class Plan(msgspec.Struct):
    subject: PlanInputs
    changes: list[str]
    policies: tuple[str, str]
    at_once: AtOnce
    over_load: list[OverLoad] = []
    """One for each assumption about run times: best, expected and worst, or one."""
    rules: TeamRules | None = None
    notes: list[str] = []
    """The facts that a reader needs first."""
    assumptions: list[str] = []
    conditions: list[str] = []
    """The conditions of --fail-on; without one, nothing judges the plan."""
    failed: list[str] = []
    decided_by: str = ""
    """The scheduler's own program that decided at once, with its version; empty: our model of it."""
    asked: tuple[str, str] = ("", "")
    """The scheduler of each side, as `--scheduler` names it; empty for the model."""
    model: AtOnce | None = None
    """The effects by our model, beside those of a scheduler's own program."""
    runs: list[AtOnce] = []
    """The effects in each run, where the scheduler's order is not deterministic; else one."""
    names: dict[str, str] = {}
    """Job → the name that its user gave it, where a controller made another from it."""
    format: int = 1

    def reason_in_runs(self, eviction: PlannedEviction) -> str:
        """Return the reason of an eviction, after the number of its runs if there are several."""
        return f"{self.in_runs(eviction.runs).strip()}: {eviction.why}" if len(self.runs) > 1 else eviction.why

    def in_runs(self, seen: int) -> str:
        """Return in how many runs something was seen, to follow it; empty for one run."""
        return f" in {seen} of {len(self.runs)} runs" if len(self.runs) > 1 else ""

    @staticmethod
    def groups(rows: Iterable[tuple[str, ...]]) -> list[tuple[list[str], tuple[str, ...]]]:
        """Join rows that differ only in their first cell, or in the protections of candidates that were not chosen.

        Returns:
            The first cells and the common other cells of each group, in the order of their first rows.
        """
        found: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
        for row in rows:
            found.setdefault(tuple(cell.partition(_OTHERS)[0] for cell in row[1:]), []).append(row)
        return [
            ([row[0] for row in group], common if len({row[1:] for row in group}) > 1 else group[0][1:])
            for common, group in found.items()
        ]

    def named(self, text: str) -> str:
        """Return a text in which jobs have the names that their users gave them."""
        return _MADE.sub(lambda found: self.names.get(found[0], found[0]), text)
