"""The nodes and what is taken on them, as arrays.

The one rule: a row is a node, rows are in name order (so the first best row is the smallest name, which keeps ties deterministic),
and every amount on a node changes through :meth:`Nodes.shift`. Dimensions are interned: a column is a dimension.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from scheduler.model import resources
from scheduler.model.objects import Node
from scheduler.model.resources import Resource
from scheduler.model.task import Task, TaskStatus

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

IDLE, USED, RELEASING, PIPELINED = "idle", "used", "releasing", "pipelined"


class NodeInfo:
    """One node: its object, its row, the tasks on it by key (pipelined ones included)."""

    __slots__ = ("allocatable", "labels", "name", "object", "row", "tasks", "version")

    def __init__(self, node: Node) -> None:
        self.name = node.metadata.name
        self.row = -1
        self.tasks: dict[str, Task] = {}
        self.version = 0
        """Grows when the node's object changes: what was computed from labels or taints is stale then."""
        self.describe(node)

    def describe(self, node: Node) -> None:
        self.object = node
        self.labels = node.metadata.labels or {}
        self.allocatable = resources.parse(node.status.allocatable)
        self.version += 1

    @property
    def is_ready(self) -> bool:
        """Whether the kubelet reports Ready (a node that reports no condition at all counts as ready, as in Volcano)."""
        return all(c.status == "True" for c in self.object.status.conditions or () if c.type == "Ready")

    def __repr__(self) -> str:
        return f"<Node {self.name}>"


class Nodes:
    """All nodes of the scheduler's world.

    ``allocatable``, ``idle``, ``used``, ``releasing``, ``pipelined`` are float64 arrays [nodes × dimensions] in the units of
    :mod:`scheduler.model.resources`. ``version`` grows when a node comes, goes or changes its object.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, NodeInfo] = {}
        self.rows: list[NodeInfo] = []
        self.dimensions: dict[str, int] = {}
        self.version = 0
        self._stale = False
        self._shape_arrays(0)

    def _shape_arrays(self, count: int) -> None:
        width = max(len(self.dimensions), 1)
        self.allocatable = np.zeros((count, width))
        self.idle, self.used = np.zeros((count, width)), np.zeros((count, width))
        self.releasing, self.pipelined = np.zeros((count, width)), np.zeros((count, width))

    # ------------------------------------------------------------------------------------------------------ structure

    def put(self, node: Node) -> NodeInfo:
        """Take in a node, or its new version."""
        info = self.by_name.get(node.metadata.name)
        if info is None:
            info = self.by_name[node.metadata.name] = NodeInfo(node)
            self._stale = True
        else:
            before = info.allocatable
            info.describe(node)
            self._stale = self._stale or before != info.allocatable
        self.version += 1
        return info

    def drop(self, name: str) -> None:
        """Forget a node and what was on it."""
        if self.by_name.pop(name, None) is not None:
            self._stale = True
            self.version += 1

    def settle(self) -> None:
        """Rebuild the arrays if nodes came, went or changed size. Call before reading rows or arrays."""
        if not self._stale:
            return
        self._stale = False
        self.rows = [self.by_name[name] for name in sorted(self.by_name)]
        for info in self.rows:
            self._intern(info.allocatable)
        self._shape_arrays(len(self.rows))
        for row, info in enumerate(self.rows):
            info.row = row
            self.allocatable[row] = self.idle[row] = self.vector(info.allocatable)
            for task in info.tasks.values():
                self._account(row, task, task.status, 1.0)

    def _intern(self, resource: Mapping[str, float]) -> None:
        missing = [name for name in resource if name not in self.dimensions]
        for name in missing:
            self.dimensions[name] = len(self.dimensions)
        grow = len(self.dimensions) - self.allocatable.shape[1]
        if missing and grow > 0:
            for field in ("allocatable", "idle", "used", "releasing", "pipelined"):
                setattr(self, field, np.pad(getattr(self, field), ((0, 0), (0, grow))))

    def vector(self, resource: Mapping[str, float]) -> Vector:
        """``resource`` as a row: one column a dimension. Interns dimensions that no one named before."""
        self._intern(resource)
        row = np.zeros(self.allocatable.shape[1])
        for name, amount in resource.items():
            row[self.dimensions[name]] = amount
        return row

    def resource(self, row: Vector) -> Resource:
        """A row as a resource; dimensions with nothing are left out."""
        return {name: float(row[i]) for name, i in self.dimensions.items() if row[i] != 0}

    # -------------------------------------------------------------------------------------------------------- amounts

    def place(self, info: NodeInfo, task: Task, status: TaskStatus) -> None:
        """Put a task onto a node, accounted as ``status`` says."""
        info.tasks[task.key] = task
        if info.row >= 0 and not self._stale:
            self._account(info.row, task, status, 1.0)

    def lift(self, info: NodeInfo, task: Task, status: TaskStatus) -> None:
        """Take a task off a node, accounted as ``status`` said."""
        if info.tasks.pop(task.key, None) is not None and info.row >= 0 and not self._stale:
            self._account(info.row, task, status, -1.0)

    def _account(self, row: int, task: Task, status: TaskStatus, sign: float) -> None:
        # A releasing task still holds its room and promises it; a pipelined one only claims room to come.
        if status & (TaskStatus.SUCCEEDED | TaskStatus.FAILED):
            return
        amount = sign * self.vector(task.request)
        if status & TaskStatus.PIPELINED:
            self.pipelined[row] += amount
            return
        self.idle[row] -= amount
        self.used[row] += amount
        if status & TaskStatus.RELEASING:
            self.releasing[row] += amount

    def future_idle(self) -> Vector:
        """What will be idle once the releasing have left and the pipelined have come, [nodes × dimensions]."""
        return self.idle + self.releasing - self.pipelined

    def total(self) -> Resource:
        """The sum of what all ready nodes have."""
        self.settle()
        ready = [info.row for info in self.rows if info.is_ready]
        return self.resource(self.allocatable[ready].sum(axis=0))
