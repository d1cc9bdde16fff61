"""Keep the neighbours that placements require: pod affinity and topology spread.

A task is no victim if its eviction would break the pod affinity or the spread of a placement, of the current request or
of an earlier one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..framework.statement import Statement
from ..model.nodes import NodeInfo
from ..model.task import Task
from ..placement import Placement
from .reprieve import Reprieve

Condition = Callable[[], bool]


class AffinityGuard:
    """Check the inter-pod constraints of the placements of one request and of earlier requests."""

    def __init__(self, placement: Placement, *placed: Reprieve) -> None:
        self._placement = placement
        self._placed = placed
        self._known: dict[bytes, tuple[list[tuple[Reprieve, set[bytes]]], bool]] = {}

    def forget(self) -> None:
        """Discard what was computed: another task has been placed."""
        self._known.clear()

    def conditions(self, task: Task, node: NodeInfo | None, statement: Statement) -> list[Condition]:
        """Return the conditions that hold now and that an eviction for `task` could break.

        Args:
            task: the task that needs room.
            node: the node on which it needs room; None if the eviction frees quota only.
            statement: the statement that contains the evictions.
        """
        placed, minds = self._minding(task)
        found: list[Condition] = [partial(one.neighbours_stand, shapes, statement) for one, shapes in placed]
        if node is not None and minds:
            found.append(partial(self._placement.admits, task, node, future=True))
        return found

    def _minding(self, task: Task) -> tuple[list[tuple[Reprieve, set[bytes]]], bool]:
        """Return placements with inter-pod constraints, each with its shapes, and whether the task has some.

        The result is kept until another task is placed.
        """
        known = self._known.get(task.shape)
        if known is None:
            pairs = ((one, one.minding()) for one in self._placed)
            minds = self._placement.neighbours(task, future=True) is not None
            known = self._known[task.shape] = ([pair for pair in pairs if pair[1]], minds)
        return known
