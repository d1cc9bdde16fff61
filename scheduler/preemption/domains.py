"""Find victims for a job whose pods have to be close to each other, within the domain that costs least.

1. Domains are ranked by the protection of the candidates that would have to be evicted, then by how many pods lack
   room. A domain that could not hold the job even if every candidate were evicted is left out.
2. Each subgroup gets a domain inside of the job's domain. The room that other subgroups need there counts as used.
3. In each of the first few domains, victims are chosen as for any job, by a trial that is rolled back.
4. The domain whose victims cost least is chosen, and the search is repeated there.

No victim is evicted outside of the domain in which the job then starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ..model.nodes import Amounts
from ..model.task import HOLDING, Task, TaskStatus
from ..placement.domain_choice import DomainChoice, Wanted
from ..topology.closeness import Closeness
from ..topology.domains import NOWHERE, Domain
from ..topology.subgroups import REST, SubGroup, SubGroups
from .request import PreemptionRequest, Where
from .victim_room import VictimRoom

BINDING = HOLDING | TaskStatus.PIPELINED
Limits = tuple[Closeness | None, list[SubGroup]]
"""The domain limit of a job, and its subgroups."""


def limits_of(request: PreemptionRequest) -> Limits | None:
    """Return the domain limit of the job and its subgroups; None if tasks may be evicted on any node."""
    session, job = request.session, request.job
    closeness = session.hooks.closeness(job, None)
    groups = session.shared(SubGroups).of(job)
    if not groups and (closeness is None or not closeness.is_hard):
        return None
    return closeness, [*groups.values()]


def by_subgroup(tasks: Sequence[Task], groups: Sequence[SubGroup]) -> list[Task]:
    """Sort tasks by subgroup, each in the given order; then tasks without subgroup, then best-effort tasks."""
    rank = {task.key: group.id for group in groups for task in group.tasks}
    return sorted(
        tasks, key=lambda task: (task.best_effort, rank.get(task.key, REST) == REST, rank.get(task.key, REST))
    )


def places(
    request: PreemptionRequest,
    limits: Limits,
    tasks: Sequence[Task],
    room: VictimRoom,
) -> Iterator[Where]:
    """Yield where to search victims, the most promising domain first.

    Args:
        request: The request of a job with limits.
        limits: The result of `limits_of`.
        tasks: The waiting tasks of the job.
        room: What evictions can free.
    """
    session, job = request.session, request.job
    (closeness, groups), steps = limits, room.steps()
    search = _Search(request, tasks, steps)
    outers: Iterable[Domain | None] = (None,)
    if closeness is not None:
        wanted = Wanted(tasks, max(min(job.lacking, len(tasks)), 1), search.rows(job.having(BINDING)))
        outers = DomainChoice(session.placement, session.nodes, session.hooks).with_victims(
            closeness, wanted, None, steps
        )
    for outer in outers:
        where = search.assigned(groups, outer)
        if where is not None:
            yield where


class _Search:
    """Choose a domain for each subgroup of one job."""

    def __init__(self, request: PreemptionRequest, tasks: Sequence[Task], steps: list[Amounts]) -> None:
        session = request.session
        self._job, self._hooks, self._nodes = request.job, session.hooks, session.nodes
        self._choice = DomainChoice(session.placement, session.nodes, session.hooks)
        self._tasks, self._steps = {task.key: task for task in tasks}, steps

    def rows(self, tasks: Iterable[Task]) -> list[int]:
        by_name = self._nodes.by_name
        return [by_name[task.node].row for task in tasks if task.node in by_name]

    def assigned(self, groups: Sequence[SubGroup], outer: Domain | None) -> Where | None:
        """Return the domain of each task if `outer` is the job's; None if no waiting task gets a domain."""
        by_task: dict[str, Domain | None] = {}
        reserved = np.zeros_like(self._nodes.allocatable)
        for group in sorted(groups, key=lambda wanted: (-wanted.lacking, wanted.name)):
            own = [self._tasks[task.key] for task in group.tasks if task.key in self._tasks]
            closeness = self._hooks.closeness(self._job, group) if own and group.name else None
            if closeness is None or not closeness.is_hard:
                continue
            held = self.rows(task for task in group.tasks if task.status & BINDING)
            wanted = Wanted(own, max(min(group.lacking, len(own)), 1), held, group.name)
            steps = [free - reserved for free in self._steps]
            domain = next(iter(self._choice.with_victims(closeness, wanted, outer, steps)), NOWHERE)
            if domain is not None and domain is not NOWHERE:
                self._choice.reserve(reserved, domain, own[: wanted.lacking], self._steps)
            by_task.update((task.key, domain) for task in own)
        if by_task.keys() == self._tasks.keys() and all(domain is NOWHERE for domain in by_task.values()):
            return None
        return lambda task: by_task.get(task.key, outer)
