"""Two monitors of evictions over a simulated load: each eviction was needed, and those for one job are in proportion.

Both rules are those of `schedspec.monitors.evictions`, which searches a whole history. Here each eviction is judged
from the outcomes that follow it, and then forgotten:

1. Victims that a cycle could only evict together are a unit: the whole gang if no pod of it remains, else a single pod.
2. A unit was needless if it would have fitted on each of its nodes beside every pod bound there afterwards, up to the
   first end of a pod that is no victim of the same cause. If it would exceed a limit of its queue, it was needed.
3. If a unit would have fitted, later pods on that node may still prove the need: those of the preemptor, and those of
   other jobs for which the same cycle evicted, because each job may get the capacity that another job's victim frees.
4. All evictions for a job are summed until the job ends, and compared with what was bound for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...monitors import amounts
from ...monitors.amounts import NONE, Amounts
from ...monitors.evictions import disproportionate, needless
from ...monitors.gangs import SWITCHES
from ...monitors.rules import Rules
from .books import Books, Cause, LedgerJob, times

Find = Callable[..., None]


@dataclass(slots=True, eq=False)
class _Unit:
    """Victims that could only be evicted together."""

    job: LedgerJob
    cause: Cause
    pods: tuple[str, ...]
    moment: tuple[float, int]
    """Time and cycle of the eviction."""
    reason: str
    preemptors: frozenset[str]
    """The jobs for which the cycle evicted."""
    undecided: int = 0
    """Nodes on which the unit could not be judged yet."""
    needed: bool = False


@dataclass(slots=True, eq=False)
class _NodePart:
    """The pods of a unit that were evicted from one node."""

    unit: _Unit
    node: str
    pods: tuple[str, ...]
    would_hold: Amounts | None = None
    """The node's amounts after the last bind, these pods added; None before any bind or if they do not fit."""
    waits_for: set[str] = field(default_factory=set)
    """The preemptors that may still need the node for more pods."""


@dataclass(slots=True)
class _Sum:
    """The sum of what was evicted for one cause."""

    waited: int
    """Number of the preemptor's pods that waited at the first eviction."""
    evicted: Amounts = field(default_factory=dict)
    largest: Amounts = field(default_factory=dict)
    """The largest unit, by dimension."""
    bound: int = 0
    """Number of the preemptor's pods bound since then."""
    last: tuple[str, tuple[float, int], str] = ("", (0.0, 0), "")
    """The last victim's job, time and cycle, and reason."""


class Victims:
    """Judges the evictions of one run. `find` receives monitor, job, text, reason, and time and cycle of the act."""

    def __init__(self, books: Books, rules: Rules, find: Find) -> None:
        self._books, self._rules, self._find = books, rules, find
        self._new: dict[tuple[str, Cause], tuple[LedgerJob, list[str], tuple[float, int], str]] = {}
        """The evictions of a cycle, by job and cause."""
        self._open: dict[str, list[_NodePart]] = {}
        """Node → the undecided parts on it."""
        self._later: dict[str, list[_NodePart]] = {}
        """Preemptor → pods that would have fitted unless this preemptor needs the node for more pods."""
        self._limited: dict[str, list[_Unit]] = {}
        """Units by each queue with limits above them."""
        self._sums: dict[str, dict[str, _Sum]] = {}
        """Preemptor → action → sum."""

    def evicted(self, job: LedgerJob, pod: str, cause: Cause, moment: tuple[float, int], reason: str) -> None:
        """Process an eviction that the books already contain."""
        self._new.setdefault((job.name, cause), (job, [], moment, reason))[1].append(pod)

    def placed(self, job: LedgerJob, pod: str, node: str) -> None:
        """Process a bind that the books already contain."""
        self._divide()
        for part in self._open.get(node, ()):
            victim = part.unit.job
            more = victim.total(pod for pod in part.pods if victim.placed.get(pod) != node)
            part.would_hold = amounts.total((self._books.on_node.get(node, {}), more))
            if not self._fits(part):
                part.would_hold = None
        self._judge_quotas(job.queue)
        for part in self._later.get(job.name, ()):
            if part.node == node and part.would_hold is not None:
                part.would_hold = amounts.total((part.would_hold, job.of(pod)))
        for total in self._sums.get(job.name, {}).values():
            total.bound += 1
        if job.name in self._later and len(job.placed) >= job.pods:
            self._decide_later(job.name)

    def released(self, node: str, cause: Cause | None) -> None:
        """Process the end of a pod before the books do; `cause` is that of its eviction, None if it was no victim."""
        self._divide()
        open_ = self._open.get(node)
        if not open_:
            return
        self._open[node] = [part for part in open_ if part.unit.cause == cause]
        for part in open_:
            if part.unit.cause != cause:
                self._end(part)

    def job_over(self, name: str) -> None:
        """Process the end of a job or of its gang: no more pods are bound for it in this attempt."""
        if all(victim != name for victim, _ in self._new):  # else the remaining pods of the gang will still be evicted
            self._divide()
        self._decide_later(name)
        self._judge_sums(name)

    def world_changed(self, node: str = "") -> None:
        """Process that a queue or this node changes: units are judged up to now, and sums begin again."""
        self._divide()
        for part in self._open.pop(node, ()):
            self._end(part)
        for name in [*self._sums]:
            self._judge_sums(name, has_changed=True)

    def close(self) -> None:
        """Judge the remaining units at the end of the run."""
        self._divide()
        for parts in self._open.values():
            for part in parts:
                self._decide(part)
        self._open.clear()
        for name in [*self._later]:
            self._decide_later(name)
        for name in [*self._sums]:
            self._judge_sums(name)

    # ------------------------------------------------------------------------------------------------------- units

    def _divide(self) -> None:
        """Divide the evictions of the last cycle into units."""
        if not self._new:
            return
        preemptors = frozenset(cause[0] for _, cause in self._new)
        for (_, cause), (job, pods, moment, reason) in self._new.items():
            whole = self._rules.is_enabled("gang", SWITCHES.get(cause[1], "enableReclaimable"))
            for unit in [pods] if whole and not job.active else [[pod] for pod in pods]:
                self._watch(_Unit(job, cause, tuple(unit), moment, reason, preemptors))
            broken = whole and job.active < job.minimum
            self._add(job, cause, [pods] if broken else [[pod] for pod in pods], (job.name, moment, reason))
        self._new.clear()

    def _watch(self, unit: _Unit) -> None:
        by_node: dict[str, list[str]] = {}
        for pod in unit.pods:
            by_node.setdefault(unit.job.placed[pod], []).append(pod)
        unit.undecided = len(by_node)
        for name in self._books.lineage(unit.job.queue):
            if self._books.limits(name) or self._books.guarantee:
                self._limited.setdefault(name, []).append(unit)
        for node, pods in by_node.items():
            self._open.setdefault(node, []).append(_NodePart(unit, node, tuple(pods)))

    def _add(
        self, job: LedgerJob, cause: Cause, units: list[list[str]], last: tuple[str, tuple[float, int], str]
    ) -> None:
        preemptor = self._books.jobs.get(cause[0])
        if preemptor is None:
            return
        waiting = preemptor.pods - len(preemptor.placed)
        total = self._sums.setdefault(cause[0], {}).setdefault(cause[1], _Sum(waiting))
        total.last = last
        for unit in map(job.total, units):
            total.evicted = amounts.total((total.evicted, unit))
            for dimension, amount in unit.items():
                total.largest[dimension] = max(total.largest.get(dimension, NONE), amount)

    # ---------------------------------------------------------------------------------------------------- needless

    def _fits(self, part: _NodePart) -> bool:
        has = self._books.has.get(part.node)
        return has is not None and part.would_hold is not None and needless.is_within(part.would_hold, has)

    def _judge_quotas(self, queue: str) -> None:
        """Mark after a bind the units that were needed because of the limits of a queue, not of a node."""
        for name in self._books.lineage(queue):
            units = [unit for unit in self._limited.get(name, ()) if unit.undecided and not unit.needed]
            for unit in units:
                job = unit.job
                more = job.total(pod for pod in unit.pods if pod not in job.placed or pod in job.victims)
                held = amounts.total((self._books.below(name), more))
                within = needless.is_within(held, self._books.limits(name))
                unit.needed = not (within and self._books.leaves_guarantees(more))
            if name in self._limited:
                self._limited[name] = units

    def _end(self, part: _NodePart) -> None:
        """Process that later binds on the node show less: an unrelated pod ended there, or the node changes."""
        preemptors = [self._books.jobs.get(name) for name in part.unit.preemptors] if self._fits(part) else []
        part.waits_for = {job.name for job in preemptors if job is not None and len(job.placed) < job.pods}
        for name in sorted(part.waits_for):
            self._later.setdefault(name, []).append(part)
        if not part.waits_for:
            self._decide(part)

    def _decide_later(self, preemptor: str) -> None:
        for part in self._later.pop(preemptor, ()):
            part.waits_for.discard(preemptor)
            if not part.waits_for:
                self._decide(part)

    def _decide(self, part: _NodePart) -> None:
        unit = part.unit
        unit.undecided -= 1
        unit.needed = unit.needed or not self._fits(part)
        if not unit.undecided and not unit.needed:
            text = f"evicted although {part.node} had capacity for it and for all pods bound since"
            self._find(needless.NAME, unit.job.name, text, unit.reason, unit.moment)

    # -------------------------------------------------------------------------------------------- disproportionate

    def _judge_sums(self, preemptor: str, *, has_changed: bool = False) -> None:
        """Judge what was evicted for a job; before a change of the cluster, all its pods that waited may be bound."""
        sums = self._sums.pop(preemptor, None)
        job = self._books.jobs.get(preemptor)
        if sums is None or job is None:
            return
        for action, total in sums.items():
            pods = total.waited if has_changed else total.bound or total.waited
            requested = times(job.requests, pods)
            cause = f"{action} for {preemptor}"
            if text := disproportionate.excess(cause, total.evicted, requested, total.largest, pods):
                about, moment, reason = total.last
                self._find(disproportionate.NAME, about, text, reason, moment)


def cause_of(reason: Any) -> Cause:
    """Return the cause that an eviction's reason names."""
    return reason.preemptor, reason.action
