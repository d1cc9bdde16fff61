"""The hooks: what the actions ask of plugins (Volcano's ``framework/session_plugins.go``).

A hook is a Protocol with one method, named alike. A plugin implements it by deriving from it, so that mypy compares its
method with the hook's; the policy file can switch it off (:data:`~.schema.SWITCHES`). How several answers become one is
told by :mod:`scheduler.policy.tiers`. Orders are keys, not comparisons: the smaller key comes first.
"""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ..model.job import Job
from ..model.nodes import Amounts, Mask, NodeInfo, Vector
from ..model.queue import Queue
from ..model.task import Task
from ..reasons import Protection, UnschedulableReason
from .schema import SWITCHES

C = TypeVar("C", bound=type)

Exclusion = tuple[str, str]
"""A rule that leaves a node out, by a name that :mod:`scheduler.reasons.text` has words for, and what of it."""


class Key(Protocol):
    """What can be compared with its like."""

    def __lt__(self, other: Any, /) -> bool: ...


class Vote(enum.IntEnum):
    """A plugin's answer. Abstaining leaves the question to the others."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook's name, its Protocol, and the switch of it (None where Volcano has none)."""

    name: str
    protocol: type
    switch: str | None


HOOKS: dict[str, Hook] = {}


def _hook(switch: str | None) -> Callable[[C], C]:
    def declare(protocol: C) -> C:
        (name,) = protocol.__abstractmethods__  # type: ignore[attr-defined]
        assert switch is None or SWITCHES[switch]
        HOOKS[name] = Hook(name, protocol, switch)
        return protocol

    return declare


def hooks_of(plugin: type) -> tuple[Hook, ...]:
    """The hooks that a class implements.

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
        """A key; of a queue's jobs the one with the smaller key is served first (JobOrderFn)."""


@_hook("enableTaskOrder")
class TaskOrder(Protocol):
    @abstractmethod
    def task_order(self, task: Task) -> Key:
        """A key; of a job's tasks the one with the smaller key is served first (TaskOrderFn)."""


@_hook("enableQueueOrder")
class QueueOrder(Protocol):
    @abstractmethod
    def queue_order(self, queue: Queue) -> Key:
        """A key; the queue with the smaller key is served first (QueueOrderFn)."""


@_hook(None)
class VictimQueueOrder(Protocol):
    @abstractmethod
    def victim_queue_order(self, queue: Queue, preemptor: Queue) -> Key:
        """A key; the queue with the smaller key gives to the preemptor's queue first (VictimQueueOrderFn)."""


# ---------------------------------------------------------------------------------------------------------------- jobs


@_hook(None)
class JobValid(Protocol):
    @abstractmethod
    def job_valid(self, job: Job) -> UnschedulableReason | None:
        """Why the job cannot be scheduled at all, or None (JobValidFn)."""


@_hook("enableJobReady")
class JobReady(Protocol):
    @abstractmethod
    def job_ready(self, job: Job) -> bool:
        """Whether the job has enough to start (JobReadyFn)."""


@_hook("enableJobPipelined")
class JobPipelined(Protocol):
    @abstractmethod
    def job_pipelined(self, job: Job) -> Vote:
        """Whether the job could start once what it waits for is free (JobPipelinedFn)."""


@_hook("enableJobStarving")
class JobStarving(Protocol):
    @abstractmethod
    def job_starving(self, job: Job) -> bool:
        """Whether others may be evicted for the job (JobStarvingFn)."""


@_hook("enableJobEnqueued")
class JobEnqueueable(Protocol):
    @abstractmethod
    def job_enqueueable(self, job: Job) -> Vote:
        """Whether the job may be admitted (JobEnqueueableFn)."""


@_hook(None)
class JobEnqueued(Protocol):
    @abstractmethod
    def job_enqueued(self, job: Job) -> None:
        """The job has been admitted (JobEnqueuedFn)."""


# -------------------------------------------------------------------------------------------------------------- queues


@_hook("enabledOverused")
class Overused(Protocol):
    @abstractmethod
    def overused(self, queue: Queue) -> bool:
        """Whether the queue is passed over in this cycle (OverusedFn)."""


@_hook("enabledAllocatable")
class Allocatable(Protocol):
    @abstractmethod
    def allocatable(self, queue: Queue, task: Task) -> bool:
        """Whether the queue may hold this task too (AllocatableFn)."""


@_hook("enablePreemptive")
class Preemptive(Protocol):
    @abstractmethod
    def preemptive(self, queue: Queue, task: Task) -> UnschedulableReason | None:
        """Why the queue may not reclaim for this task, or None (PreemptiveFn)."""


# ------------------------------------------------------------------------------------------------------------- victims


@_hook("enableReclaimable")
class Reclaimable(Protocol):
    @abstractmethod
    def reclaimable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """The candidates of another queue that may be evicted for the preemptor, and the vote (ReclaimableFn)."""


@_hook("enablePreemptable")
class Preemptable(Protocol):
    @abstractmethod
    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """The candidates of the same queue that may be evicted for the preemptor, and the vote (PreemptableFn)."""


@_hook("enableReclaimable")
class ReclaimUnit(Protocol):
    @abstractmethod
    def reclaim_unit(self, preemptor: Task, unit: Sequence[Task]) -> Protection | None:
        """Why a unit, a task or a whole gang as one, is not reclaimed, whatever tier decides; None if it may be."""


@_hook("enablePreemptable")
class PreemptUnit(Protocol):
    @abstractmethod
    def preempt_unit(self, preemptor: Task, unit: Sequence[Task]) -> Protection | None:
        """Why a unit, a task or a whole gang as one, is not preempted, whatever tier decides; None if it may be."""


class ReclaimableByUnit(Reclaimable):
    """A plugin whose vote in its tier is what its ``reclaim_unit`` says."""

    def reclaimable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:  # noqa: ARG002
        return list(candidates), Vote.PERMIT


class PreemptableByUnit(Preemptable):
    """A plugin whose vote in its tier is what its ``preempt_unit`` says."""

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:  # noqa: ARG002
        return list(candidates), Vote.PERMIT


# --------------------------------------------------------------------------------------------------------------- nodes


@_hook("enablePredicate")
class Feasible(Protocol):
    @abstractmethod
    def feasible(self, task: Task) -> Mask:
        """A mask over the nodes, from their objects alone: for a shape the same throughout a cycle (PredicateFn)."""


@_hook("enablePredicate")
class Predicate(Protocol):
    @abstractmethod
    def predicate(self, task: Task, future: bool) -> Mask | None:
        """A mask over the nodes, from what runs on them; None if that is all one to the task (PredicateFn).

        With ``future``, releasing pods count as gone and pipelined ones as come.
        """


@_hook("enablePredicate")
class NodeRule(Protocol):
    @abstractmethod
    def node_rule(self, task: Task, node: NodeInfo) -> Exclusion | None:
        """The rule by which the two masks leave the node out, or None: what users are told."""


@_hook("enableNodeOrder")
class Score(Protocol):
    @abstractmethod
    def score(self, task: Task, feasible: Mask) -> Vector | None:
        """A score for each node, from the nodes' objects alone, or None (NodeOrderFn)."""


@_hook("enableNodeOrder")
class UsageScore(Protocol):
    @abstractmethod
    def usage_score(self, task: Task, used: Amounts, allocatable: Amounts) -> Vector:
        """Scores for arrays of amounts [..., dimensions]; ``used`` includes the task (NodeOrderFn)."""


@_hook("enableNodeOrder")
class PodScore(Protocol):
    @abstractmethod
    def pod_score(self, task: Task, feasible: Mask) -> Vector | None:
        """A score for each node, from what runs on them, or None (BatchNodeOrderFn)."""


# ------------------------------------------------------------------------------------------------------------- reasons


@_hook(None)
class Reasons(Protocol):
    @abstractmethod
    def reasons(self, job: Job, task: Task | None) -> Iterable[UnschedulableReason]:
        """What stands in the way of placing ``task``; of admitting ``job`` where ``task`` is None."""
