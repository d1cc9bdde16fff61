"""Filter nodes for pods with cards: nodes that have a requested card for which quota is left.

A pod that names a card is never placed on another card, whatever its node selector permits: it would use the quota of
the wrong model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from ...model.nodes import Mask, NodeInfo, Vector
from ...model.task import Task
from .cards import Catalog

Accepted = Callable[[Task], Mapping[str, int]]
"""Return the cards that a task accepts with counts, the preferred first."""


class CardNodes:
    """Filter and score the nodes of one cycle for pods with cards.

    Args:
        accepted: returns the cards that a task accepts.
        problem: returns what is invalid in a task's request; empty if the request is valid.
        left: returns the accepted cards for which the task's queue has quota left.
    """

    def __init__(
        self,
        catalog: Catalog,
        rows: list[NodeInfo],
        accepted: Accepted,
        problem: Callable[[Task], str],
        left: Callable[[Task], list[str]],
    ) -> None:
        self._catalog = catalog
        self._nodes = rows
        self._accepted, self._problem, self._left = accepted, problem, left
        self._rows: dict[tuple[str, ...], NDArray[np.str_]] = {}

    def _by_row(self, names: tuple[str, ...]) -> NDArray[np.str_]:
        """Return for each node the first of the named cards that it has, or an empty string."""
        if names not in self._rows:
            found = [self._catalog.on(node.name, names) or "" for node in self._nodes]
            self._rows[names] = np.array(found, dtype=np.str_)
        return self._rows[names]

    def feasible(self, task: Task) -> Mask:
        """Return the nodes with one of the requested cards; none for a task with an invalid request."""
        names = tuple(self._accepted(task))
        if not names:
            return np.full(len(self._nodes), not self._problem(task))
        return np.not_equal(self._by_row(names), "")

    def predicate(self, task: Task) -> Mask | None:
        """Return, for a task that accepts several models, the nodes for whose model the queue has quota left."""
        names = tuple(self._accepted(task))
        if len(names) < 2:
            return None
        return np.isin(self._by_row(names), self._left(task))

    def node_rule(self, task: Task, node: NodeInfo) -> tuple[str, str] | None:
        """Return the rule by which one of the two masks excludes a node, or None."""
        if problem := self._problem(task):
            return "other", problem
        names = tuple(self._accepted(task))
        if not names:
            return None
        card = self._catalog.on(node.name, names)
        if card is None:
            return "card", " or ".join(names)
        return ("card-quota", card) if len(names) > 1 and card not in self._left(task) else None

    def score(self, task: Task, weight: float) -> Vector | None:
        """Score nodes for a task that accepts several models: each model scores half of the model before it."""
        names = tuple(self._accepted(task))
        if len(names) < 2:
            return None
        cards, scores = self._by_row(names), np.zeros(len(self._nodes))
        for index, card in enumerate(names):
            scores[cards == card] = 100.0 * 0.5**index * weight
        return scores
