"""Decide whether a job could ever run: whether the nodes could hold it if no pod ran on them.

Cordoned nodes and nodes that are not ready count as nodes, because they return. Neighbours, ports, shared cards and
volumes are not considered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Protocol

import numpy as np

from ..model.job import Job
from ..model.nodes import Nodes
from ..model.task import HOLDING, Task, TaskStatus
from ..policy.tiers import Hooks
from ..reasons import Unplaceable
from .engine import Placement
from .free_capacity import times

PASSING = "node.kubernetes.io/"
"""The prefix of taints that Kubernetes itself puts on a node for as long as its condition lasts."""


class Cycle(Protocol):
    """The part of a session that is needed here."""

    placement: Placement
    nodes: Nodes
    hooks: Hooks


class EmptyNodes:
    """The nodes without their pods, for the jobs of one cycle."""

    def __init__(self, session: Cycle) -> None:
        self._placement, self._nodes, self._hooks = session.placement, session.nodes, session.hooks
        self._slots: dict[Hashable, int] = {}

    def why_never(self, job: Job) -> Unplaceable | None:
        """Return why the nodes could not hold the job even if they were empty; None if they could, or without pods."""
        waiting = [task for task in job.by_status.get(TaskStatus.PENDING, {}).values() if not task.best_effort]
        lacking = job.min_available - job.ready - job.undemanding
        if not waiting or (lacking <= 0 and job.count(HOLDING)):
            return None
        numbers = Counter(task.shape for task in waiting)
        rooms = {task.shape: self._slots_of(task) for task in job.waiting_shapes.values()}
        room = sum(min(count, rooms.get(shape, count)) for shape, count in numbers.items())
        if room >= max(min(lacking, len(waiting)), 1):  # nothing is known about pods that do not exist yet
            return None
        task = min(
            (task for task in waiting if not rooms.get(task.shape, 1)), key=_place, default=min(waiting, key=_place)
        )
        dimension = next((name for name in sorted(task.init_request) if self._most(name) < task.init_request[name]), "")
        requested, most = task.init_request.get(dimension, 0), self._most(dimension)
        return Unplaceable(task.key, len(waiting), room, max(lacking, 1), dimension, requested, most)

    def _most(self, dimension: str) -> int:
        """Return the largest amount of one node."""
        column = self._nodes.dimensions.get(dimension)
        return 0 if column is None else int(self._nodes.allocatable[:, column].max(initial=0))

    def _slots_of(self, task: Task) -> int:
        """Return how many tasks equal to `task` fit onto all nodes that could ever get one."""
        kind = self._placement.kind(task)
        if kind not in self._slots:
            fitting = times(self._nodes, task, self._nodes.allocatable)
            allowed = self._placement.static(task).copy()
            for row in np.flatnonzero(~allowed & (fitting > 0)):
                allowed[row] = self._may_return(task, int(row))
            self._slots[kind] = int(fitting[allowed].sum())
        return self._slots[kind]

    def _may_return(self, task: Task, row: int) -> bool:
        """Whether a node excludes a task only for as long as the node is cordoned or not ready."""
        if task.missing:
            return False
        self._placement.spend(1)
        node = self._nodes.rows[row]
        rule = self._hooks.node_rule(task, node)
        if rule is None:  # the node is not ready, or a field or claim of the pod excludes every node
            return not node.is_ready or bool(task.pod.spec.volumes)
        return rule[0] in ("unschedulable", "volume") or (rule[0] == "taint" and rule[1].startswith(PASSING))


def _place(task: Task) -> tuple[int, float, str]:
    return task.place_in_job
