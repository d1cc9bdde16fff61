"""What lives in a cluster, for the ledger: jobs with their pods, the acts on these, what queues hold, what changes."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..api.kinds import Kind
from .amounts import NONE, Amounts, Object
from .rules import lineage

_MODE = "schedspec.dev/disruption-mode"
_OF_KUBERNETES = (Kind.GANG, Kind.GANG_ALPHA)


@dataclass(frozen=True, slots=True)
class Violation:
    """A violation of a rule. `time` is on the ledger's clock, `about` names the pod or the PodGroup."""

    monitor: str
    time: float
    about: str
    text: str
    is_bind: bool = False
    """Whether a bind broke the rule. The pod may be evicted in the same moment."""
    job: str = ""
    cycle: int = 0
    action: str = ""
    reason: str = ""
    pod: str = ""
    """Key of the pod; empty if it is about a PodGroup."""


@dataclass(slots=True, eq=False)
class Eviction:
    """An eviction of a pod, as the scheduler explains it."""

    cause: str
    """The action and the preemptor: the message without its details."""
    action: str
    """`reclaim` or `preempt`, if the scheduler reports it."""
    message: str
    preemptors: Sequence[str]
    at: float
    number: int
    cycle: int
    changed: int = 0
    """Number of the last change of a node or a queue before it. A change begins a new decision for the same cause."""


@dataclass(slots=True, eq=False)
class Job:
    """A PodGroup or a Workload of Kueue with its pods; `key` is empty for pods of neither."""

    key: str
    groups: dict[Kind, Object] = field(default_factory=dict)
    queue: str = ""
    minimum: int = 0
    pods: dict[str, Pod] = field(default_factory=dict)
    waiting: dict[str, Pod] = field(default_factory=dict)
    """Its pods that have no node yet, in the order of their creation."""
    active: int = 0
    """Number of its pods that occupy capacity and do not leave."""
    claimed: int = 0
    """Number of the last eviction for this job in the ledger; 0 if there was none."""
    freed: Amounts = field(default_factory=dict)
    """The requests of pods evicted for this job, minus those of its pods bound since."""
    bound: int = 0
    """Number of its last bind in the ledger, and the same for its other acts; 0 if there was none."""
    evicted: int = 0
    ended: int = 0
    lost_to: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Job → numbers of the first and the last eviction of this job's pods for it."""
    last_evicted: dict[tuple[str, str], int] = field(default_factory=dict)
    """Pod and cause → number of the last eviction of a pod of this name for this cause."""

    @property
    def group(self) -> Object | None:
        return self.groups.get(Kind.PODGROUP)

    @property
    def gang(self) -> Object | None:
        """The group that says how many of its pods start together: of Volcano, else of Kubernetes."""
        return self.group or next((self.groups[kind] for kind in _OF_KUBERNETES if kind in self.groups), None)

    @property
    def loses_single_pods(self) -> bool:
        """Whether its disruption mode permits the eviction of single pods."""
        if self.group is not None:
            return (self.group["metadata"].get("annotations") or {}).get(_MODE) == "pod"
        mode = ((self.gang or {}).get("spec") or {}).get("disruptionMode")
        return mode != "PodGroup" and "all" not in (mode or ())  # of v1alpha2, and of v1beta1

    def waits_since(self, number: int) -> bool:
        """Whether a pod waits that was created before an act."""
        first = next(iter(self.waiting.values()), None)
        return first is not None and first.created < number


@dataclass(slots=True, eq=False)
class Pod:
    """A pod. What has a monitor of it may outlive it: it then keeps its last state."""

    key: str
    uid: str
    job: Job
    created: int
    """Number of its first version in the ledger."""
    requests: Amounts
    source: Any = None
    """Its last version, for `Ledger.shown`."""
    node: str = ""
    over: str = ""
    """`Succeeded` or `Failed`, or empty."""
    is_leaving: bool = False
    is_nominated: bool = False
    bound: int = 0
    """Number of its bind in the ledger; 0 if it was not bound."""
    eviction: Eviction | None = None

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def holds(self) -> bool:
        """Whether it occupies capacity on its node. A pod that is leaving still does."""
        return bool(self.node) and not self.over

    @property
    def keeps(self) -> bool:
        """Whether it occupies capacity on its node and is not leaving."""
        return bool(self.node) and not self.over and not self.is_leaving and self.eviction is None


_ENDS, _JOBS = 64, 8
"""How many of the last ends of pods, and of the last changes of jobs, are kept."""


class Changes:
    def __init__(self) -> None:
        self.of_cluster = 0
        """Number of the last change of a node or a queue."""
        self._of_jobs: dict[str, int] = {}
        """Number of the last creation or deletion of a job, for the last few of them."""
        self._ends: list[tuple[int, int]] = []
        """Pods that ended by themselves: the number of the last eviction of their job, and of their end.

        Both grow: an end that a later one of a job evicted earlier makes superfluous is not kept.
        """

    def of_job(self, key: str, number: int) -> None:
        """Note that a job was created or deleted."""
        self._of_jobs.pop(key, None)
        self._of_jobs[key] = number
        if len(self._of_jobs) > _JOBS:
            del self._of_jobs[next(iter(self._of_jobs))]

    def of_pod(self, evicted: int, number: int) -> None:
        """Note that a pod ended by itself; `evicted` is the number of the last eviction of its job."""
        while self._ends and self._ends[-1][0] >= evicted:
            self._ends.pop()
        self._ends.append((evicted, number))
        del self._ends[:-_ENDS]

    def since(self, number: int, own: set[str]) -> bool:
        """Whether something changed after an act: a node, a queue, a job not in `own`, or a pod ended by itself.

        Pods of a job that was evicted since may end as a consequence.
        """
        if self.of_cluster > number or any(at > number for key, at in self._of_jobs.items() if key not in own):
            return True
        index = bisect.bisect_right(self._ends, number, key=lambda end: end[0]) - 1
        return index >= 0 and self._ends[index][1] > number


class QueueSums:
    """The holdings of each queue, alone and, if queues form a tree (`is_tree`), with its descendants."""

    def __init__(self, *, is_tree: bool = False) -> None:
        self.own: dict[str, Amounts] = {}
        """Without descendants. A sum that changes is a new object."""
        self.below: dict[str, Amounts] = {}
        self._is_tree = is_tree
        self._parents: dict[str, str] = {}
        self._lines: dict[str, tuple[str, ...]] = {}

    def line(self, queue: str) -> tuple[str, ...]:
        found = self._lines.get(queue)
        if found is None:
            found = self._lines[queue] = tuple(lineage(queue, lambda name: self._parents.get(name, "")))
        return found

    def hold(self, queue: str, held: Amounts, sign: int) -> None:
        """Add to a queue and its ancestors."""
        add(self.own, queue, held, sign)
        for name in self.line(queue):
            add(self.below, name, held, sign)

    def put(self, queue: str, parent: str) -> None:
        """Place a queue in the tree; without a parent, it has no place."""
        if not self._is_tree or self._parents.get(queue, "") == parent:
            return
        self._parents[queue] = parent
        if not parent:
            del self._parents[queue]
        self._lines.clear()
        self.below = {}
        for own, held in self.own.items():
            for above in self.line(own):
                add(self.below, above, held, 1)


def change(held: Amounts, more: Amounts, sign: int) -> None:
    """Add amounts in place."""
    for dimension, amount in more.items():
        held[dimension] = held.get(dimension, NONE) + sign * amount


def add(sums: dict[str, Amounts], name: str, part: Amounts, sign: int) -> None:
    """Add to the sum of a queue or group, as a new object: yielded sums do not change. The name "" has no sum."""
    if not name:
        return
    after = {**sums.pop(name, {})}
    change(after, part, sign)
    if not all(after.values()):
        after = {dimension: amount for dimension, amount in after.items() if amount}
    if after:
        sums[name] = after
