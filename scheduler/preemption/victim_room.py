"""Compute the free room of all nodes if candidates are evicted, the least protected candidates first.

The amounts are upper bounds: plugins have no vote here. They vote later, when victims are searched within a domain.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..model.job import Job
from ..model.nodes import Amounts
from ..model.task import HOLDING, Task
from .request import RECLAIM, PreemptionRequest

MAX_STEPS = 8
"""Maximum number of steps into which priorities are grouped, apart from the last priority."""


class VictimRoom:
    """What the candidates of equal requests hold on each node, by the priority that protects them.

    Args:
        request: The first request; its rules apply to all of them.
        preemptor: One of the first request's tasks.
        rows: The rows of the nodes with candidates.
    """

    def __init__(self, request: PreemptionRequest, preemptor: Task, rows: Iterable[int]) -> None:
        self._request, self._preemptor = request, preemptor
        self._nodes = request.session.nodes
        self._held: dict[int, Amounts] = {}
        self._counts: dict[int, int] = {}
        self._rows = frozenset(rows)
        self._stale = set(self._rows)
        self._seen = len(self._nodes.touched)

    @property
    def candidates(self) -> int:
        """Return how many candidates there were at the last call of `steps`."""
        return sum(self._counts.values())

    def steps(self) -> list[Amounts]:
        """Return the free room of all nodes without evictions, then with more and more candidates evicted."""
        self._refresh()
        priorities = sorted(self._held)
        ends = set(priorities[:: -(-len(priorities) // MAX_STEPS)] if priorities else ()) | set(priorities[-1:])
        free = self._nodes.future_idle()
        found = [free]
        for priority in priorities:
            free = free + self._held[priority]
            if priority in ends:
                found.append(free)
        return found

    def _refresh(self) -> None:
        """Recount the candidates on the nodes that have changed."""
        touched = self._nodes.touched
        self._stale.update(self._rows.intersection(touched[self._seen :]))
        self._seen = len(touched)
        stale, self._stale = sorted(self._stale), set()
        for held in self._held.values():
            held[stale] = 0
        session, request = self._request.session, self._request
        for row in stale:
            self._counts[row] = 0
            tasks = self._nodes.rows[row].tasks.values()
            session.work.spend(1 + len(tasks))
            for task in tasks:
                job = session.jobs.get(task.job)
                if job is None or not task.status & HOLDING or not self._is_candidate(job):
                    continue
                if request.protection(self._preemptor, task) is None:
                    priority = request.priority(job, task)
                    if priority not in self._held:
                        self._held[priority] = np.zeros_like(self._nodes.allocatable)
                    self._held[priority][row] += self._nodes.held(task)
                    self._counts[row] += 1

    def _is_candidate(self, job: Job) -> bool:
        """Whether tasks of the job are candidates of some request; a request's own job is one for other requests."""
        request = self._request
        if request.within_job:
            return request.concerns(job)
        return (job.queue == request.queue.name) is (request.action != RECLAIM)
