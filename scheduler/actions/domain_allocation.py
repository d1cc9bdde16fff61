"""Place a job whose pods must run close together: the job in one domain, and each subgroup in one domain within it.

1. The domains that the job may use are tried, the best first (`scheduler.placement.domain_choice`).
2. Within a domain, subgroups are placed one after the other, each as a whole in the best of its own domains.
3. The first domain in which the job can start is used. Later turns and cycles use the domain of the pods placed so far.

A turn is one transaction: changes in a domain in which the job cannot start are undone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec
import numpy as np

from ..framework.session import Session
from ..model.job import Job
from ..model.nodes import NodeInfo
from ..model.queue import Queue
from ..model.task import HOLDING, READY, Task, TaskStatus
from ..placement.domain_choice import DomainChoice, Wanted
from ..reasons import GangShort, NoDomain, NoNode, OutsideDomain, UnschedulableReason
from ..topology.closeness import Closeness
from ..topology.domains import Domain
from ..topology.subgroups import REST, GroupId, SubGroup, SubGroups, id_of
from .gang_allocation import GangAllocation, TaskBatch, runs_of

BINDING = HOLDING | TaskStatus.PIPELINED
"""Statuses of tasks that restrict other tasks of their gang to the same domain."""


def allocation_of(session: Session, queue: Queue, job: Job) -> GangAllocation:
    """Return the transaction of a job's turn."""
    closeness, groups = session.hooks.closeness(job, None), session.shared(SubGroups).of(job)
    if closeness is None and not groups:
        return GangAllocation(session, queue, job)
    return DomainAllocation(session, queue, job, closeness, groups)


def batches_of(session: Session, job: Job, waiting: Sequence[Task]) -> list[TaskBatch]:
    """Return the waiting tasks of a job in runs of equal tasks; a run belongs to one subgroup."""
    policies = job.group.spec.sub_group_policy if job.group is not None else None
    if not policies:
        return runs_of(session.hooks.sorted_tasks(waiting))
    session.work.spend(len(policies) * len(waiting))
    by_group: dict[object, list[Task]] = {}
    for task in session.hooks.sorted_tasks(waiting):
        by_group.setdefault(id_of(policies, task), []).append(task)
    return [run for tasks in by_group.values() for run in runs_of(tasks)]


class DomainAllocation(GangAllocation):
    """One transaction for one job with a topology, or with subgroups."""

    def __init__(
        self,
        session: Session,
        queue: Queue,
        job: Job,
        closeness: Closeness | None,
        groups: dict[GroupId, SubGroup],
    ) -> None:
        super().__init__(session, queue, job)
        self._closeness, self._groups = closeness, groups
        self._policies = (job.group.spec.sub_group_policy if job.group is not None else None) or []
        self._packing = closeness
        self._group: SubGroup | None = None
        """The subgroup that is being placed."""
        self._choice = DomainChoice(session.placement, session.nodes, session.hooks)

    # -------------------------------------------------------------------------------------------------------- the job

    def _attempt(self, runs: list[TaskBatch]) -> list[tuple[TaskBatch, int]] | None:
        if self._closeness is None:
            return super()._attempt(runs)
        wanted, trials = self._wanted([task for run in runs for task in run.tasks]), list[_Trial]()
        for domain in self._choice.candidates(self._closeness, wanted, None):
            with self._placement.inside(domain):
                placed = super()._attempt(runs)
            if placed is not None or any(not isinstance(why, _REASONS_OF_DOMAIN) for why in self._refusals):
                return placed
            trials.append(self._trial(domain, wanted))
        own: list[UnschedulableReason] = [
            why for why in self._refusals if isinstance(why, NoDomain | OutsideDomain) and why.group
        ]
        whole = _refined(self._choice.refusal(self._closeness, wanted, None), trials)
        if isinstance(whole, NoDomain) and whole.room >= whole.pods and own:  # only a subgroup does not fit
            self._refusals = own[:1]
        elif self._closeness.is_hard:
            self._refusals = [whole]
        return None

    def _trial(self, domain: Domain | None, wanted: Wanted) -> _Trial:
        """Return the result of an attempt in a domain: how many tasks were placed, and what was lacking."""
        short = next((why for why in self._refusals if isinstance(why, GangShort) and not why.role), None)
        placed = 0 if short is None else max(short.placed - (short.minimum - wanted.lacking), 0)
        return _Trial(domain, placed, next((why for why in self._refusals if isinstance(why, NoNode)), None))

    def _wanted(self, tasks: list[Task]) -> Wanted:
        job = self._job
        elsewhere = job.waiting - sum(task.status is TaskStatus.PIPELINED for task in tasks)
        lacking = job.min_available - job.ready - job.undemanding - elsewhere
        return Wanted(tasks, max(min(lacking, len(tasks)), 1), self._rows_of(job.having(BINDING)))

    def _rows_of(self, tasks: Iterator[Task]) -> list[int]:
        by_name = self._session.nodes.by_name
        return [by_name[task.node].row for task in tasks if task.node in by_name]

    # ------------------------------------------------------------------------------------------------------ subgroups

    def _is_ready(self) -> bool:
        return super()._is_ready() if self._group is None else self._group.is_ready

    @contextmanager
    def _placing(self, group: SubGroup | None, closeness: Closeness | None) -> Iterator[None]:
        self._group, self._packing = group, closeness or self._closeness
        self._failed_shapes.clear()
        self._failed_roles.clear()
        try:
            yield
        finally:
            self._group, self._packing = None, self._closeness

    def _place_all(self, runs: list[TaskBatch]) -> list[tuple[TaskBatch, int]]:
        if not self._groups:
            return super()._place_all(runs)
        placed: list[tuple[TaskBatch, int]] = []
        left = {id(run): run.tasks[::-1] for run in runs}
        failed: set[GroupId] = set()
        while (group := self._next(runs, left, failed)) is not None:
            batches = [(run, TaskBatch(left[id(run)])) for run in runs if left[id(run)] and self._is_of(run, group)]
            found = self._place_group(group, [batch for _, batch in batches])
            if not found:
                failed.add(group.id)
            for batch, count in found:
                run = next(run for run, one in batches if one is batch)
                left[id(run)] = left[id(run)][count:]
                placed.append((run, count))
            if self._is_ready():
                break
        return placed

    def _is_of(self, run: TaskBatch, group: SubGroup) -> bool:
        return id_of(self._policies, run.first) == group.id

    def _next(self, runs: list[TaskBatch], left: dict[int, list[Task]], failed: set[GroupId]) -> SubGroup | None:
        """Return the subgroup to place next: first those that minSubGroups needs, then incomplete ones, by priority."""
        waiting: dict[GroupId, int] = {}
        for run in runs:
            if left[id(run)] and (place := id_of(self._policies, run.first)) not in failed:
                waiting[place] = max(waiting.get(place, run.first.priority), run.first.priority)
        complete = Counter(group.id[0] for group in self._groups.values() if group.is_ready)

        def key(place: GroupId) -> tuple[object, ...]:
            group = self._groups[place]
            is_needed = place != REST and complete[place[0]] < (self._policies[place[0]].min_sub_groups or 0)
            value = place[1][0] if place[1] else ""
            number = int(value) if value.isdecimal() else 0
            return (not is_needed or group.is_ready, group.is_ready, -waiting[place], number, place)

        return self._groups[min(waiting, key=key)] if waiting else None

    def _place_group(self, group: SubGroup, runs: list[TaskBatch]) -> list[tuple[TaskBatch, int]]:
        """Place tasks of a subgroup until the subgroup is complete; if that is impossible, place none of them."""
        if not runs:
            return []
        outer, before, first = self._placement.domain, self._statement.savepoint(), len(self._refusals)
        closeness = self._hooks.closeness(self._job, group)
        tasks = [task for run in runs for task in run.tasks]
        kept = sum(task.status is TaskStatus.PIPELINED for task in tasks)
        lacking = group.size - group.count(READY | TaskStatus.PIPELINED) + kept
        held = self._rows_of(task for task in group.tasks if task.status & BINDING)
        wanted = Wanted(tasks, max(min(lacking, len(tasks)), 1), held, group.name)
        if closeness is None:
            domains: Iterator[Domain | None] = iter((outer,))
        else:
            domains = self._choice.candidates(closeness, wanted, outer)
        trials: list[_Trial] = []
        for domain in domains:
            with self._placement.inside(domain), self._placing(group, closeness):
                found = super()._place_all(runs)
            if found and group.count(READY | TaskStatus.PIPELINED) >= group.size:
                return found
            self._statement.rollback(before)
            if any(not isinstance(why, _REASONS_OF_DOMAIN) for why in self._refusals[first:]):
                return []
            nodes = next((why for why in self._refusals[first:] if isinstance(why, NoNode)), None)
            trials.append(_Trial(domain, sum(count for _, count in found), nodes))
        if closeness is not None and closeness.is_hard:
            del self._refusals[first:]
            self._refusals.append(_refined(self._choice.refusal(closeness, wanted, outer), trials))
        return []

    # ---------------------------------------------------------------------------------------------------------- nodes

    def _plan(self, tasks: list[Task], *, future: bool) -> list[NodeInfo]:
        """Return nodes as the base class does, but in as few inner domains as possible."""
        first, closeness = tasks[0], self._packing
        if closeness is None or first.nominated or future:
            return super()._plan(tasks, future=future)
        near = np.zeros(len(self._session.nodes.rows), dtype=np.int64)
        own = self._job.having(BINDING) if self._group is None else iter(self._group.tasks)
        np.add.at(near, self._rows_of(task for task in own if task.status & BINDING), 1)
        part = self._choice.inner(closeness, self._placement.domain, first, len(tasks), near)
        if part is not None:
            with self._placement.inside(part):
                if found := super()._plan(tasks, future=future):
                    return found
        return super()._plan(tasks, future=future)


@dataclass(frozen=True, slots=True)
class _Trial:
    """An attempt to place tasks in a domain: how many were placed, and why the next task found no node."""

    domain: Domain | None
    placed: int
    nodes: NoNode | None


def _refined(why: NoDomain | OutsideDomain, trials: Sequence[_Trial]) -> NoDomain | OutsideDomain:
    """Return the reason of the best trial if `why`, which is based on estimated free room, finds nothing lacking."""
    tried = [trial for trial in trials if trial.domain is not None and trial.nodes is not None]
    if not tried or not isinstance(why, NoDomain) or why.room < why.pods:
        return why
    best = max(tried, key=lambda trial: trial.placed)
    name = best.domain.name if best.domain is not None else ""
    return msgspec.structs.replace(
        why, best=name, room=min(best.placed, why.pods - 1), dimension="", left=0, requested=0, nodes=best.nodes
    )


_REASONS_OF_DOMAIN: tuple[type[UnschedulableReason], ...] = (NoNode, GangShort, NoDomain, OutsideDomain)
"""Refusal reasons that may not apply in another domain."""
