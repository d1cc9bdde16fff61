"""One turn of a job: place as many of its tasks as the job needs to be ready, in one transaction.

If the job cannot become ready, all changes are undone, unless everything that it lacks is being freed. In that case its
tasks remain pipelined for the rest of the cycle, so that no later job uses that room. (Semantics: Volcano's
`actions/allocate`.)
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter

from ..framework.session import Session
from ..model.job import Job
from ..model.nodes import NodeInfo
from ..model.queue import Queue
from ..model.task import Task, TaskStatus
from ..reasons import GangShort, UnschedulableReason

ALIKE = attrgetter("shape", "nominated", "role")


class TaskBatch:
    """Consecutive tasks of the same shape, nominated node and role.

    `tasks` is in reverse order: the next task is the last element.
    """

    __slots__ = ("tasks",)

    def __init__(self, tasks: Iterable[Task]) -> None:
        self.tasks = list(tasks)[::-1]

    @property
    def first(self) -> Task:
        return self.tasks[-1]

    def next(self, count: int) -> list[Task]:
        """Return the next `count` tasks, in order."""
        return self.tasks[: -count - 1 : -1]


def runs_of(tasks: Iterable[Task]) -> list[TaskBatch]:
    """Group tasks into runs of equal tasks; the order is kept."""
    return [TaskBatch(group) for _, group in groupby(tasks, key=ALIKE)]


class GangAllocation:
    """One transaction for one job."""

    def __init__(self, session: Session, queue: Queue, job: Job) -> None:
        self._session, self._queue, self._job = session, queue, job
        self._hooks, self._placement = session.hooks, session.placement
        self._statement = session.statement()
        self._refusals: list[UnschedulableReason] = []
        self._failed_shapes: set[bytes] = set()
        self._failed_roles: set[str] = set()
        self._ready = False
        """Whether the job was ready when the last attempt ended."""

    def place(self, runs: list[TaskBatch]) -> bool:
        """Place tasks of `runs` and remove the placed tasks from them.

        Returns:
            True if the job made progress and may have another turn.
        """
        session, job = self._session, self._job
        if self._only_waits(runs):
            return False
        placed = self._attempt(runs)
        if placed is None and (yielded := session.nominations.yield_to(job, self._statement)):
            refusals = self._refusals
            placed = self._attempt(runs)
            if placed is not None and not session.nominations.take_over(job, yielded, self._statement):
                placed, self._refusals = None, refusals
        if placed is None:
            self._statement.discard()
        elif self._ready:
            self._statement.commit()
        for run, count in placed or ():
            del run.tasks[len(run.tasks) - count :]
        runs[:] = [run for run in runs if run.tasks]
        if runs and self._refusals:
            session.refuse(job, self._refusals)
        return bool(placed)

    def _attempt(self, runs: list[TaskBatch]) -> list[tuple[TaskBatch, int]] | None:
        """Place tasks. If the job is then neither ready nor waiting only for room being freed, undo and return None."""
        self._refusals = []
        self._failed_shapes.clear()
        self._failed_roles.clear()
        before = self._statement.savepoint()
        placed = [] if self._cannot_start(runs) else self._place_all(runs)
        self._ready = self._is_ready()
        if self._ready or self._hooks.job_pipelined(self._job):
            return placed
        self._refusals += [*self._hooks.reasons(self._job, runs[0].first), *self._short(self._job.waiting)]
        self._statement.rollback(before)
        return None

    def _only_waits(self, runs: list[TaskBatch]) -> bool:
        """Whether the job only waits for the room being freed for it, because it cannot start on free room now.

        This is the usual case while victims terminate.
        """
        job = self._job
        lacking = job.min_available - job.ready - job.undemanding
        if lacking <= 0 or not job.waiting:
            return False
        waiting = [task for run in runs for task in run.tasks]
        if any(task.status is not TaskStatus.PIPELINED for task in waiting) or not self._hooks.job_pipelined(job):
            return False
        alike: dict[bytes, list[Task]] = {}
        for task in waiting:
            alike.setdefault(task.shape, []).append(task)
        return any(self._placement.slots_now(tasks) < lacking - (len(waiting) - len(tasks)) for tasks in alike.values())

    def _cannot_start(self, runs: list[TaskBatch]) -> bool:
        """Whether a gang of equal tasks exceeds the free room; if so, record why. No task is placed for the answer."""
        job, task = self._job, runs[0].first
        lacking = job.min_available - job.ready - job.waiting - job.undemanding
        if (
            len(runs) > 1
            or lacking <= 1  # trying one task costs no more than counting
            or self._hooks.job_pipelined(job)
            or self._placement.has_inter_pod_constraints(task)
        ):
            return False
        slots = self._placement.slots(task, lacking)
        if lacking <= slots:
            return False
        self._refusals = [self._placement.explain(task), *self._short(job.waiting + slots)]
        return True

    def _short(self, places: int) -> list[UnschedulableReason]:
        placed = self._job.ready + places
        return [GangShort(placed, self._job.min_available)] if 0 < placed < self._job.min_available else []

    def _is_ready(self) -> bool:
        return self._hooks.job_ready(self._job)

    def _place_all(self, runs: list[TaskBatch]) -> list[tuple[TaskBatch, int]]:
        placed: list[tuple[TaskBatch, int]] = []
        for run in runs:
            if run.first.shape in self._failed_shapes:
                continue
            if count := self._place(run):
                placed.append((run, count))
                if self._is_ready():
                    break
            if self._failed_roles and not self._may_go_on():
                break
        return placed

    def _place(self, run: TaskBatch) -> int:
        """Place tasks of a run until the job is ready or no more fit; return how many were placed."""
        kept: list[tuple[Task, NodeInfo]] = []
        try:
            return self._place_run(run, kept)
        finally:
            for task, node in kept:  # tasks without a better node keep their former one
                if task.status is TaskStatus.PENDING and self._placement.fits(task, node, future=True):
                    self._statement.pipeline(task, node)

    def _place_run(self, run: TaskBatch, kept: list[tuple[Task, NodeInfo]]) -> int:
        """Place tasks as `_place` does; append tasks that were pipelined already, with their nodes, to `kept`.

        A pipelined task releases its room only when it is next, so that no sibling uses that room.
        """
        job, count, future = self._job, 0, False
        while count < len(run.tasks):
            remaining = run.tasks[: len(run.tasks) - count] if run.first.nominated else ()
            pipelined = sum(task.status is TaskStatus.PIPELINED for task in remaining)
            wanted = 1 if self._is_ready() else max(1, job.min_available - job.ready - job.waiting + pipelined)
            tasks = run.next(count + wanted)[count:]
            self._release_pipelined(tasks, kept)
            plan = self._plan(tasks, future=future)
            if not plan:
                if future:
                    self._fail(tasks[0])
                    break
                future = True
                continue
            for task, node in zip(tasks, plan, strict=False):
                if not self._hooks.allocatable(self._queue, task):
                    self._refusals += self._hooks.reasons(job, task)
                    self._failed_shapes.add(task.shape)
                    return count
                if future:
                    self._statement.pipeline(task, node)
                else:
                    self._statement.allocate(task, node)
                count += 1
                if self._is_ready():
                    return count
        return count

    def _release_pipelined(self, tasks: list[Task], kept: list[tuple[Task, NodeInfo]]) -> None:
        for task in tasks:
            if task.status is TaskStatus.PIPELINED:
                kept.append((task, self._session.nodes.by_name[task.node]))
                self._statement.release(task)

    def _plan(self, tasks: list[Task], *, future: bool) -> list[NodeInfo]:
        """Return nodes for equal tasks: the node that the first task was nominated to, otherwise the best nodes."""
        first = tasks[0]
        node = self._session.nodes.by_name.get(first.nominated)
        if node is not None and self._placement.fits(first, node, future=future):
            return [node]
        return self._placement.plan(first, len(tasks), future=future)

    def _fail(self, task: Task) -> None:
        if not self._placement.has_inter_pod_constraints(task):
            self._failed_shapes.add(task.shape)
        self._failed_roles.add(task.role)
        self._refusals.append(self._placement.explain(task))

    def _may_go_on(self) -> bool:
        """Whether the remaining tasks can still make the job ready after a task found no node."""
        job = self._job
        if job.min_available == len(job.tasks):
            return False
        if job.min_available < sum(job.role_minima.values()):
            waiting = job.by_status.get(TaskStatus.PENDING, {}).values()
            return job.ready + sum(task.role not in self._failed_roles for task in waiting) >= job.min_available
        placed = [task.role for task in job.having(~TaskStatus.PENDING)]
        return all(placed.count(role) >= job.role_minima.get(role, 0) for role in self._failed_roles)
