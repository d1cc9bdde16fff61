"""The nodes and the amounts on them, as arrays.

A row is a node, and rows are in the order of names, so that the first best row has the smallest name and ties are
deterministic. The amount on a node is always the exact sum of its tasks' amounts, limited to ±`MAX_AMOUNT`
(`scheduler.model.resources`): adding and then removing a task changes nothing. A column is a dimension; dimensions are
interned.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from . import resources
from .objects import Node
from .resources import MAX_AMOUNT, Resource
from .task import COMPLETED, Task, TaskStatus

T = TypeVar("T")


class Memo:
    """Results by key. Each caller uses keys of its own, and one type of result for each key."""

    def __init__(self) -> None:
        self._known: dict[Hashable, object] = {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the kept result, or else the result of `make`, which is kept from then on."""
        if key not in self._known:
            self._known[key] = make()
        return cast("T", self._known[key])

    def clear(self) -> None:
        """Drop all results, because their input has changed."""
        self._known.clear()


Amounts = NDArray[np.int64]
Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]
ALL = slice(None)
"""All rows."""

FEW_SHAPES = 64
"""Number of shapes that a cache may always hold (`Nodes.most_shapes`)."""

LARGE = 2**44
"""Largest amount (16 TiB) that is summed in the arrays: 2¹⁶ such amounts on a node do not exceed `MAX_AMOUNT`."""


@dataclass(slots=True)
class ExactSums:
    """Exact idle, releasing and pipelined sums of one row, and the number of its large tasks."""

    idle: Resource
    releasing: Resource
    pipelined: Resource
    large: int = 0


@dataclass(frozen=True, slots=True)
class SavedAmounts:
    """The amounts on all nodes at one time (`Nodes.save`)."""

    idle: Amounts
    releasing: Amounts
    pipelined: Amounts
    exact: dict[int, ExactSums]


class NodeInfo:
    """One node: its object, its row, and the tasks on it by key (pipelined ones included)."""

    __slots__ = ("allocatable", "labels", "name", "object", "row", "tasks", "version")

    def __init__(self, node: Node) -> None:
        self.name = node.metadata.name
        self.row = -1
        self.tasks: dict[str, Task] = {}
        self.version = 0
        """Grows when the node's object changes, because results computed from its labels or taints are then stale."""
        self.describe(node)

    def describe(self, node: Node) -> None:
        self.allocatable = resources.parse(node.status.allocatable)
        self.object = node
        self.labels = node.metadata.labels or {}
        self.version += 1

    @property
    def is_ready(self) -> bool:
        """Whether the kubelet reports Ready. A node without the condition is ready, as in Volcano."""
        return all(c.status == "True" for c in self.object.status.conditions or () if c.type == "Ready")

    def __repr__(self) -> str:
        return f"<Node {self.name}>"


class Nodes:
    """All nodes that belong to the scheduler.

    Attributes:
        allocatable: int64 array [nodes x dimensions] in the units of `scheduler.model.resources`, as are `idle`,
            `releasing` and `pipelined`. No amount exceeds ±`MAX_AMOUNT`, so up to seven arrays add up without overflow,
            which numpy would not report.
        ready: Rows that may get new tasks.
        version: Grows when a node is added or removed or its object changes.
        touched: Rows whose amounts changed since `refresh`, oldest first.
        kept: Results computed from the nodes' objects alone; emptied when one of these objects changes.
        lasting: Results that survive such a change; their owners check themselves what has changed.
        most_shapes: Maximum number of shapes in a cache before it is emptied. The number depends on the existing tasks,
            so that shapes of deleted tasks do not fill the memory.
        with_pod_terms: Tasks on nodes that have terms about other pods, by shape.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, NodeInfo] = {}
        self.rows: list[NodeInfo] = []
        self.dimensions: dict[str, int] = {}
        self.version = 0
        self.touched: list[int] = []
        self.kept = Memo()
        self.lasting = Memo()
        self.most_shapes = FEW_SHAPES
        self.with_pod_terms: dict[bytes, dict[str, Task]] = {}
        self._stale = False
        self._total: tuple[int, Resource] = (-1, {})
        self._vectors: dict[bytes, tuple[Amounts, Amounts, bool]] = {}
        self._exact: dict[int, ExactSums] = {}
        """Exact sums of rows with large amounts."""
        self._shape_arrays(0)

    def _shape_arrays(self, count: int) -> None:
        # Column-major: most queries read one dimension of all nodes.
        shape = (count, max(len(self.dimensions), 1))
        self.allocatable: Amounts = np.zeros(shape, dtype=np.int64, order="F")
        self.idle = self.allocatable.copy(order="F")
        self.releasing, self.pipelined = self.idle.copy(order="F"), self.idle.copy(order="F")
        self.ready = np.zeros(count, dtype=np.bool_)

    # ------------------------------------------------------------------------------------------------------ structure

    def put(self, node: Node) -> NodeInfo:
        """Add or update a node.

        Raises:
            QuantityError: an amount of the node is invalid.
        """
        info = self.by_name.get(node.metadata.name)
        if info is None:
            info = self.by_name[node.metadata.name] = NodeInfo(node)
        else:
            info.describe(node)
        self._changed()
        return info

    def drop(self, name: str) -> None:
        """Remove a node and the tasks on it."""
        if (info := self.by_name.pop(name, None)) is not None:
            info.row = -1
            for task in info.tasks.values():
                if task.has_inter_pod_constraints:
                    self._forget_terms(task)
            self._changed()

    def _changed(self) -> None:
        self._stale = True
        self.version += 1
        self.kept.clear()

    def drop_dimensions(self, names: Collection[str]) -> None:
        """Remove the columns of these resources."""
        left = (name for name in self.dimensions if name not in names)
        self.dimensions = {name: column for column, name in enumerate(left)}
        self._vectors.clear()
        self._exact.clear()
        self._changed()

    def refresh(self) -> None:
        """Rebuild the arrays if nodes were added, removed or changed. Call before reading rows or arrays."""
        self.touched.clear()
        if not self._stale:
            return
        self._stale = False
        self.rows = [self.by_name[name] for name in sorted(self.by_name)]
        for info in self.rows:
            self.intern(info.allocatable)
        self._shape_arrays(len(self.rows))
        self._exact.clear()
        for row, info in enumerate(self.rows):
            info.row = row
            self.ready[row] = info.is_ready
            self.allocatable[row] = self.idle[row] = self.vector(info.allocatable)
            for task in info.tasks.values():
                self._account(row, task, task.status, 1)
        self.touched.clear()

    def intern(self, resource: Mapping[str, int]) -> None:
        """Add a column for every dimension of `resource`."""
        missing = [name for name in resource if name not in self.dimensions]
        if not missing:
            return
        for name in missing:
            self.dimensions[name] = len(self.dimensions)
        self._vectors.clear()
        self.allocatable, self.idle = self._widened(self.allocatable), self._widened(self.idle)
        self.releasing, self.pipelined = self._widened(self.releasing), self._widened(self.pipelined)

    def _widened(self, amounts: Amounts) -> Amounts:
        """Return the array with a column for each dimension; new columns are zero."""
        grow = len(self.dimensions) - amounts.shape[1]
        return np.asfortranarray(np.pad(amounts, ((0, 0), (0, grow)))) if grow > 0 else amounts

    def vector(self, resource: Mapping[str, int]) -> Amounts:
        """Return `resource` as a row with one column for each dimension. Interns new dimensions."""
        self.intern(resource)
        row = np.zeros(self.allocatable.shape[1], dtype=np.int64)
        for name, amount in resource.items():
            row[self.dimensions[name]] = amount
        return row

    def held(self, task: Task) -> Amounts:
        """Return what the task holds while it runs, as a row."""
        return self._vectors_of(task)[0]

    def needed(self, task: Task) -> Amounts:
        """Return what the task needs to start, as a row."""
        return self._vectors_of(task)[1]

    def _vectors_of(self, task: Task) -> tuple[Amounts, Amounts, bool]:
        known = self._vectors.get(task.shape)
        if known is None:
            if len(self._vectors) >= self.most_shapes:
                self._vectors.clear()
            held = self.vector(task.request)
            needed = held if task.init_request == task.request else self.vector(task.init_request)
            known = self._vectors[task.shape] = (held, needed, bool((abs(held) > LARGE).any()))
        return known

    def sum_of(self, amounts: Amounts) -> Resource:
        """Return the exact sum of rows as a resource without its zero dimensions."""
        # In halves, so that no number of rows overflows.
        high, low = (amounts >> 32).sum(axis=0), (amounts & 0xFFFFFFFF).sum(axis=0)
        sums = {name: (int(high[i]) << 32) + int(low[i]) for name, i in self.dimensions.items()}
        return {name: amount for name, amount in sums.items() if amount}

    # -------------------------------------------------------------------------------------------------------- amounts

    def place(self, info: NodeInfo, task: Task, status: TaskStatus) -> None:
        """Put a task onto a node, counted as `status` requires."""
        self._enter(info, task)
        if info.row >= 0 and not self._stale:
            self._account(info.row, task, status, 1)

    def lift(self, info: NodeInfo, task: Task, status: TaskStatus) -> None:
        """Remove a task from a node, counted as `status` required."""
        if self._leave(info, task) and info.row >= 0 and not self._stale:
            self._account(info.row, task, status, -1)

    def save(self) -> SavedAmounts:
        """Return the amounts on all nodes, for `restore`."""
        exact = {row: copy.deepcopy(sums) for row, sums in self._exact.items()}
        return SavedAmounts(self.idle.copy("F"), self.releasing.copy("F"), self.pipelined.copy("F"), exact)

    def restore(self, saved: SavedAmounts, moved: Iterable[tuple[Task, str]]) -> None:
        """Undo all calls of `place` and `lift` since `save`.

        Args:
            saved: the amounts that `save` returned. They can be restored only once.
            moved: the moved tasks, each with the name of its node when `save` was called.
        """
        for task, node in moved:
            if task.node == node:
                continue
            if (info := self.by_name.get(task.node)) is not None:
                self._leave(info, task)
            if (info := self.by_name.get(node)) is not None:
                self._enter(info, task)
        self.idle, self.releasing = self._widened(saved.idle), self._widened(saved.releasing)
        self.pipelined, self._exact = self._widened(saved.pipelined), saved.exact

    def _enter(self, info: NodeInfo, task: Task) -> None:
        info.tasks[task.key] = task
        if task.has_inter_pod_constraints:
            self.with_pod_terms.setdefault(task.shape, {})[task.key] = task

    def _leave(self, info: NodeInfo, task: Task) -> bool:
        if info.tasks.pop(task.key, None) is None:
            return False
        if task.has_inter_pod_constraints:
            self._forget_terms(task)
        return True

    def _forget_terms(self, task: Task) -> None:
        alike = self.with_pod_terms[task.shape]
        del alike[task.key]
        if not alike:
            del self.with_pod_terms[task.shape]

    def _account(self, row: int, task: Task, status: TaskStatus, sign: int) -> None:
        # A releasing task still holds its capacity; a pipelined one only reserves capacity that is being freed.
        if status & COMPLETED:
            return
        amount, _, is_large = self._vectors_of(task)
        self.touched.append(row)
        if is_large or row in self._exact:
            self._account_exactly(row, task.request, status, sign, is_large=is_large)
            return
        add, subtract = (np.add, np.subtract) if sign > 0 else (np.subtract, np.add)
        if status is TaskStatus.PIPELINED:
            pipelined = self.pipelined[row]
            add(pipelined, amount, out=pipelined)
            return
        idle = self.idle[row]
        subtract(idle, amount, out=idle)  # in place: `self.idle[row] -= amount` would copy the row onto itself
        if status is TaskStatus.RELEASING:
            releasing = self.releasing[row]
            add(releasing, amount, out=releasing)

    def _account_exactly(self, row: int, request: Resource, status: TaskStatus, sign: int, *, is_large: bool) -> None:
        """Count a task in integers that never overflow; the arrays get these sums, limited to ±`MAX_AMOUNT`."""
        arrays = (self.idle, self.releasing, self.pipelined)
        if row not in self._exact:
            idle, releasing, pipelined = ({n: int(a[row, i]) for n, i in self.dimensions.items()} for a in arrays)
            self._exact[row] = ExactSums(idle, releasing, pipelined)
        sums = self._exact[row]
        sums.large += sign * is_large
        if status is TaskStatus.PIPELINED:
            _add(sums.pipelined, request, sign)
        else:
            _add(sums.idle, request, -sign)
            if status is TaskStatus.RELEASING:
                _add(sums.releasing, request, sign)
        for array, exact in zip(arrays, (sums.idle, sums.releasing, sums.pipelined), strict=True):
            array[row] = self.vector(
                {name: max(min(amount, MAX_AMOUNT), -MAX_AMOUNT) for name, amount in exact.items()}
            )
        if not sums.large:
            del self._exact[row]

    @property
    def used(self) -> Amounts:
        """Return the used amounts, [nodes x dimensions]: releasing tasks count, pipelined ones do not."""
        return self.allocatable - self.idle

    def future_idle(self, rows: slice | int | Sequence[int] | Rows | Mask = ALL) -> Amounts:
        """Return what will be idle on some rows after releasing tasks are deleted and pipelined tasks run."""
        idle: Amounts = self.idle[rows] + self.releasing[rows] - self.pipelined[rows]
        return idle

    def total(self) -> Resource:
        """Return the sum of all ready nodes' amounts."""
        if self._total[0] != self.version:
            self._total = (self.version, self.sum_of(self.allocatable[self.ready]))
        return dict(self._total[1])


def _add(total: Resource, more: Resource, sign: int) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + sign * amount
