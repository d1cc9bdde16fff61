"""Faults in the actions: whether an action runs, which job it serves first, and how much of a gang it places."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from schedspec.scheduler.actions import ACTIONS, gang_allocation
from schedspec.scheduler.actions.enqueue import enqueue
from schedspec.scheduler.decide import decide
from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.live import loop
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.task import Task
from schedspec.scheduler.plugins import gang, priority
from schedspec.scheduler.plugins.queue import admission as queue_admission
from schedspec.scheduler.plugins.queue import plugin
from schedspec.scheduler.plugins.queue.plugin import QueuePlugin
from schedspec.scheduler.policy import tiers
from schedspec.scheduler.policy.hooks import Vote
from schedspec.scheduler.policy.model import Policy
from schedspec.scheduler.preemption.cycle_cache import CycleCache
from schedspec.scheduler.preemption.request import PREEMPT, PreemptionRequest
from tests.test_the_tests.faults.fault import CONDITIONS, RECLAIM, Fault, always, instead


def _without(action: str) -> Callable[[], None]:
    def inject() -> None:
        assert action in ACTIONS
        ACTIONS[action] = always(None)

    return inject


def _with(action: str) -> Callable[[], None]:
    """Run the action even if the policy does not name it."""

    def decide_with(cluster: Cluster, policy: Policy, *more: Any, **budget: Any) -> Decisions:
        actions = policy.actions if action in policy.actions else (*policy.actions, action)
        return decide(cluster, replace(policy, actions=actions), *more, **budget)

    return instead((loop, "decide", decide_with))


def _strict_queue() -> None:
    """Serve each queue strictly in order of submission: a job that cannot be served blocks all later jobs."""
    place, enqueueable = gang_allocation.GangAllocation.place, QueuePlugin.job_enqueueable

    def is_blocked(session: Any, job: Any) -> bool:
        """Whether this cycle or an earlier one has refused another job of the queue."""
        others = (session.cluster.jobs.get(key) for key in {*session.decisions.refusals, *session.backlog.entries})
        return any(it is not None and it.key != job.key and it.queue == job.queue for it in others)

    def place_unless_blocked(self: Any, runs: Any) -> bool:
        return not is_blocked(self._session, self._job) and place(self, runs)

    def admit_unless_blocked(self: Any, job: Any) -> Vote:
        return Vote.REJECT if is_blocked(self.session, job) else enqueueable(self, job)

    instead(
        (gang_allocation.GangAllocation, "place", place_unless_blocked),
        (QueuePlugin, "job_enqueueable", admit_unless_blocked),
    )()


def _equal_or_lower(self: Any, preemptor: Task, unit: Any) -> Any:
    jobs = self._session.cluster.jobs
    mine, theirs = jobs[preemptor.job].priority, jobs[unit[0].job].priority
    return None if theirs <= mine else priority.NotLower(theirs, mine)


def _job_key_by_age(self: Any, job: Any) -> tuple[Any, ...]:
    return (job.creation, job.key)


_concerns, _candidate_rows = PreemptionRequest.concerns, CycleCache.candidate_rows


def _preempts_others(request: PreemptionRequest) -> bool:
    return request.action == PREEMPT and not request.within_job


def _of_any_queue(self: PreemptionRequest, job: Any) -> bool:
    return job is not self.job if _preempts_others(self) else _concerns(self, job)


def _any_row(self: CycleCache, request: PreemptionRequest) -> set[int]:
    if not _preempts_others(request):
        return _candidate_rows(self, request)
    return {node.row for node in request.session.nodes.rows}


def _quotas(_session: Any, _job: Any, quotas: Any) -> Any:
    return quotas


_ADMITS = (
    (QueuePlugin, "job_enqueueable", always(Vote.PERMIT)),
    (queue_admission.Admission, "vote", always(Vote.PERMIT)),
)
admit_everything = instead(*_ADMITS)


FAULTS = (
    Fault(
        "no-reclaim",
        "never reclaims",
        _without("reclaim"),
        ("queue_capacity/shares: Lent", "cross_queue_reclaim/what", "hierarchy/use_case"),
    ),
    Fault("no-preempt", "never preempts", _without("preempt"), ("queue_admission/admission: A high",)),
    Fault("no-backfill", "ignores pods without requests", _without("backfill"), ("lifecycle/states: A pod without",)),
    Fault(
        "reclaim-unasked",
        "reclaims although the policy does not name this action",
        _with("reclaim"),
        (f"{CONDITIONS}: Without the reclaim", "queue_admission/admission: Preempt evicts nothing"),
    ),
    Fault(
        "backfill-unasked",
        "backfills although the policy does not name this action",
        _with("backfill"),
        ("lifecycle/states: Without the backfill",),
    ),
    Fault(
        "admits-everything",
        "admits every PodGroup",
        admit_everything,
        ("queue_admission/admission: A job", "queue_admission/admission: A later", "with enqueue"),
    ),
    Fault(
        "admits-into-free-room-only",
        "does not count what a job would reclaim or preempt when it decides on the job's admission",
        instead((sys.modules[enqueue.__module__], "why_not_admitted", _quotas)),
        ("queue_admission/evictions: A team", "gallery/volcano_4679"),
    ),
    Fault(
        "first-in-line-blocks",
        "serves no job of a queue whose first job does not fit",
        _strict_queue,
        ("kubeflow/backfill", "queue_admission/admission: A later"),
    ),
    Fault(
        "priority-ignored",
        "serves jobs by age alone",
        instead((tiers.Hooks, "job_key", _job_key_by_age)),
        ("kubeflow/priority", f"{RECLAIM}online_reclaims_offline: The service was"),
    ),
    Fault(
        "training-first",
        "serves the queue with the lowest priority first",
        instead((QueuePlugin, "queue_order", lambda self, queue: (queue.priority,))),
        (f"{RECLAIM}online_reclaims_offline: The service was",),
    ),
    Fault(
        "gang-bound-in-part",
        "admits every gang and binds those of its pods that fit",
        instead(
            *_ADMITS,
            (gang, "_is_ready", always(True)),
            (gang, "_roles_hold", always(True)),
            (gang.Gang, "job_pipelined", always(Vote.PERMIT)),
        ),
        ("lifecycle/states: A gang", "lifecycle/first_job", "as a whole or not at all"),
    ),
    Fault(
        "closed-queue-serves",
        "serves jobs of a closed queue",
        instead(
            (plugin.QueuePlugin, "closed", always(None)),
            (queue_admission.Admission, "vote", always(Vote.PERMIT)),
        ),
        ("lifecycle/states: A closed", "lifecycle/states: A queue with work"),
    ),
    Fault(
        "preempts-across-queues",
        "preempts in every queue",
        instead((PreemptionRequest, "concerns", _of_any_queue), (CycleCache, "candidate_rows", _any_row)),
        ("queue_admission/admission: Preempt evicts nothing",),
    ),
    Fault(
        "preempts-equals",
        "preempts jobs of the same priority",
        instead((priority.Priority, "preempt_unit", _equal_or_lower)),
        ("queue_admission/admission: Equal",),
    ),
)
