"""The hooks that actions call on plugins (Volcano's `framework/session_plugins.go`).

A hook is a Protocol with one method of the same name. A plugin implements a hook by deriving from it, so that mypy
checks the method's signature. The policy file can switch a hook off (`SWITCHES`). `scheduler.policy.tiers` combines the
answers of several plugins. Orders are keys, not comparisons: the smaller key comes first.
"""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ..model.job import Job
from ..model.nodes import Amounts, Mask, NodeInfo, Vector
from ..model.queue import Queue
from ..model.resources import Resource
from ..model.task import Task
from ..reasons import Protection, Rule, UnschedulableReason
from ..topology.closeness import Closeness
from ..topology.domains import DomainSet
from ..topology.subgroups import SubGroup
from .schema import SWITCHES

C = TypeVar("C", bound=type)

Exclusion = tuple[str, str]
"""A rule that excludes a node: the rule's name in `scheduler.reasons.text`, and a detail."""


Limits = tuple[tuple[Hashable, int], ...]
"""How many tasks a job can lose and still run: for each group to which a task belongs, its name and this number."""


class Key(Protocol):
    """A value that can be compared with values of its type."""

    def __lt__(self, other: Any, /) -> bool: ...


class Vote(enum.IntEnum):
    """A plugin's answer. `ABSTAIN` leaves the decision to other plugins."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook: its name, its Protocol and its switch (None if Volcano has no switch for the hook)."""

    name: str
    protocol: type
    switch: str | None

    @property
    def may_refuse(self) -> bool:
        """Whether the hook can refuse a job, and does not only rank jobs and nodes, or explain a refusal."""
        return self.name not in _RANKS_ONLY


HOOKS: dict[str, Hook] = {}
_RANKS_ONLY = frozenset(
    (
        *("job_order", "job_outranks", "task_order", "queue_order", "victim_queue_order"),
        *("score", "usage_score", "pod_score", "domain_order"),
        *("bind_annotations", "node_rule", "reasons", "veto_reason"),
    )
)


def _hook(switch: str | None) -> Callable[[C], C]:
    def declare(protocol: C) -> C:
        (name,) = protocol.__abstractmethods__  # type: ignore[attr-defined]
        assert switch is None or SWITCHES[switch]
        HOOKS[name] = Hook(name, protocol, switch)
        return protocol

    return declare


def hooks_of(plugin: type) -> tuple[Hook, ...]:
    """Return the hooks that a class implements.

    Raises:
        TypeError: A method has a hook's name, but the class does not derive from the hook.
    """
    for name, hook in HOOKS.items():
        if hasattr(plugin, name) and hook.protocol not in plugin.__mro__:
            remedy = f"derive {plugin.__name__} from scheduler.policy.hooks.{hook.protocol.__name__}"
            raise TypeError(f"{plugin.__name__}.{name} has the name of a hook; {remedy}")
    return tuple(hook for hook in HOOKS.values() if hook.protocol in plugin.__mro__)


# -------------------------------------------------------------------------------------------------------------- orders


@_hook("enableJobOrder")
class JobOrder(Protocol):
    @abstractmethod
    def job_order(self, job: Job) -> Key:
        """Return a key; the job with the smallest key of a queue is served first (JobOrderFn)."""


@_hook("enableJobOrder")
class JobOutranks(Protocol):
    @abstractmethod
    def job_outranks(self, job: Job, other: Job) -> bool:
        """Whether the job gets capacity that was freed for a waiting job of the same queue."""


@_hook("enableTaskOrder")
class TaskOrder(Protocol):
    @abstractmethod
    def task_order(self, task: Task) -> Key:
        """Return a key; the task with the smallest key of a job is served first (TaskOrderFn)."""


@_hook("enableQueueOrder")
class QueueOrder(Protocol):
    @abstractmethod
    def queue_order(self, queue: Queue) -> Key:
        """Return a key; the queue with the smallest key is served first (QueueOrderFn)."""


@_hook(None)
class VictimQueueOrder(Protocol):
    @abstractmethod
    def victim_queue_order(self, queue: Queue, preemptor: Queue) -> Key:
        """Return a key; victims are evicted from the queue with the smallest key first (VictimQueueOrderFn)."""


# ---------------------------------------------------------------------------------------------------------------- jobs


@_hook(None)
class JobValid(Protocol):
    @abstractmethod
    def job_valid(self, job: Job) -> UnschedulableReason | None:
        """Return the reason why the job cannot be scheduled at all, or None (JobValidFn)."""


@_hook("enableJobReady")
class JobReady(Protocol):
    @abstractmethod
    def job_ready(self, job: Job) -> bool:
        """Whether enough of the job is placed to start it (JobReadyFn)."""


@_hook("enableJobPipelined")
class JobPipelined(Protocol):
    @abstractmethod
    def job_pipelined(self, job: Job) -> Vote:
        """Whether the job can start once the resources that it waits for are free (JobPipelinedFn)."""


@_hook("enableJobPipelined")
class JobReachable(Protocol):
    @abstractmethod
    def job_reachable(self, job: Job, more: int) -> bool:
        """Whether the job could start if `more` of its waiting tasks fitted."""


@_hook("enableJobStarving")
class JobStarving(Protocol):
    @abstractmethod
    def job_starving(self, job: Job) -> bool:
        """Whether other jobs may be evicted for the job (JobStarvingFn)."""


@_hook("enableJobEnqueued")
class JobEnqueueable(Protocol):
    @abstractmethod
    def job_enqueueable(self, job: Job) -> Vote:
        """Whether the job may be admitted (JobEnqueueableFn)."""


@_hook(None)
class JobEnqueued(Protocol):
    @abstractmethod
    def job_enqueued(self, job: Job) -> None:
        """Called after the job was admitted (JobEnqueuedFn)."""


# -------------------------------------------------------------------------------------------------------------- queues


@_hook("enabledOverused")
class Overused(Protocol):
    @abstractmethod
    def overused(self, queue: Queue) -> bool:
        """Whether the queue is skipped in this cycle (OverusedFn)."""


@_hook("enabledAllocatable")
class Allocatable(Protocol):
    @abstractmethod
    def allocatable(self, queue: Queue, task: Task) -> bool:
        """Whether the queue may hold this task in addition (AllocatableFn)."""


@_hook("enablePreemptive")
class Preemptive(Protocol):
    @abstractmethod
    def preemptive(self, queue: Queue, task: Task) -> UnschedulableReason | None:
        """Return the reason why the queue may not reclaim for this task, or None (PreemptiveFn)."""


@_hook("enablePreemptive")
class PreemptiveGang(Protocol):
    @abstractmethod
    def preemptive_gang(self, queue: Queue, tasks: Sequence[Task]) -> UnschedulableReason | None:
        """Return why the queue may not reclaim for all these tasks of a job, whatever is evicted; None if it may."""


@_hook("enablePreemptive")
class PreemptiveInstead(Protocol):
    @abstractmethod
    def preemptive_instead(
        self, queue: Queue, tasks: Sequence[Task], others: Sequence[Task]
    ) -> UnschedulableReason | None:
        """Return why the queue may not use for `tasks` what it reclaimed for `others`; None if it may."""


# ------------------------------------------------------------------------------------------------------------- victims


@_hook("enableReclaimable")
class Reclaimable(Protocol):
    @abstractmethod
    def reclaimable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """Return the candidates in other queues that the preemptor may evict, and the vote (ReclaimableFn)."""


@_hook("enablePreemptable")
class Preemptable(Protocol):
    @abstractmethod
    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """Return the candidates in the same queue that the preemptor may evict, and the vote (PreemptableFn)."""


@_hook("enableReclaimable")
class ReclaimUnit(Protocol):
    @abstractmethod
    def reclaim_unit(self, preemptor: Task, unit: Sequence[Task]) -> Protection | None:
        """Return why a unit (a task or a whole gang) may not be reclaimed, in any tier; None if it may be."""


@_hook("enablePreemptable")
class PreemptUnit(Protocol):
    @abstractmethod
    def preempt_unit(self, preemptor: Task, unit: Sequence[Task]) -> Protection | None:
        """Return why a unit (a task or a whole gang) may not be preempted, in any tier; None if it may be."""


@_hook("enableReclaimable")
class ReclaimSpare(Protocol):
    @abstractmethod
    def reclaim_spare(self, job: Job, task: Task) -> Limits:
        """Return the limits on reclaiming the job's tasks one by one; beyond them the job is reclaimed as a whole."""


@_hook("enablePreemptable")
class PreemptSpare(Protocol):
    @abstractmethod
    def preempt_spare(self, job: Job, task: Task) -> Limits:
        """Return the limits on preempting the job's tasks one by one; beyond them the job is preempted as a whole."""


@_hook("enablePredicate")
class VictimGroups(Protocol):
    @abstractmethod
    def victim_groups(self, preemptor: Task, node: NodeInfo) -> Iterable[frozenset[str]]:
        """Yield sets of task keys on a node, each of which holds what the preemptor needs (for example one card)."""


@_hook(None)
class VetoReason(Protocol):
    @abstractmethod
    def veto_reason(self, preemptor: Task, unit: Sequence[Task]) -> Rule | None:
        """Return why the plugin's vote in its tier does not permit the unit."""


class ReclaimableByUnit(Reclaimable):
    """A plugin that permits every candidate in its tier: its `reclaim_unit` or `reclaim_spare` decides."""

    def reclaimable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:  # noqa: ARG002
        return list(candidates), Vote.PERMIT


class PreemptableByUnit(Preemptable):
    """A plugin that permits every candidate in its tier: its `preempt_unit` or `preempt_spare` decides."""

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:  # noqa: ARG002
        return list(candidates), Vote.PERMIT


class Evictable(Reclaimable, Preemptable):
    """A plugin that answers `reclaimable` and `preemptable` alike."""

    @abstractmethod
    def evictable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """Return the candidates that the preemptor may evict, and the vote."""

    def reclaimable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        return self.evictable(preemptor, candidates)

    preemptable = reclaimable


class EvictUnit(ReclaimUnit, PreemptUnit):
    """A plugin that answers `reclaim_unit` and `preempt_unit` alike."""

    @abstractmethod
    def evict_unit(self, preemptor: Task, unit: Sequence[Task]) -> Protection | None:
        """Return why a unit (a task or a whole gang) may not be evicted, in any tier; None if it may be."""

    def reclaim_unit(self, preemptor: Task, unit: Sequence[Task]) -> Protection | None:
        return self.evict_unit(preemptor, unit)

    preempt_unit = reclaim_unit


class EvictSpare(ReclaimSpare, PreemptSpare):
    """A plugin that answers `reclaim_spare` and `preempt_spare` alike."""

    @abstractmethod
    def evict_spare(self, job: Job, task: Task) -> Limits:
        """Return the limits on evicting the job's tasks one by one; beyond them the job is evicted as a whole."""

    def reclaim_spare(self, job: Job, task: Task) -> Limits:
        return self.evict_spare(job, task)

    preempt_spare = reclaim_spare


class EvictableByUnit(ReclaimableByUnit, PreemptableByUnit):
    """A plugin that permits every candidate in its tier: its `evict_unit` or `evict_spare` decides."""


# --------------------------------------------------------------------------------------------------------------- nodes


@_hook("enablePredicate")
class NodeScope(Protocol):
    @abstractmethod
    def node_scope(self, task: Task) -> Hashable:
        """Return what beside a task's shape decides which nodes it may use, such as its queue."""


@_hook("enablePredicate")
class Feasible(Protocol):
    @abstractmethod
    def feasible(self, task: Task) -> Mask:
        """Return a mask over the nodes from their objects alone; constant for a shape and a scope in a cycle."""


@_hook("enablePredicate")
class Predicate(Protocol):
    @abstractmethod
    def predicate(self, task: Task, future: bool) -> Mask | None:
        """Return a mask over the nodes from the pods on them, or None if these do not matter to the task (PredicateFn).

        With `future`, releasing pods count as deleted and pipelined pods as placed.
        """


@_hook("enablePredicate")
class NodeRule(Protocol):
    @abstractmethod
    def node_rule(self, task: Task, node: NodeInfo) -> Exclusion | None:
        """Return the rule by which a mask excludes the node, or None. Users see it as a reason."""


@_hook("enableNodeOrder")
class Score(Protocol):
    @abstractmethod
    def score(self, task: Task, feasible: Mask) -> Vector | None:
        """Return a score for each node from the nodes' objects alone, or None (NodeOrderFn)."""


@_hook("enableNodeOrder")
class UsageScore(Protocol):
    @abstractmethod
    def usage_score(self, task: Task, used: Amounts, allocatable: Amounts) -> Vector:
        """Return scores for arrays of amounts [..., dimensions]; `used` includes the task (NodeOrderFn)."""


@_hook("enableNodeOrder")
class PodScore(Protocol):
    @abstractmethod
    def pod_score(self, task: Task, feasible: Mask) -> Vector | None:
        """Return a score for each node from the pods on it, or None (BatchNodeOrderFn)."""


@_hook(None)
class BindAnnotations(Protocol):
    @abstractmethod
    def bind_annotations(self, task: Task) -> Mapping[str, str]:
        """Return the annotations that a task gets together with its node, such as its cards."""


# ------------------------------------------------------------------------------------------------------------- domains


@_hook("enabledHyperNodeGradient")
class DomainGradient(Protocol):
    @abstractmethod
    def closeness(self, job: Job, group: SubGroup | None) -> Closeness | None:
        """Return how close the pods of a job, or of a subgroup, have to be; None for no limit."""


@_hook("enabledHyperNodeOrder")
class DomainOrder(Protocol):
    @abstractmethod
    def domain_order(self, request: Resource, domains: DomainSet) -> Vector:
        """Return a score for each of some domains, for a gang that requests this much (HyperNodeOrderFn)."""


# ------------------------------------------------------------------------------------------------------------- reasons


@_hook(None)
class Reasons(Protocol):
    @abstractmethod
    def reasons(self, job: Job, task: Task | None) -> Iterable[UnschedulableReason]:
        """Yield the reasons against placing `task`, or against admitting `job` if `task` is None."""
