"""allocate: give idle room to waiting tasks, gang by gang (semantics: Volcano's ``actions/allocate``).

The one rule: a job's turn is one transaction. It ends as soon as the job is ready, so queues alternate task by task once
their gangs run; a job that cannot become ready leaves nothing behind, unless it only waits for room being freed.
"""

from __future__ import annotations

from itertools import groupby

from scheduler.model.job import Job
from scheduler.model.queue import Queue
from scheduler.model.task import Task, TaskStatus
from scheduler.order import Served
from scheduler.session import Session
from scheduler.statement import Statement


def allocate(session: Session) -> None:
    """Place tasks until no queue has a job left that finds room."""
    Allocation(session).run()


class Allocation:
    """The turns of one cycle."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._hooks = session.hooks
        self._left: dict[str, list[Task]] = {}

    def run(self) -> None:
        hooks = self._hooks
        by_queue = {name: Served(hooks.job_key, jobs) for name, jobs in self._jobs_by_queue().items()}
        queues = Served(hooks.queue_key, (self._session.queues[name] for name in by_queue))
        while queues:
            queue = queues.pop()
            jobs = by_queue[queue.name]
            if not jobs:
                continue
            if hooks.any_says("overused", queue):
                self._refuse_all(jobs)
                continue
            job = jobs.pop()
            if self._turn(queue, job) and self._left[job.key]:
                jobs.push(job)
            queues.push(queue)

    def _jobs_by_queue(self) -> dict[str, list[Job]]:
        session, hooks = self._session, self._hooks
        admits_itself = "enqueue" not in session.policy.actions
        by_queue: dict[str, list[Job]] = {}
        for job in session.jobs.values():
            if session.is_pending(job):
                if not admits_itself:
                    continue
                session.admit(job)
            waiting = [
                t for t in job.by_status.get(TaskStatus.PENDING, {}).values() if not t.gated and not t.best_effort
            ]
            if not waiting:
                continue
            objection = hooks.first_objection("job_valid", job)
            if objection is not None:
                session.refuse(job, [objection])
                continue
            self._left[job.key] = sorted(waiting, key=hooks.task_key)
            by_queue.setdefault(job.queue, []).append(job)
        return by_queue

    def _refuse_all(self, jobs: Served[Job]) -> None:
        while jobs:
            job = jobs.pop()
            self._session.refuse(job, self._hooks.whys(job, self._left[job.key][0]))

    def _turn(self, queue: Queue, job: Job) -> bool:
        """One transaction for the job. Whether it got anywhere, so that it may have another turn."""
        hooks, tasks = self._hooks, self._left[job.key]
        statement = self._session.statement()
        placed: set[str] = set()
        for _, run in groupby(tasks, key=lambda task: task.shape):
            if self._place_run(queue, job, list(run), statement, placed):
                break
        if hooks.all_agree("job_ready", job):
            statement.commit()
        elif not hooks.votes("job_pipelined", job):
            statement.discard()
            return False
        self._left[job.key] = [task for task in tasks if task.key not in placed]
        return bool(placed)

    def _place_run(self, queue: Queue, job: Job, run: list[Task], statement: Statement, placed: set[str]) -> bool:
        """Place equal tasks one after the other. Whether the turn is over."""
        placement, hooks = self._session.placement, self._hooks
        waiting = run
        for future in (False, True):
            while waiting:
                wanted = max(1, min(len(waiting), job.min_available - job.ready - job.waiting))
                plan = placement.plan(waiting[0], wanted, future=future)
                if not plan:
                    break
                for task, node in zip(waiting, plan, strict=False):
                    if not hooks.all_agree("allocatable", queue, task):
                        self._session.refuse(job, hooks.whys(job, task))
                        return False
                    if future:
                        statement.pipeline(task, node)
                    else:
                        statement.allocate(task, node)
                    placed.add(task.key)
                    if hooks.all_agree("job_ready", job):
                        return True
                waiting = waiting[len(plan) :]
        return False
