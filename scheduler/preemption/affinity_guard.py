"""Who asks for a neighbour keeps it.

The one rule: a victim that a placement asks to be next to (pod affinity, spread) is none, be it the placement that the
victim would go for or one that was made before it.
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
    """The placements of one request and of those before it, as far as they mind who runs where."""

    def __init__(self, placement: Placement, *placed: Reprieve) -> None:
        self._placement = placement
        self._placed = placed
        self._known: dict[bytes, tuple[list[tuple[Reprieve, set[bytes]]], bool]] = {}

    def forget(self) -> None:
        """One more has been placed."""
        self._known.clear()

    def conditions(self, task: Task, node: NodeInfo | None, statement: Statement) -> list[Condition]:
        """What evictions for ``task`` on ``node`` (None: for its queue's sake) may bring to fall, asked as things
        stand.
        """
        placed, minds = self._minding(task)
        found: list[Condition] = [partial(one.neighbours_stand, shapes, statement) for one, shapes in placed]
        if node is not None and minds:
            found.append(partial(self._placement.admits, task, node, future=True))
        return found

    def _minding(self, task: Task) -> tuple[list[tuple[Reprieve, set[bytes]]], bool]:
        """The placements that mind, with their shapes, and whether the task does: the same until one more is placed."""
        known = self._known.get(task.shape)
        if known is None:
            pairs = ((one, one.minding()) for one in self._placed)
            minds = self._placement.neighbours(task, future=True) is not None
            known = self._known[task.shape] = ([pair for pair in pairs if pair[1]], minds)
        return known
