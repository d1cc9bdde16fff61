"""The plugins of a policy, tier by tier, and how their answers become one (Volcano's ``framework/session_plugins.go``).

The one rule: a hook of a plugin is asked unless the policy switches it off, in the order of tiers and plugins; how
the answers combine is a property of the hook, and stands here alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, TypeVarTuple

from ..model.job import Job
from ..model.queue import Queue
from ..model.task import Task
from ..reasons import Protection, UnschedulableReason
from . import hooks
from .hooks import HOOKS, Exclusion, Hook, Key, Vote
from .model import PluginOption

Ts = TypeVarTuple("Ts")
R = TypeVar("R")


@dataclass(slots=True)
class Registered(Generic[*Ts, R]):
    """One hook of one plugin."""

    plugin: str
    fn: Callable[[*Ts], R]


class Asked(Generic[*Ts, R]):
    """One hook of all plugins that implement it and have it switched on: ``entries`` in the order of the policy."""

    def __init__(self, method: Callable[[Any, *Ts], R]) -> None:
        self.hook: Hook = HOOKS[method.__name__]
        self.entries: list[Registered[*Ts, R]] = []
        self.functions: list[Callable[[*Ts], R]] = []
        """Those of the entries, for who asks a hundred thousand times a cycle."""
        self.only: Callable[[*Ts], R] | None = None
        """The one of them, where it is one."""
        self._tiers: dict[int, list[Registered[*Ts, R]]] = {}

    def add(self, tier: int, entry: Registered[*Ts, R]) -> None:
        self.entries.append(entry)
        self.functions.append(entry.fn)
        self.only = entry.fn if len(self.functions) == 1 else None
        self._tiers.setdefault(tier, []).append(entry)

    def by_tier(self) -> list[tuple[int, list[Registered[*Ts, R]]]]:
        """``(number of the tier, entries)``, tiers without any left out."""
        return list(self._tiers.items())


class Keys(Asked[*Ts, Key]):
    """The keys of all make one; the smaller is first."""

    def __call__(self, *args: *Ts) -> tuple[Key, ...]:
        return tuple([ask(*args) for ask in self.functions])


class AllAgree(Asked[*Ts, bool]):
    """All must agree."""

    def __call__(self, *args: *Ts) -> bool:
        for ask in self.functions:  # noqa: SIM110 - a generator would cost more than most answers
            if not ask(*args):
                return False
        return True


class OneIsEnough(Asked[*Ts, bool]):
    """One is enough."""

    def __call__(self, *args: *Ts) -> bool:
        return any(entry.fn(*args) for entry in self.entries)


class FirstTierAgrees(Asked[*Ts, bool]):
    """All of the first tier that has any must agree; without any it is no."""

    def __call__(self, *args: *Ts) -> bool:
        first = next(iter(self._tiers.values()), None)
        return first is not None and all(entry.fn(*args) for entry in first)


class Votes(Asked[*Ts, Vote]):
    """One reject decides; a permit hides the lower tiers; else it is yes."""

    def __call__(self, *args: *Ts) -> bool:
        for entries in self._tiers.values():
            permitted = False
            for entry in entries:
                vote = entry.fn(*args)
                if vote < 0:
                    return False
                permitted = permitted or vote > 0
            if permitted:
                return True
        return True


class FirstReason(Asked[*Ts, UnschedulableReason | None]):
    """The first reason stands."""

    def __call__(self, *args: *Ts) -> UnschedulableReason | None:
        return next((said for entry in self.entries if (said := entry.fn(*args)) is not None), None)


class FirstExclusion(Asked[*Ts, Exclusion | None]):
    """The first rule stands."""

    def __call__(self, *args: *Ts) -> Exclusion | None:
        return next((said for entry in self.entries if (said := entry.fn(*args)) is not None), None)


class AllReasons(Asked[*Ts, Iterable[UnschedulableReason]]):
    """All are told."""

    def __call__(self, *args: *Ts) -> list[UnschedulableReason]:
        return [said for entry in self.entries for said in entry.fn(*args)]


class Notified(Asked[*Ts, None]):
    """All are notified."""

    def __call__(self, *args: *Ts) -> None:
        for entry in self.entries:
            entry.fn(*args)


class Permitted(Asked[Task, Sequence[Task], tuple[list[Task], Vote]]):
    """What all of a tier permit; a tier that permits nothing leaves it to the next (preemption.eligibility)."""


class Protections(Asked[Task, Sequence[Task], Protection | None]):
    """One protection stands, whatever tier it comes from (preemption.eligibility)."""


class Masks(Asked[*Ts, R]):
    """All must agree, node by node (placement)."""


class Scores(Asked[*Ts, R]):
    """The sum (placement)."""


class Hooks:
    """The questions that actions ask, by the names of the hooks."""

    def __init__(self) -> None:
        self.job_order = Keys(hooks.JobOrder.job_order)
        self.task_order = Keys(hooks.TaskOrder.task_order)
        self.queue_order = Keys(hooks.QueueOrder.queue_order)
        self.victim_queue_order = Keys(hooks.VictimQueueOrder.victim_queue_order)
        self.job_valid = FirstReason(hooks.JobValid.job_valid)
        self.job_ready = AllAgree(hooks.JobReady.job_ready)
        self.job_pipelined = Votes(hooks.JobPipelined.job_pipelined)
        self.job_starving = FirstTierAgrees(hooks.JobStarving.job_starving)
        self.job_enqueueable = Votes(hooks.JobEnqueueable.job_enqueueable)
        self.job_enqueued = Notified(hooks.JobEnqueued.job_enqueued)
        self.overused = OneIsEnough(hooks.Overused.overused)
        self.allocatable = AllAgree(hooks.Allocatable.allocatable)
        self.preemptive = FirstReason(hooks.Preemptive.preemptive)
        self.reclaimable = Permitted(hooks.Reclaimable.reclaimable)
        self.preemptable = Permitted(hooks.Preemptable.preemptable)
        self.reclaim_unit = Protections(hooks.ReclaimUnit.reclaim_unit)
        self.preempt_unit = Protections(hooks.PreemptUnit.preempt_unit)
        self.feasible = Masks(hooks.Feasible.feasible)
        self.predicate = Masks(hooks.Predicate.predicate)
        self.node_rule = FirstExclusion(hooks.NodeRule.node_rule)
        self.score = Scores(hooks.Score.score)
        self.usage_score = Scores(hooks.UsageScore.usage_score)
        self.pod_score = Scores(hooks.PodScore.pod_score)
        self.reasons = AllReasons(hooks.Reasons.reasons)

    def add(self, tier: int, option: PluginOption, plugin: object, implemented: Iterable[Hook]) -> None:
        """Ask a plugin whenever one of the hooks that it implements is asked, but for those switched off."""
        for hook in implemented:
            if hook.switch is None or option.enabled(hook.switch):
                asked: Any = getattr(self, hook.name)
                asked.add(tier, Registered(option.name, getattr(plugin, hook.name)))

    def job_key(self, job: Job) -> tuple[Any, ...]:
        """A job's place among the jobs of its queue."""
        return (*[ask(job) for ask in self.job_order.functions], job.creation, job.key)

    def queue_key(self, queue: Queue) -> tuple[Any, ...]:
        """A queue's place among the queues."""
        return (*[ask(queue) for ask in self.queue_order.functions], queue.creation, queue.name)

    def task_key(self, task: Task) -> tuple[Any, ...]:
        """A task's place among the tasks of its job."""
        only = self.task_order.only
        if only is not None:  # asked of every task that waits: half as dear
            return (only(task), task.place_in_job)
        return (*[ask(task) for ask in self.task_order.functions], task.place_in_job)
