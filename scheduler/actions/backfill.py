"""backfill: place tasks that request no resources (semantics: Volcano's `actions/backfill`).

Such a task uses no share of a queue, so limits of queues do not apply. Node constraints do, and a closed queue accepts
no such task either.
"""

from __future__ import annotations

from ..framework.serving_order import ServingOrder
from ..framework.session import Session
from ..model.job import Job
from ..model.queue import Queue
from ..model.task import Task, TaskStatus
from ..placement.domain_choice import DomainChoice, Wanted
from ..reasons import UnschedulableReason
from ..topology.domains import NOWHERE, Domain
from ..topology.subgroups import SubGroups
from .domain_allocation import BINDING


def backfill(session: Session) -> None:
    """Place best-effort tasks, in the order of queues, jobs and tasks."""
    candidates = [job for job in session.selection.to_try() if not session.is_pending(job) and _waiting(job)]
    for queue, job in ServingOrder(session, candidates):
        with session.attempt(job):
            if session.is_schedulable(job):
                _place(session, queue, job)


def _waiting(job: Job) -> list[Task]:
    return [t for t in job.by_status.get(TaskStatus.PENDING, {}).values() if t.best_effort and not t.gated]


def _domain_of(session: Session, job: Job, task: Task) -> tuple[Domain | None, UnschedulableReason | None]:
    """Return the domain in which a task must run because other pods of its gang, or of its subgroup, run there.

    If these pods run further apart than is permitted, return `NOWHERE` and the reason: the task is not placed.
    """
    hooks, by_name = session.hooks, session.nodes.by_name
    group = session.shared(SubGroups).group_of(job, task)
    limits = [(hooks.closeness(job, None), "", [*job.having(BINDING)])]
    if group is not None:
        limits.append((hooks.closeness(job, group), group.name, group.tasks))
    found: Domain | None = None
    for closeness, name, tasks in limits:
        rows = [by_name[task.node].row for task in tasks if task.status & BINDING and task.node in by_name]
        if closeness is None or not closeness.is_hard or not rows:
            continue
        found = next(reversed(closeness.around(rows)), None)
        if found is None:
            choice = DomainChoice(session.placement, session.nodes, hooks)
            return NOWHERE, choice.refusal(closeness, Wanted([task], 1, rows, name), None)
    return found, None


def _place(session: Session, queue: Queue, job: Job) -> None:
    hooks = session.hooks
    statement = session.statement()
    for task in hooks.sorted_tasks(_waiting(job)):
        if not hooks.allocatable(queue, task):
            session.refuse(job, hooks.reasons(job, task))
            break
        domain, why = _domain_of(session, job, task)
        with session.placement.inside(domain):
            node = session.placement.best(task)
            if node is None:
                session.refuse(job, [why or session.placement.explain(task)])
        if node is not None:
            statement.allocate(task, node)
    if hooks.job_ready(job):
        statement.commit()
    else:
        statement.discard()
