"""What plugins can say, and how what they say is combined: Volcano's tier rules (semantics of
``framework/session_plugins.go``).

The one rule: a plugin registers plain functions, here; whether a registered function is asked follows the plugin's
enable switch, and how the answers combine follows the tier it stands in. Orders are keys, not comparisons: the smaller
key comes first, and the keys of all plugins, tier by tier, make one tuple.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..model.job import Job
from ..model.queue import Queue
from ..model.task import Task
from ..reasons import UnschedulableReason
from .model import PluginOption, Policy

Key = Any
Fn = Callable[..., Any]


class Vote(enum.IntEnum):
    """A plugin's say. Abstaining leaves the question to the others."""

    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


# hook -> the switch that takes a plugin's say away; None where Volcano has no switch.
#
# What a function of a hook is given and gives back:
#   job_order(job), queue_order(queue), task_order(task) -> a key; the smaller is served first
#   victim_queue_order(queue, preemptor's queue) -> a key; the smaller gives first
#   job_valid(job) -> None, or the Why for which the job cannot be scheduled at all
#   job_ready(job), job_starving(job), overused(queue) -> bool
#   job_pipelined(job), job_enqueueable(job) -> Vote
#   job_enqueued(job): the job has been admitted
#   allocatable(queue, task) -> bool: the queue may hold this task too
#   preemptive(queue, task) -> bool: the queue may claim room for this task from others
#   reclaimable(preemptor, candidates), preemptable(preemptor, candidates) -> (those it permits, Vote);
#       scheduler.preemption.eligibility tells how tiers combine what is said
#   reclaim_unit(preemptor, unit), preempt_unit(preemptor, unit) -> None, or the Denial for which a task or a whole gang
#       stays, whatever tier decides
#   feasible(task) -> mask over nodes, from the nodes' objects alone: for a shape the same throughout a cycle
#   predicate(task, future) -> mask over nodes, from what runs on them; None if the task does not mind who runs where.
#       With ``future``, releasing pods count as gone and pipelined ones as come
#   node_rule(task, node) -> None, or (rule, detail): why these two masks leave the node out
#   score(task, feasible) -> vector over nodes, from the nodes' objects alone, or None
#   usage_score(task, used, allocatable) -> scores for arrays [..., dimensions]; ``used`` includes the task
#   pod_score(task, feasible) -> vector over nodes, from what runs on them, or None
#   why(job, task) -> the Whys that stand in the way of placing ``task``; of admitting ``job`` where task is None
SWITCHES: dict[str, str | None] = {
    "job_order": "enableJobOrder",
    "queue_order": "enableQueueOrder",
    "task_order": "enableTaskOrder",
    "victim_queue_order": None,
    "job_valid": None,
    "job_ready": "enableJobReady",
    "job_pipelined": "enableJobPipelined",
    "job_starving": "enableJobStarving",
    "job_enqueueable": "enableJobEnqueued",
    "job_enqueued": None,
    "overused": "enabledOverused",
    "allocatable": "enabledAllocatable",
    "preemptive": "enablePreemptive",
    "reclaimable": "enableReclaimable",
    "preemptable": "enablePreemptable",
    "reclaim_unit": "enableReclaimable",
    "preempt_unit": "enablePreemptable",
    "feasible": "enablePredicate",
    "predicate": "enablePredicate",
    "node_rule": "enablePredicate",
    "score": "enableNodeOrder",
    "usage_score": "enableNodeOrder",
    "pod_score": "enableNodeOrder",
    "why": None,
}


def by_unit(_preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
    """What to register as ``reclaimable`` or ``preemptable`` beside a hook that judges units: it gives the plugin a say
    in its tier; what it says there is what it says of units.
    """
    return list(candidates), Vote.PERMIT


@dataclass(slots=True)
class Registered:
    """One function of one plugin."""

    plugin: str
    fn: Fn


@dataclass(slots=True)
class Tier:
    """The enabled functions of one tier, by hook, in the order of its plugins."""

    hooks: dict[str, list[Registered]] = field(default_factory=dict)


class Hooks:
    """All registered functions of a cycle, and the questions that actions ask of them."""

    def __init__(self, policy: Policy) -> None:
        self._tiers = [Tier() for _ in policy.tiers]
        self._flat: dict[str, list[Registered]] = {hook: [] for hook in SWITCHES}

    def register(self, tier: int, option: PluginOption, hook: str, fn: Fn) -> None:
        """Ask ``fn`` whenever ``hook`` is asked, unless the plugin's switch for it is off."""
        switch = SWITCHES[hook]
        if switch is not None and not option.enabled(switch):
            return
        entry = Registered(option.name, fn)
        self._tiers[tier].hooks.setdefault(hook, []).append(entry)
        self._flat[hook].append(entry)

    def of(self, hook: str) -> list[Registered]:
        """The functions of a hook, tier by tier."""
        return self._flat[hook]

    # --------------------------------------------------------------------------------------------------------- orders

    def key(self, hook: str, *subject: Any) -> tuple[Key, ...]:
        """The keys of all plugins for one subject; smaller is served first."""
        return tuple([entry.fn(*subject) for entry in self._flat[hook]])

    def job_key(self, job: Job) -> tuple[Key, ...]:
        return (*self.key("job_order", job), job.creation, job.key)

    def queue_key(self, queue: Queue) -> tuple[Key, ...]:
        return (*self.key("queue_order", queue), queue.creation, queue.name)

    def task_key(self, task: Task) -> tuple[Key, ...]:
        order = self._flat["task_order"]  # asked of every waiting task in every cycle
        return (*[entry.fn(task) for entry in order], task.index, task.creation, task.key)

    # ---------------------------------------------------------------------------------------------------- yes and no

    def all_agree(self, hook: str, *subject: Any) -> bool:
        """Whether every function says yes; with none, yes (Allocatable, Preemptive, JobReady)."""
        return all(entry.fn(*subject) for entry in self._flat[hook])

    def any_says(self, hook: str, *subject: Any) -> bool:
        """Whether any function says yes (Overused)."""
        return any(entry.fn(*subject) for entry in self._flat[hook])

    def votes(self, hook: str, job: Job) -> bool:
        """JobPipelined, JobEnqueueable: one rejection decides at once; a permit hides the lower tiers; else yes."""
        for tier in self._tiers:
            permitted = False
            for entry in tier.hooks.get(hook, ()):
                vote = entry.fn(job)
                if vote < 0:
                    return False
                permitted = permitted or vote > 0
            if permitted:
                return True
        return True

    def first_tier_agrees(self, hook: str, job: Job) -> bool:
        """JobStarving: all functions of the first tier that has any; with none at all, no."""
        for tier in self._tiers:
            if entries := tier.hooks.get(hook):
                return all(entry.fn(job) for entry in entries)
        return False

    def first_objection(self, hook: str, *subject: Any) -> Any:
        """JobValid: what the first function that objects says; None if none does."""
        return next((said for entry in self._flat[hook] if (said := entry.fn(*subject)) is not None), None)

    def whys(self, job: Job, task: Task | None) -> list[UnschedulableReason]:
        """What stands in the way of placing ``task`` of ``job``, or (task None) of admitting it, by all plugins."""
        return [why for entry in self._flat["why"] for why in entry.fn(job, task)]

    # -------------------------------------------------------------------------------------------------------- victims

    def by_tier(self, hook: str) -> list[tuple[int, list[Registered]]]:
        """The functions of a hook as ``(number of the tier, functions)``, tiers without any left out."""
        return [(n, tier.hooks[hook]) for n, tier in enumerate(self._tiers) if hook in tier.hooks]
