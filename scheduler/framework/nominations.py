"""Reserve freed capacity for the task that it was freed for, across cycles and restarts.

The one rule: a nomination is exactly the pod's `status.nominatedNodeName`; every cycle derives the nominations from it
again. While the capacity is being freed, or other members of the gang wait, the preemptor is pipelined onto its node,
so that no other job, and no sibling, uses the capacity. A nomination ends when its task is bound or deleted. If the
task can no longer use the capacity, the nomination is withdrawn in the same cycle, with the reason. Capacity that a job
got by evictions in a cycle remains the job's until the cycle ends, in all later actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..backlog.view import BacklogView
from ..model.cluster import Cluster
from ..model.job import Job
from ..model.nodes import Nodes
from ..model.queue import Queue
from ..model.task import Task, TaskStatus
from ..placement import Placement
from ..policy.tiers import Hooks
from ..reasons import GangShort, Gated, NodeUnfit, Outranked, UnschedulableReason
from .decisions import Decisions, Nominate
from .statement import Statement


class NominatingSession(Protocol):
    """The part of a session that nominations need. The session's module imports this one."""

    cluster: Cluster
    nodes: Nodes
    queues: dict[str, Queue]
    jobs: Mapping[str, Job]
    hooks: Hooks
    placement: Placement
    decisions: Decisions
    backlog: BacklogView

    def statement(self) -> Statement: ...

    def is_pending(self, job: Job) -> bool: ...

    def is_schedulable(self, job: Job) -> bool: ...


class Nominations:
    """The nominations of one cycle."""

    def __init__(self, session: NominatingSession) -> None:
        self._session = session
        self._claims: dict[str, list[Task]] = {}
        self._pinned: set[str] = set()
        self._whys: dict[str, tuple[UnschedulableReason, ...]] = {}
        """Task → why its nomination was lost, as far as known."""

    def claim(self) -> None:
        """Pipeline every preemptor onto its node, in the order in which queues, jobs and tasks are served."""
        session, hooks = self._session, self._session.hooks
        found: dict[str, list[Task]] = {}
        for key in session.cluster.nominated:
            task = session.cluster.tasks[key]
            if task.status is TaskStatus.PENDING and task.job in session.jobs:
                found.setdefault(task.job, []).append(task)
        jobs = [session.jobs[key] for key in found]
        jobs.sort(key=lambda job: (hooks.queue_key(session.queues[job.queue]), hooks.job_key(job)))
        for job in jobs:
            self._claims[job.key] = tasks = hooks.sorted_tasks(found[job.key])
            if session.is_pending(job) or not session.is_schedulable(job):
                continue
            statement = session.statement()
            for task in tasks:
                self._restore(job, task, statement)
        for key, places in session.backlog.places():
            if not self._keep(key, places):
                session.backlog.wake(key)

    def _keep(self, key: str, places: Mapping[str, str]) -> bool:
        """Place a job again on the nodes that an unfinished cycle chose for it; return whether all tasks fit."""
        session, statement = self._session, self._session.statement()
        job = session.jobs.get(key)
        for name, node_name in sorted(places.items()):
            task, node = session.cluster.tasks.get(name), session.nodes.by_name.get(node_name)
            if job is None or task is None or node is None or task.status is not TaskStatus.PENDING:
                break
            if not session.hooks.allocatable(session.queues[job.queue], task):
                break
            if session.placement.fits(task, node):
                statement.allocate(task, node)
            elif session.placement.fits(task, node, future=True):
                statement.pipeline(task, node)
            else:
                break
        else:
            return True
        statement.discard()
        return False

    def _restore(self, job: Job, task: Task, statement: Statement) -> None:
        """Pipeline a task onto its nominated node if it can still use the node; otherwise record the reason."""
        session = self._session
        node = session.nodes.by_name.get(task.nominated)
        if node is None:
            self._whys[task.key] = (NodeUnfit(task.nominated),)
        elif task.gated:
            self._whys[task.key] = (Gated(1),)
        elif not session.hooks.allocatable(session.queues[job.queue], task):
            self._whys[task.key] = tuple(session.hooks.reasons(job, task))
        elif not session.placement.fits(task, node, future=True):
            self._whys[task.key] = (session.placement.explain_node(task, node),)
        else:
            statement.pipeline(task, node)

    def wait_again(self, job: Job, statement: Statement) -> None:
        """Restore the nominations of a job whose capacity was released for other jobs."""
        for task in self._claims.get(job.key, ()):
            if task.status is TaskStatus.PENDING and task.key not in self._whys:
                self._restore(job, task, statement)

    def bind_ready(self) -> None:
        """Bind the jobs whose preemptors all fit by now; other jobs continue to wait."""
        session = self._session
        for key, tasks in self._claims.items():
            job = session.jobs[key]
            statement = session.statement()
            for task in tasks:
                if task.status is TaskStatus.PIPELINED:
                    node = session.nodes.by_name[task.node]
                    if not session.placement.has_idle_room(task, node):
                        continue  # the victim still exists: the usual case while victims terminate
                    statement.release(task)
                    if session.placement.fits(task, node):
                        statement.allocate(task, node)
                    else:
                        statement.pipeline(task, node)
            if statement.changes and session.hooks.job_ready(job):
                statement.commit()
            else:
                statement.discard()

    def pin(self, job: Job) -> None:
        """Keep this job's result until the cycle ends, because other tasks were evicted for the job."""
        self._pinned.add(job.key)

    def evicted_for(self, job: str) -> bool:
        """Whether other tasks were evicted for this job in this cycle."""
        return job in self._pinned

    def yield_to(self, job: Job, statement: Statement) -> list[Task]:
        """Release the nominations of lower-ranked jobs of the same queue; return the tasks of these jobs."""
        jobs, outranks = self._session.jobs, self._session.hooks.job_outranks
        if not self._claims or not outranks.entries:
            return []
        outranked = [
            task
            for key, tasks in self._claims.items()
            if jobs[key].queue == job.queue and outranks(job, jobs[key]) and not self.evicted_for(key)
            for task in tasks
            if task.status is TaskStatus.PIPELINED
        ]
        for task in outranked:
            statement.release(task)
            self._whys[task.key] = (Outranked(job.key),)
        return outranked

    def take_over(self, job: Job, yielded: list[Task], statement: Statement) -> bool:
        """Record the job's nominations on released capacity, and restore those of `yielded` as far as they still fit.

        Returns:
            False if the job must not use the capacity: its queue reclaimed it, and could not have done so for the job.
        """
        if self._is_not_entitled(job, yielded, statement):
            return False
        for task in job.having(TaskStatus.PIPELINED):
            if task.nominated != task.node:
                self._session.decisions.nominations.append(Nominate(task.key, task.uid, task.node))
        for task in yielded:
            before = self._whys[task.key]
            self._restore(self._session.jobs[task.job], task, statement)
            self._whys[task.key] = before
        return True

    def _is_not_entitled(self, job: Job, yielded: list[Task], statement: Statement) -> bool:
        """Whether the queue is entitled to reclaim the capacity for `yielded`, but not for `job`.

        In this case, the queue that lost the capacity could reclaim it from `job` at once, and lose it again, or the
        job that it was reclaimed for could never run.
        """
        queue, entitled = self._session.queues[job.queue], self._session.hooks.preemptive
        savepoint, is_entitled = statement.savepoint(), True
        placed = list(job.having(TaskStatus.ALLOCATED | TaskStatus.PIPELINED))
        for task in placed:
            statement.release(task)
            is_entitled = is_entitled and (task.best_effort or entitled(queue, task) is None)
        was_entitled = any(entitled(queue, task) is None for task in yielded)
        if was_entitled and is_entitled:
            is_entitled = self._session.hooks.preemptive_instead(queue, placed, yielded) is None
        statement.rollback(savepoint)
        return was_entitled and not is_entitled

    def finish(self) -> None:
        """Decide nominations at the end of a cycle: move those of tasks pipelined elsewhere, withdraw unusable ones."""
        session = self._session
        for key, tasks in self._claims.items():
            job = session.jobs[key]
            can_start = session.hooks.job_pipelined(job)
            for task in tasks:
                if task.status is TaskStatus.PIPELINED and can_start:
                    if task.node != task.nominated:
                        session.decisions.nominations.append(Nominate(task.key, task.uid, task.node))
                elif task.status & (TaskStatus.PENDING | TaskStatus.PIPELINED):
                    session.decisions.nominations.append(Nominate(task.key, task.uid, "", self._why_lost(job, task)))

    def _why_lost(self, job: Job, task: Task) -> tuple[UnschedulableReason, ...]:
        known = self._whys.get(task.key)
        if known is not None:
            return known
        refusal = self._session.decisions.refusals.get(job.key)
        return refusal.items if refusal is not None else (GangShort(job.ready + job.waiting, job.min_available),)
