"""The plugins of a policy by tiers, and the combination of their answers (Volcano's `framework/session_plugins.go`).

The hooks of plugins are called in the order of tiers and plugins, except for hooks that the policy switches off. How
answers combine is a property of the hook and is implemented only here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar, TypeVarTuple

import numpy as np

from ..model.job import Job
from ..model.nodes import NodeInfo, Vector
from ..model.queue import Queue
from ..model.resources import Resource
from ..model.task import Task
from ..reasons import Protection, Rule, UnschedulableReason
from ..topology.closeness import Closeness
from ..topology.domains import DomainSet
from ..topology.subgroups import SubGroup
from . import hooks
from .hooks import HOOKS, Exclusion, Hook, Key, Limits, Vote
from .model import PluginOption

Ts = TypeVarTuple("Ts")
R = TypeVar("R")


@dataclass(slots=True)
class Registered(Generic[*Ts, R]):
    """One hook of one plugin."""

    plugin: str
    fn: Callable[[*Ts], R]


class HookChain(Generic[*Ts, R]):
    """One hook of all plugins that implement it, unless it is switched off. `entries` are in the policy's order."""

    def __init__(self, method: Callable[[Any, *Ts], R]) -> None:
        self.hook: Hook = HOOKS[method.__name__]
        self.entries: list[Registered[*Ts, R]] = []
        self.functions: list[Callable[[*Ts], R]] = []
        """The functions of the entries, for callers that make a hundred thousand calls per cycle."""
        self.only: Callable[[*Ts], R] | None = None
        """The function, if there is exactly one."""
        self._tiers: dict[int, list[Registered[*Ts, R]]] = {}

    def add(self, tier: int, entry: Registered[*Ts, R]) -> None:
        self.entries.append(entry)
        self.functions.append(entry.fn)
        self.only = entry.fn if len(self.functions) == 1 else None
        self._tiers.setdefault(tier, []).append(entry)

    def by_tier(self) -> list[tuple[int, list[Registered[*Ts, R]]]]:
        """Return `(number of the tier, entries)` without empty tiers."""
        return list(self._tiers.items())


class Keys(HookChain[*Ts, Key]):
    """The keys of all plugins form one key; the smaller is first."""

    def __call__(self, *args: *Ts) -> tuple[Key, ...]:
        return tuple([function(*args) for function in self.functions])


class AllAgree(HookChain[*Ts, bool]):
    """All plugins must agree."""

    def __call__(self, *args: *Ts) -> bool:
        for function in self.functions:  # noqa: SIM110 - a generator would cost more than most answers
            if not function(*args):
                return False
        return True


class OneIsEnough(HookChain[*Ts, bool]):
    """One True decides."""

    def __call__(self, *args: *Ts) -> bool:
        return any(entry.fn(*args) for entry in self.entries)


class FirstTierAgrees(HookChain[*Ts, bool]):
    """All plugins of the first tier that has any must agree; if no tier has any, the answer is no."""

    def __call__(self, *args: *Ts) -> bool:
        first = next(iter(self._tiers.values()), None)
        return first is not None and all(entry.fn(*args) for entry in first)


class Votes(HookChain[*Ts, Vote]):
    """One reject decides; a permit hides the lower tiers; otherwise the answer is yes."""

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


class FirstReason(HookChain[*Ts, UnschedulableReason | None]):
    """The first reason counts."""

    def __call__(self, *args: *Ts) -> UnschedulableReason | None:
        return next((answer for entry in self.entries if (answer := entry.fn(*args)) is not None), None)


class FirstExclusion(HookChain[*Ts, Exclusion | None]):
    """The first rule counts."""

    def __call__(self, *args: *Ts) -> Exclusion | None:
        return next((answer for entry in self.entries if (answer := entry.fn(*args)) is not None), None)


class AllReasons(HookChain[*Ts, Iterable[UnschedulableReason]]):
    """All reasons are reported."""

    def __call__(self, *args: *Ts) -> list[UnschedulableReason]:
        return [answer for entry in self.entries for answer in entry.fn(*args)]


class Notified(HookChain[*Ts, None]):
    """All plugins are notified."""

    def __call__(self, *args: *Ts) -> None:
        for entry in self.entries:
            entry.fn(*args)


class Permitted(HookChain[Task, Sequence[Task], tuple[list[Task], Vote]]):
    """The victims that all plugins of a tier permit; without any, the next tier decides (preemption.eligibility)."""


class Protections(HookChain[Task, Sequence[Task], Protection | None]):
    """One protection suffices, in any tier (preemption.eligibility)."""


class Spares(HookChain[Job, Task, Limits]):
    """All limits apply; without any plugin every task is evicted on its own (preemption.units)."""

    def __call__(self, job: Job, task: Task) -> Limits:
        if self.only is not None:
            return self.only(job, task)
        return tuple(limit for function in self.functions for limit in function(job, task))


class Scopes(HookChain[Task, Hashable]):
    """Tasks of one shape share their results if all scopes are equal (placement)."""


class Groups(HookChain[Task, NodeInfo, Iterable[frozenset[str]]]):
    """The groups of all plugins."""

    def __call__(self, preemptor: Task, node: NodeInfo) -> list[frozenset[str]]:
        return [group for function in self.functions for group in function(preemptor, node)]


class VetoReasons(HookChain[Task, Sequence[Task], Rule | None]):
    """Only the plugin that vetoed is called (preemption.eligibility)."""


class Masks(HookChain[*Ts, R]):
    """All plugins must agree, node by node (placement)."""


class Scores(HookChain[*Ts, R]):
    """The sum of the scores (placement)."""


class Annotations(HookChain[Task, Mapping[str, str]]):
    """All annotations together."""

    def __call__(self, task: Task) -> dict[str, str]:
        return {key: value for function in self.functions for key, value in function(task).items()}


class Requests(HookChain[Job, SubGroup | None, Closeness | None]):
    """One plugin at most answers."""

    def __call__(self, job: Job, group: SubGroup | None) -> Closeness | None:
        return self.functions[0](job, group) if self.functions else None


class DomainScores(HookChain[Resource, DomainSet, Vector]):
    """The sum of the scores."""

    def __call__(self, request: Resource, domains: DomainSet) -> Vector:
        return sum((function(request, domains) for function in self.functions), np.zeros(len(domains)))


PLACE_IN_JOB, CREATION, KEY = attrgetter("place_in_job"), attrgetter("creation"), attrgetter("key")
C = TypeVar("C", bound=HookChain[*tuple[Any, ...], Any])


class Lazy(Generic[C]):
    """A hook chain that each `Hooks` creates at the first use, because most cycles use few of the chains."""

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, hooks: Hooks, owner: type) -> C:
        chain = hooks.fill(self._make())
        vars(hooks)[self._name] = chain  # an attribute takes precedence over this descriptor
        return chain


class Hooks:
    """The hooks that actions call, by name."""

    job_order = Lazy(lambda: Keys(hooks.JobOrder.job_order))
    job_outranks = Lazy(lambda: OneIsEnough(hooks.JobOutranks.job_outranks))
    task_order = Lazy(lambda: Keys(hooks.TaskOrder.task_order))
    queue_order = Lazy(lambda: Keys(hooks.QueueOrder.queue_order))
    victim_queue_order = Lazy(lambda: Keys(hooks.VictimQueueOrder.victim_queue_order))
    job_valid = Lazy(lambda: FirstReason(hooks.JobValid.job_valid))
    job_ready = Lazy(lambda: AllAgree(hooks.JobReady.job_ready))
    job_pipelined = Lazy(lambda: Votes(hooks.JobPipelined.job_pipelined))
    job_reachable = Lazy(lambda: AllAgree(hooks.JobReachable.job_reachable))
    job_starving = Lazy(lambda: FirstTierAgrees(hooks.JobStarving.job_starving))
    job_enqueueable = Lazy(lambda: Votes(hooks.JobEnqueueable.job_enqueueable))
    job_enqueued = Lazy(lambda: Notified(hooks.JobEnqueued.job_enqueued))
    overused = Lazy(lambda: OneIsEnough(hooks.Overused.overused))
    allocatable = Lazy(lambda: AllAgree(hooks.Allocatable.allocatable))
    preemptive = Lazy(lambda: FirstReason(hooks.Preemptive.preemptive))
    preemptive_gang = Lazy(lambda: FirstReason(hooks.PreemptiveGang.preemptive_gang))
    preemptive_instead = Lazy(lambda: FirstReason(hooks.PreemptiveInstead.preemptive_instead))
    reclaimable = Lazy(lambda: Permitted(hooks.Reclaimable.reclaimable))
    preemptable = Lazy(lambda: Permitted(hooks.Preemptable.preemptable))
    reclaim_unit = Lazy(lambda: Protections(hooks.ReclaimUnit.reclaim_unit))
    preempt_unit = Lazy(lambda: Protections(hooks.PreemptUnit.preempt_unit))
    reclaim_spare = Lazy(lambda: Spares(hooks.ReclaimSpare.reclaim_spare))
    preempt_spare = Lazy(lambda: Spares(hooks.PreemptSpare.preempt_spare))
    victim_groups = Lazy(lambda: Groups(hooks.VictimGroups.victim_groups))
    veto_reason = Lazy(lambda: VetoReasons(hooks.VetoReason.veto_reason))
    node_scope = Lazy(lambda: Scopes(hooks.NodeScope.node_scope))
    feasible = Lazy(lambda: Masks(hooks.Feasible.feasible))
    predicate = Lazy(lambda: Masks(hooks.Predicate.predicate))
    node_rule = Lazy(lambda: FirstExclusion(hooks.NodeRule.node_rule))
    score = Lazy(lambda: Scores(hooks.Score.score))
    usage_score = Lazy(lambda: Scores(hooks.UsageScore.usage_score))
    pod_score = Lazy(lambda: Scores(hooks.PodScore.pod_score))
    bind_annotations = Lazy(lambda: Annotations(hooks.BindAnnotations.bind_annotations))
    closeness = Lazy(lambda: Requests(hooks.DomainGradient.closeness))
    domain_order = Lazy(lambda: DomainScores(hooks.DomainOrder.domain_order))
    reasons = Lazy(lambda: AllReasons(hooks.Reasons.reasons))

    def __init__(self) -> None:
        self._plugins: dict[str, list[tuple[int, PluginOption, object]]] = {}
        """Hook → the plugins that implement it."""

    def add(self, tier: int, option: PluginOption, plugin: object, implemented: Iterable[Hook]) -> None:
        """Register a plugin for the hooks that it implements, except those switched off."""
        for hook in implemented:
            self._plugins.setdefault(hook.name, []).append((tier, option, plugin))
            vars(self).pop(hook.name, None)

    def fill(self, chain: C) -> C:
        """Add to a chain the plugins for which the policy does not switch its hook off, and return the chain."""
        hook = chain.hook
        for tier, option, plugin in self._plugins.get(hook.name, ()):
            if hook.switch is None or option.enabled(hook.switch):
                chain.add(tier, Registered(option.name, getattr(plugin, hook.name)))
        return chain

    def job_key(self, job: Job) -> tuple[Any, ...]:
        """Return a job's position among the jobs of its queue."""
        return (*[function(job) for function in self.job_order.functions], job.creation, job.key)

    def job_keys(self, jobs: Sequence[Job]) -> Iterable[tuple[Any, ...]]:
        """Return the `job_key` of each job, at half the cost of separate calls."""
        functions: list[Callable[[Job], Any]] = [*self.job_order.functions, CREATION, KEY]
        return zip(*[map(function, jobs) for function in functions], strict=True)

    def queue_key(self, queue: Queue) -> tuple[Any, ...]:
        """Return a queue's position among the queues."""
        return (*[function(queue) for function in self.queue_order.functions], queue.creation, queue.name)

    def task_key(self, task: Task) -> tuple[Any, ...]:
        """Return a task's position among the tasks of its job."""
        only = self.task_order.only
        if only is not None:  # a shortcut at half the cost: this method is called for every waiting task
            return (only(task), task.place_in_job)
        return (*[function(task) for function in self.task_order.functions], task.place_in_job)

    def sorted_tasks(self, tasks: Iterable[Task]) -> list[Task]:
        """Sort tasks of one job by `task_key`. Sorting by one part after the other is cheaper than building keys."""
        found = sorted(tasks, key=PLACE_IN_JOB)
        for function in reversed(self.task_order.functions):
            found.sort(key=function)
        return found
