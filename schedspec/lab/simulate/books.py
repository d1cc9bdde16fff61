"""Sum the resources that jobs, nodes and queues of a simulated load hold; each outcome updates the sums."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ...monitors import amounts
from ...monitors.amounts import NONE, Amounts
from ...monitors.queues import usage
from ...monitors.queues.unused import CLUSTER, UnusedGuarantees
from ...monitors.rules import Rules

Cause = tuple[str, str]
"""The job for which a pod is evicted, and the action."""


@dataclass(slots=True)
class Loss:
    """The pods that a job lost to one preemptor."""

    pods: set[str]
    changes: int
    """`Monitors._changes` at the time of the loss."""
    passed_in: int | None = None
    """The cycle in which the preemptor lost the capacity to something other than this job; None if it did not."""
    passed_to: str = ""
    """The job to which the capacity passed, if the preemptor had lost none to that job before."""


@dataclass(slots=True)
class Job:
    """A job that has not ended."""

    name: str
    queue: str
    pods: int
    minimum: int
    requests: Amounts
    """Request of each pod."""
    preemptable: bool
    placed: dict[str, str] = field(default_factory=dict)
    """Pod → node, including victims that still terminate."""
    victims: dict[str, Cause] = field(default_factory=dict)
    lost: dict[str, Loss] = field(default_factory=dict)
    """Preemptor → the last pods that this job lost to it."""
    evicted: set[str] = field(default_factory=set)
    """Jobs that were evicted for this job and did not get the capacity back."""
    freed: Amounts = field(default_factory=dict)
    """The requests of pods evicted for this job, minus the requests of its pods placed since."""

    @property
    def active(self) -> int:
        """Number of placed pods that are not victims."""
        return len(self.placed) - len(self.victims)


class Books:
    """The sums. A queue holds the requests of its pods except victims; a node those of all its pods."""

    def __init__(self, nodes: Iterable[Any], queues: Iterable[Any], rules: Rules) -> None:
        self.jobs: dict[str, Job] = {}
        self.has = {
            node.metadata.name: amounts.parse(node.status.allocatable or node.status.capacity) for node in nodes
        }
        self.on_node: dict[str, Amounts] = {}
        specs = {queue.metadata.name: queue.spec for queue in queues}
        self.capability = {name: usage.limits(spec.capability, rules) for name, spec in specs.items()}
        guaranteed = {name: spec.guarantee for name, spec in specs.items()}
        self.guarantee = {
            name: found
            for name, guarantee in guaranteed.items()
            if name != usage.ROOT and (found := amounts.parse(guarantee.resource if guarantee is not None else None))
        }
        """The guarantees of the queues that have one."""
        self.closed_to_reclaim = {name for name, spec in specs.items() if spec.reclaimable is False}
        self._is_tree, self._keeps_guarantees = rules.is_tree, rules.queue_plugin in usage.GUARANTEED
        self._parents = {name: spec.parent for name, spec in specs.items()} if rules.is_tree else {}
        self._lineages: dict[str, tuple[str, ...]] = {}
        self.own: dict[str, Amounts] = {}
        """Amounts that a queue holds without its descendants."""
        self.below: dict[str, Amounts] = {}
        """Amounts that a queue holds with its descendants."""
        self.free = amounts.total(self.has.values())
        """Amounts on all nodes that no queue holds."""
        self._total = dict(self.free)
        parents = {name: self.lineage(name)[1:2] for name in specs if name != usage.ROOT}
        self.unused = UnusedGuarantees(
            {name: above[0] if above else CLUSTER for name, above in parents.items()},
            self.guarantee,
            lambda name: self.below.get(name, {}),
        )
        self._limits: dict[str, Amounts] = {}

    def lineage(self, queue: str) -> tuple[str, ...]:
        """Return the queue and, where queues form a tree, its ancestors below the root."""
        found = self._lineages.get(queue)
        if found is None:
            names, name = [], queue
            while name and name not in names and name != usage.ROOT:
                names.append(name)
                name = self._parents.get(name) or ""
            found = self._lineages[queue] = tuple(names)
        return found

    def limits(self, queue: str) -> Amounts:
        """Return the upper limits of a queue: its capability, and what the guarantees of other queues leave."""
        found = self._limits.get(queue)
        if found is None:
            remainder: Amounts = {}
            if self._keeps_guarantees:
                others = [usage.Guaranteed(it, self._parents.get(it) or "", own) for it, own in self.guarantee.items()]
                remainder = usage.left_by_guarantees(self._total, others, self.lineage(queue), is_tree=self._is_tree)
            found = self._limits[queue] = usage.lowest(remainder, self.capability.get(queue, {}))
        return found

    def leaves_guarantees(self, more: Amounts) -> bool:
        """Whether what queues are guaranteed and do not use would be free if evicted pods still held `more`."""
        return not self._keeps_guarantees or all(
            self.free.get(name, NONE) - amount >= below
            for name, amount in more.items()
            if amount > 0 and (below := self.unused.below(CLUSTER, name)) > 0
        )

    def kept(self, queue: str) -> Amounts:
        """Return the capacity of evicted pods that the scheduler reserves for waiting jobs of a queue."""
        waiting = (job for job in self.jobs.values() if job.freed and queue in self.lineage(job.queue))
        return amounts.total(amounts.at_most(job.freed, times(job.requests, job.pods - job.active)) for job in waiting)

    def place(self, job: Job, pod: str, node: str) -> None:
        job.placed[pod] = node
        job.freed = {name: max(amount - job.requests.get(name, NONE), NONE) for name, amount in job.freed.items()}
        add(self.on_node, node, job.requests, 1)
        self._hold(job, 1)

    def evict(self, job: Job, pod: str, cause: Cause) -> None:
        job.victims[pod] = cause
        self._hold(job, -1)
        if (preemptor := self.jobs.get(cause[0])) is not None:
            preemptor.freed = amounts.total((preemptor.freed, job.requests))

    def release(self, job: Job, pod: str) -> None:
        add(self.on_node, job.placed.pop(pod), job.requests, -1)
        if job.victims.pop(pod, None) is None:
            self._hold(job, -1)

    def _hold(self, job: Job, sign: int) -> None:
        add(self.own, job.queue, job.requests, sign)
        for name in self.lineage(job.queue):
            add(self.below, name, job.requests, sign)
        for dimension, amount in job.requests.items():
            self.free[dimension] = self.free.get(dimension, NONE) - sign * amount


def add(sums: dict[str, Amounts], name: str, more: Amounts, sign: int) -> Amounts:
    """Add an amount to one of the sums; return that sum."""
    held = sums.setdefault(name, {})
    for dimension, amount in more.items():
        held[dimension] = held.get(dimension, NONE) + sign * amount
    return held


def times(requests: Amounts, pods: int) -> Amounts:
    """Return the requests of this many equal pods."""
    return {dimension: amount * Decimal(pods) for dimension, amount in requests.items()}
