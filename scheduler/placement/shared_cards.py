"""Track the shared cards of all nodes within a cycle: what each pod holds of a card, and which nodes fit a pod.

A pod that was bound before the cycle holds the cards that its annotations name; a pod that is placed in the cycle holds
the cards that were chosen for it. A node is counted again only after a change on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from itertools import combinations, islice

import numpy as np

from ..model.card_demand import Scheme
from ..model.card_notation import Card, Share, Shares, cards_of, shares_of
from ..model.nodes import Mask, NodeInfo, Nodes, Vector
from ..model.task import COMPLETED, Task, TaskStatus
from .card_choice import UNUSED, CardRequest, Order, Usage, choose, fits, score
from .pod_index import Spend

Used = dict[str, Usage]
MAX_GROUPS = 64
"""Maximum number of combinations of cards for which victims are sought on a node."""
FIELD = "spec.containers[].resources"


class SharedCards:
    """The shared cards of one cycle.

    Args:
        request_of: Returns the request of a task with `cards`.
        spend: Counts steps.
    """

    def __init__(self, nodes: Nodes, request_of: Callable[[Task], CardRequest], order: Order, spend: Spend) -> None:
        self._nodes, self._request_of, self._order, self._spend = nodes, request_of, order, spend
        self._chosen: dict[str, tuple[str, Shares]] = {}
        """Uid of a task that was placed in this cycle → its node and its cards."""
        self._by_request: dict[tuple[CardRequest, bool], _Feasibility] = {}

    def of_node(self, node: NodeInfo, scheme: Scheme) -> tuple[Card, ...]:
        """Return the cards that a node announces."""
        return self._nodes.kept.once(("shared-cards", node.name, scheme), lambda: cards_of(node.object, scheme))

    def feasibility(self, task: Task, *, future: bool) -> tuple[Mask, Vector]:
        """Return the nodes with the cards that the task requests, and their scores.

        With `future`, releasing pods count as deleted; pipelined pods count in any case.
        """
        request = self._request_of(task)
        known = self._by_request.get((request, future))
        if known is None:
            known = self._by_request[request, future] = _Feasibility(self, self._nodes, request, future=future)
        known.refresh(self._spend)
        return known.mask, known.scores

    def find(
        self, request: CardRequest, node: NodeInfo, *, future: bool, among: Set[str] | None = None
    ) -> tuple[Shares | None, float]:
        """Return the best shares of a node's cards for a request, and their score; None if the cards do not suffice.

        With `among`, only the cards of these names count.
        """
        cards = self.of_node(node, request.demand.scheme)
        if among is not None:
            cards = tuple(card for card in cards if card.name in among)
        if not cards:
            return None, 0.0
        used = self._used(node, cards, request.demand.scheme, future=future)
        found = choose(request, cards, used, self._order)
        return found, 0.0 if found is None else score(found, cards, used, self._order)

    def shortage(self, request: CardRequest, rows: Iterable[int]) -> str:
        """Return what the best of some nodes lacks after releasing pods have left."""
        part, best, text = request.demand.largest, (-1, -1), "no node announces its cards"
        for node in (self._nodes.rows[row] for row in rows):
            cards = self.of_node(node, request.demand.scheme)
            used = self._used(node, cards, request.demand.scheme, future=True)
            fitting = sum(fits(request, part, card, used.get(card.name, UNUSED)) for card in cards)
            left = ((card.memory - used.get(card.name, UNUSED).memory, card.memory) for card in cards if card.is_usable)
            free, memory = max(left, default=(0, 0))
            if not cards or (fitting, free) <= best:
                continue
            best, needed = (fitting, free), part.memory_of(memory)
            if not fitting and free < needed:
                text = f"{node.name}: the freest card has {free} of {memory} MiB free, {needed} requested"
            else:
                text = f"{node.name}: {fitting} of {len(cards)} cards can be used, {part.cards} requested"
        return text

    def victim_groups(self, request: CardRequest, node: NodeInfo) -> Iterator[frozenset[str]]:
        """Yield sets of tasks whose eviction frees cards for the largest part of the request; few tasks come first."""
        part, holders = request.demand.largest, dict[str, set[str]]()
        cards = self.of_node(node, request.demand.scheme)
        for task in node.tasks.values():
            if task.cards is not None and not task.status & (COMPLETED | TaskStatus.RELEASING):
                for share in self._held(task, cards):
                    holders.setdefault(share.card, set()).add(task.key)
        usable = [holders.get(card.name, set()) for card in cards if fits(request, part, card, UNUSED)]
        usable.sort(key=lambda keys: (len(keys), sorted(keys)))
        for together in islice(combinations(usable, part.cards), MAX_GROUPS):
            yield frozenset[str]().union(*together)

    def chosen(self, task: Task) -> Shares | None:
        """Return the cards that were chosen for a task in this cycle."""
        known = self._chosen.get(task.uid)
        return None if known is None or known[0] != task.node else known[1]

    def count(self, task: Task, sign: int) -> None:
        """Choose cards for a task that begins to count as allocated; call on each change of an allocation.

        A task that returns to a node gets its former cards if they still fit: rolling back restores the former state.
        """
        node = self._nodes.by_name.get(task.node)
        if sign < 0 or task.cards is None or node is None or task.assigned or task.pod.spec.node_name:
            return
        request, future = self._request_of(task), task.status is TaskStatus.PIPELINED
        former_node, former = self._chosen.pop(task.uid, ("", ()))  # the task is on the node already and must not count
        named = {share.card for part in former for share in part} if former_node == task.node else set[str]()
        found = self.find(request, node, future=future, among=named)[0] if named else None
        if found is None:
            found = self.find(request, node, future=future)[0] or (former if named else None)
        if found is not None:
            self._chosen[task.uid] = task.node, found

    def _used(self, node: NodeInfo, cards: tuple[Card, ...], scheme: Scheme, *, future: bool) -> Used:
        """Return what pods hold of each card of a node, now or after releasing pods have left."""
        found: Used = {}
        gone = COMPLETED | (TaskStatus.RELEASING if future else 0)
        for task in node.tasks.values():
            if task.cards is None or task.status & gone or (task.cards.scheme == "vgpu") != (scheme == "vgpu"):
                continue  # the schemes `memory` and `number` use the same cards, `vgpu` has cards of its own
            request = self._request_of(task)
            for share in self._held(task, cards):
                usage = found.setdefault(share.card, Usage())
                usage.add(share)
                usage.jobs.add(task.job)
                usage.rules.update(request.rules)
        return found

    def _held(self, task: Task, cards: tuple[Card, ...]) -> tuple[Share, ...]:
        assert task.cards is not None
        annotations: Mapping[str, str] = task.placed_with
        if annotations:
            return shares_of(annotations, task.cards, cards)
        return tuple(share for part in self.chosen(task) or () for share in part)


class _Feasibility:
    """The nodes that fit one request, and their scores; updated within a cycle."""

    def __init__(self, cards: SharedCards, nodes: Nodes, request: CardRequest, *, future: bool) -> None:
        self._cards, self._nodes, self._request, self._future = cards, nodes, request, future
        self.mask: Mask = np.zeros(len(nodes.rows), dtype=np.bool_)
        self.scores: Vector = np.zeros(len(nodes.rows))
        self._stale: set[int] = set(range(len(nodes.rows)))
        self._seen = len(nodes.touched)

    def refresh(self, spend: Spend) -> None:
        """Evaluate the nodes that have changed."""
        touched = self._nodes.touched
        if self._seen < len(touched):
            self._stale.update(touched[self._seen :])
            self._seen = len(touched)
        if not self._stale:
            return
        spend(len(self._stale), FIELD)
        mask, scores = self.mask.copy(), self.scores.copy()
        for row in self._stale:
            found, scores[row] = self._cards.find(self._request, self._nodes.rows[row], future=self._future)
            mask[row] = found is not None
        self.mask, self.scores = mask, scores
        self._stale = set()
