"""Decide whether a job may be admitted because of what the policy would evict for it.

Quotas admit a job only if it fits beside what runs. A job that may reclaim or preempt would then never be admitted to a
full queue, and never evict anything (volcano#4235, volcano#5925). So a job that quotas refuse is judged again:

1. For each action of the policy that evicts, the units that the action may take for the job are evicted, cheapest
   first, until the plugins admit the job or no unit is left.
2. All of it is undone: only the admission remains. The action decides later, for the job's pods, what it evicts.

The reservation of an admitted job counts in full, so that no other job is admitted because of the same units.
"""

from __future__ import annotations

import msgspec

from ..framework.session import Session
from ..model import objects, resources
from ..model.job import Job
from ..model.task import HOLDING, Task
from ..reasons import ClusterLimit, NamespaceQuota, NoVictims, QueueLimit, UnschedulableReason
from .cycle_cache import CycleCache, request_kind
from .preemptor import no_victims, waiting_tasks
from .request import PREEMPT, RECLAIM, PreemptionRequest
from .solver import Solver


def why_not_admitted(session: Session, job: Job, quotas: list[UnschedulableReason]) -> list[UnschedulableReason] | None:
    """Return why a job that quotas refuse is not admitted; None if evictions would let the plugins admit it.

    Args:
        session: The session.
        job: The job.
        quotas: Why the plugins refuse the job now.
    """
    actions = [action for action in (RECLAIM, PREEMPT) if action in session.policy.actions]
    if not actions or not session.hooks.job_starving.entries or not all(map(_can_be_freed, quotas)):
        return quotas
    more: list[UnschedulableReason] = []
    for action in actions:
        whys = _why_not(PreemptionRequest(session, action, job), CycleCache.of(session))
        if whys is None:
            return None
        more += whys
    return [*quotas, *more]


def _can_be_freed(why: UnschedulableReason) -> bool:
    """Whether the reason is a quota that is large enough for the job."""
    if isinstance(why, QueueLimit | NamespaceQuota):
        return why.requested <= why.amount
    return isinstance(why, ClusterLimit)


def _why_not(request: PreemptionRequest, cache: CycleCache) -> list[UnschedulableReason] | None:
    """Return why an action frees too little for a job; None if it frees enough."""
    session, job = request.session, request.job
    waiting = waiting_tasks(session, job) or [_part_of(job)]
    task = waiting[0]
    if task.never_preempts:
        return []
    if request.action == RECLAIM:
        hooks, needed = session.hooks, [task] * max(job.min_available - job.ready, 1)
        why = hooks.preemptive(request.queue, task) or hooks.preemptive_gang(request.queue, needed)
        if why is not None:
            return [why]
    elif session.shared(LowestPriorities).of(request.queue.name) >= job.priority:
        return []
    kind = request_kind(request, task)
    asked = tuple(sorted((job.min_resources or {}).items()))
    shapes = tuple(other.shape for other in waiting)
    key = None if kind is None else ("admission", *kind, shapes, job.namespace, job.min_available, asked)
    if (known := cache.known(key)) is not None:
        return [msgspec.structs.replace(why, task=task.key) for why in known if isinstance(why, NoVictims)]
    requested = resources.plus(job.min_resources or {})
    solver = Solver(request, cache.shared(request, None, requested), requested)
    try:
        if any(_admits(session, job, evicted) for evicted in solver.evict_one_by_one(task)):
            return None
        whys = (no_victims(request, task, solver),)
    finally:
        solver.statement.discard()
    cache.remember(key, whys)
    return list(whys)


def _admits(session: Session, job: Job, evicted: list[Task]) -> bool:
    session.taken = evicted
    try:
        return session.hooks.job_enqueueable(job)
    finally:
        session.taken = []


def _part_of(job: Job) -> Task:
    """Return a task of a job without pods: it requests an equal part of the minimum."""
    pods = max(job.min_available, 1)
    requests = resources.quantities({name: -(-amount // pods) for name, amount in (job.min_resources or {}).items()})
    meta = job.group.metadata if job.group is not None else objects.ObjectMeta()
    meta = objects.ObjectMeta(
        name=f"{job.name}-0",
        namespace=job.namespace,
        uid=meta.uid,
        annotations=meta.annotations,
        labels=meta.labels,
        owner_references=meta.owner_references,
    )
    container = objects.Container(resources=objects.Resources(requests=dict(requests)))
    return Task(objects.Pod(meta, objects.PodSpec(containers=[container], priority=job.priority)), job.key)


class LowestPriorities:
    """The lowest priority of the jobs that hold capacity in each queue."""

    def __init__(self, session: Session) -> None:
        self._lowest: dict[str, int] = {}
        for job in session.jobs.values():
            if any(status & HOLDING for status, tasks in job.by_status.items() if tasks):
                self._lowest[job.queue] = min(job.priority, self._lowest.get(job.queue, job.priority))

    def of(self, queue: str) -> float:
        return self._lowest.get(queue, float("inf"))
