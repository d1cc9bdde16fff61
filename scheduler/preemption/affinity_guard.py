"""Protect tasks that placements require as neighbours, by pod affinity or topology spread.

A task is not evicted if its eviction would break the pod affinity or the topology spread of a placement that the
current request or an earlier one has made.
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

    def __init__(self, placement: Placement, *reprieves: Reprieve) -> None:
        self._placement = placement
        self._reprieves = reprieves
        self._known: dict[bytes, tuple[list[tuple[Reprieve, set[bytes]]], bool]] = {}

    def forget(self) -> None:
        """Discard cached results; call after another task has been placed."""
        self._known.clear()

    def conditions(self, task: Task, node: NodeInfo | None, statement: Statement) -> list[Condition]:
        """Return the conditions that hold now and that an eviction for `task` could break.

        Args:
            task: the task that needs room.
            node: the node on which it needs room; None if the eviction frees quota only.
            statement: the statement that contains the evictions.
        """
        constrained, is_constrained = self._constrained(task)
        found: list[Condition] = [partial(one.constraints_hold, shapes, statement) for one, shapes in constrained]
        if node is not None and is_constrained:
            found.append(partial(self._placement.admits, task, node, future=True))
        return found

    def _constrained(self, task: Task) -> tuple[list[tuple[Reprieve, set[bytes]]], bool]:
        """Return reprieves with constrained placements, the shapes of these, and whether the task is constrained.

        The result is cached until another task is placed.
        """
        known = self._known.get(task.shape)
        if known is None:
            pairs = ((one, one.constrained_shapes()) for one in self._reprieves)
            is_constrained = self._placement.neighbours(task, future=True) is not None
            known = self._known[task.shape] = ([pair for pair in pairs if pair[1]], is_constrained)
        return known
