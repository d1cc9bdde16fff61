"""Monitors over a simulated load: the invariants of scenarios, judged on the stream of outcomes while it runs.

1. Sums of what nodes and queues hold are kept from outcome to outcome, so that a judgement costs what it concerns.
2. A bind is judged at once; what was done to a gang when the next cycle begins, because it belongs together.
3. Each finding names the virtual time, the cycle, and the reason that the scheduler gave.

The limits are read from the nodes and queues as their users wrote them, never from the scheduler's own numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ..monitors import amounts
from ..monitors.amounts import NONE, Amounts
from ..monitors.gangs import SWITCHES
from ..monitors.rules import Rules


@dataclass(slots=True)
class _Job:
    queue: str
    minimum: int
    requests: Amounts
    placed: dict[str, str] = field(default_factory=dict)
    """Pod → node; victims that have not gone yet included."""
    victims: set[str] = field(default_factory=set)
    evicted_for: dict[str, int] = field(default_factory=dict)
    """Preemptor → attempt of this job that it evicted."""
    attempt: int = 0


class Monitors:
    """Judges one run."""

    def __init__(self, policy: str, nodes: Iterable[Any], queues: Iterable[Any]) -> None:
        self._rules = Rules(policy)
        self._has = {it.metadata.name: amounts.parse(it.status.allocatable or it.status.capacity) for it in nodes}
        self._capability = {it.metadata.name: amounts.parse(it.spec.capability) for it in queues}
        self._on_node: dict[str, Amounts] = {}
        self._of_queue: dict[str, Amounts] = {}
        """What pods hold that are no victims."""
        self._jobs: dict[str, _Job] = {}
        self._changed: dict[str, tuple[str, str]] = {}
        """Job → what was done to its gang in this cycle, and why."""
        self._cycle, self._at = 0, 0.0
        self.found: list[dict[str, Any]] = []
        """Fields of `scheduler.simulate.records.Finding`, in order."""

    def take(self, outcome: Any) -> None:
        """Take the next outcome of the simulation."""
        take = getattr(self, f"_take_{type(outcome).__name__.lower()}", None)
        if take is not None:
            take(outcome)

    def close(self) -> list[dict[str, Any]]:
        """Judge what the last cycle left; returns all findings."""
        self._judge_gangs()
        return self.found

    def _find(self, monitor: str, about: str, text: str, reason: str = "") -> None:
        self.found.append(
            {"monitor": monitor, "at": self._at, "cycle": self._cycle, "about": about, "text": text, "reason": reason}
        )

    # ---------------------------------------------------------------------------------------------------- outcomes

    def _take_submitted(self, it: Any) -> None:
        requests = {name: amount for name, amount in amounts.parse(it.requests).items() if amount > 0}
        self._jobs[it.job] = _Job(it.queue, it.min_member, requests)

    def _take_cycle(self, it: Any) -> None:
        self._judge_gangs()
        self._cycle, self._at = it.number, it.at

    def _take_started(self, it: Any) -> None:
        self._jobs[it.job].attempt = it.attempt

    def _take_placed(self, it: Any) -> None:
        job = self._jobs[it.job]
        job.placed[it.pod] = it.node
        held = _add(self._on_node, it.node, job.requests, 1)
        limits = {**dict.fromkeys(job.requests, NONE), **self._has.get(it.node, {})}
        if over := amounts.above(held, limits, job.requests):
            self._find("node", it.job, f"bound to {it.node}, which then holds {', '.join(over)}")
        of_queue = _add(self._of_queue, job.queue, job.requests, 1)
        limit = self._capability.get(job.queue, {})
        if limit and self._rules.queue_plugin and (over := amounts.above(of_queue, limit, job.requests)):
            self._find("capability", it.job, f"lifts queue {job.queue} to {', '.join(over)} of its capability")
        self._changed[it.job] = ("bound", "")

    def _take_evicted(self, it: Any) -> None:
        job, why = self._jobs[it.job], it.reason
        if it.pod in job.victims or it.pod not in job.placed:
            return
        job.victims.add(it.pod)
        _add(self._of_queue, job.queue, job.requests, -1)
        if self._rules.has_say("gang", SWITCHES.get(why.action, "enableReclaimable")):
            self._changed[it.job] = ("left", _reason(why))
        if job.evicted_for.setdefault(why.preemptor, job.attempt) != job.attempt:
            self._find("repeated-eviction", it.job, "evicted again for the same job", _reason(why))
            job.evicted_for[why.preemptor] = job.attempt

    def _take_released(self, it: Any) -> None:
        job = self._jobs[it.job]
        node = job.placed.pop(it.pod, None)
        if node is None:
            return
        _add(self._on_node, node, job.requests, -1)
        if it.pod in job.victims:
            job.victims.discard(it.pod)
        else:
            _add(self._of_queue, job.queue, job.requests, -1)
        if not job.placed:
            self._changed.pop(it.job, None)

    def _take_disrupted(self, it: Any) -> None:
        self._changed.pop(it.job, None)  # not an act of the scheduler

    def _take_ended(self, it: Any) -> None:
        self._jobs.pop(it.job, None)
        self._changed.pop(it.job, None)

    def _judge_gangs(self) -> None:
        """Judge the gangs that the last cycle changed."""
        if self._rules.has("gang"):
            for name, (done, reason) in self._changed.items():
                job = self._jobs[name]
                left = len(job.placed) - len(job.victims)
                if 0 < left < job.minimum:
                    self._find("gang", name, f"{done} in part: {left} of {job.minimum} pods hold room", reason)
        self._changed.clear()


def _reason(why: Any) -> str:
    return f"{why.action} for {why.preemptor} of queue {why.preemptor_queue}"


def _add(sums: dict[str, Amounts], name: str, more: Amounts, sign: int) -> Amounts:
    held = sums.setdefault(name, {})
    for dimension, amount in more.items():
        held[dimension] = held.get(dimension, Decimal(0)) + sign * amount
    return held
