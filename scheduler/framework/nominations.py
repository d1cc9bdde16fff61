"""Room that was freed for a task is kept for it, across cycles and restarts.

The one rule: a nomination is nothing but the pod's ``status.nominatedNodeName``; every cycle derives the nominations
from it anew. While what was freed is still releasing, or the rest of the gang waits, the preemptor is pipelined onto
its node, so that nobody served meanwhile, siblings included, takes that room. A nomination stands until its task is
bound, is gone or cannot use it any more; then it is given up in the same cycle, and says why.
What a job got in a cycle in which others had to go for it stands until the cycle ends, whatever action comes next.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

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


class Remembered(Protocol):
    """Who waits for room being freed, of cycles before that were cut (:class:`scheduler.framework.backlog.Recall`)."""

    def places(self) -> list[tuple[str, Mapping[str, str]]]: ...

    def lost(self, key: str) -> None: ...


class Cycle(Protocol):
    """What nominations need of a session, which is above them."""

    cluster: Cluster
    nodes: Nodes
    queues: dict[str, Queue]
    jobs: dict[str, Job]
    hooks: Hooks
    placement: Placement
    decisions: Decisions

    @property
    def backlog(self) -> Remembered: ...

    def statement(self) -> Statement: ...

    def is_pending(self, job: Job) -> bool: ...

    def is_schedulable(self, job: Job) -> bool: ...


class Nominations:
    """The nominations of one cycle."""

    def __init__(self, session: Cycle) -> None:
        self._session = session
        self._claims: dict[str, list[Task]] = {}
        self._made: set[str] = set()
        self._whys: dict[str, tuple[UnschedulableReason, ...]] = {}
        """Task → why its nomination does not stand, as far as that is known."""

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
            self._claims[job.key] = tasks = sorted(found[job.key], key=hooks.task_key)
            if session.is_pending(job) or not session.is_schedulable(job):
                continue
            statement = session.statement()
            for task in tasks:
                self._restore(job, task, statement)
        for key, places in session.backlog.places():
            if not self._keep(key, places):
                session.backlog.lost(key)

    def _keep(self, key: str, places: Mapping[str, str]) -> bool:
        """Have a job wait on where a cycle that was cut has left it waiting for room that is being freed."""
        session, statement = self._session, self._session.statement()
        job = session.jobs.get(key)
        for name, place in sorted(places.items()):
            task, node = session.cluster.tasks.get(name), session.nodes.by_name.get(place)
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
        """Pipeline a task onto the node that it is nominated for, if it can still use that; else note why not."""
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
        """Restore the nominations of a job whose room had been given up for others."""
        for task in self._claims.get(job.key, ()):
            if task.status is TaskStatus.PENDING and task.key not in self._whys:
                self._restore(job, task, statement)

    def bind_ready(self) -> None:
        """Bind the jobs whose preemptors all find their room by now; the others go on waiting."""
        session = self._session
        for key, tasks in self._claims.items():
            job = session.jobs[key]
            statement = session.statement()
            for task in tasks:
                if task.status is TaskStatus.PIPELINED:
                    node = session.nodes.by_name[task.node]
                    if not session.placement.has_idle_room(task, node):
                        continue  # who is to go is still there; the most part of most cycles in which victims leave
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
        """Others have had to go for this job: until the cycle ends it stays where it is and keeps what it has."""
        self._made.add(job.key)

    def stands(self, job: str) -> bool:
        """Whether others have had to go for this job in this cycle."""
        return job in self._made

    def yield_to(self, job: Job, statement: Statement) -> list[Task]:
        """Release the nominations of jobs of the same queue that the job outranks; whom they were of."""
        if not self._claims or all(entry.plugin != "priority" for entry in self._session.hooks.job_order.entries):
            return []
        jobs = self._session.jobs
        outranked = [
            task
            for key, tasks in self._claims.items()
            if jobs[key].queue == job.queue and jobs[key].priority < job.priority and not self.stands(key)
            for task in tasks
            if task.status is TaskStatus.PIPELINED
        ]
        for task in outranked:
            statement.release(task)
            self._whys[task.key] = (Outranked(job.key),)
        return outranked

    def take_over(self, job: Job, yielded: list[Task], statement: Statement) -> None:
        """The job has taken room that others yielded: note its own nominations, and give the others what is left."""
        for task in job.having(TaskStatus.PIPELINED):
            if task.nominated != task.node:
                self._session.decisions.nominations.append(Nominate(task.key, task.uid, task.node))
        for task in yielded:
            before = self._whys[task.key]
            self._restore(self._session.jobs[task.job], task, statement)
            self._whys[task.key] = before

    def give_up(self) -> None:
        """At the end of a cycle: move the nominations of tasks that wait on another node by now, and withdraw those
        that have come to nothing.
        """
        session = self._session
        for key, tasks in self._claims.items():
            job = session.jobs[key]
            stands = session.hooks.job_pipelined(job)
            for task in tasks:
                if task.status is TaskStatus.PIPELINED and stands:
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
