"""Where pods with cards may go: nodes that have a card they ask for, and of which there is quota left.

The one rule: a pod that names a card never lands on another one, whatever its node selector says or leaves out; its
quota would be taken from the wrong model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from ...model.nodes import Mask, NodeInfo, Vector
from ...model.task import Task
from .cards import Catalog

Asked = Callable[[Task], Mapping[str, int]]
"""The cards that a task would take, the preferred first, with how many."""


class CardNodes:
    """The nodes of one cycle, as pods with cards see them.

    ``asked`` tells their cards, ``problem`` what is wrong with them, ``left`` of which of them the queue has quota
    left.
    """

    def __init__(
        self,
        catalog: Catalog,
        rows: list[NodeInfo],
        asked: Asked,
        problem: Callable[[Task], str],
        left: Callable[[Task], list[str]],
    ) -> None:
        self._catalog = catalog
        self._nodes = rows
        self._asked, self._problem, self._left = asked, problem, left
        self._rows: dict[tuple[str, ...], NDArray[np.str_]] = {}

    def _by_row(self, names: tuple[str, ...]) -> NDArray[np.str_]:
        """Node by node the first of some cards that it has, or nothing."""
        if names not in self._rows:
            found = [self._catalog.on(node.name, names) or "" for node in self._nodes]
            self._rows[names] = np.array(found, dtype=np.str_)
        return self._rows[names]

    def feasible(self, task: Task) -> Mask:
        """Nodes that have one of the cards that the task asks for; none for a task that asks wrongly."""
        names = tuple(self._asked(task))
        if not names:
            return np.full(len(self._nodes), not self._problem(task))
        return np.not_equal(self._by_row(names), "")

    def predicate(self, task: Task) -> Mask | None:
        """For a task that would take several models: nodes whose model the queue has quota left of."""
        names = tuple(self._asked(task))
        if len(names) < 2:
            return None
        return np.isin(self._by_row(names), self._left(task))

    def node_rule(self, task: Task, node: NodeInfo) -> tuple[str, str] | None:
        """Why the two masks leave a node out."""
        if problem := self._problem(task):
            return "other", problem
        names = tuple(self._asked(task))
        if not names:
            return None
        card = self._catalog.on(node.name, names)
        if card is None:
            return "card", " or ".join(names)
        return ("card-quota", card) if len(names) > 1 and card not in self._left(task) else None

    def score(self, task: Task, weight: float) -> Vector | None:
        """For a task that would take several models: the nodes of the preferred one, each later one half as good."""
        names = tuple(self._asked(task))
        if len(names) < 2:
            return None
        cards, scores = self._by_row(names), np.zeros(len(self._nodes))
        for index, card in enumerate(names):
            scores[cards == card] = 100.0 * 0.5**index * weight
        return scores
