"""Monitor: no card is shared beyond its memory, its cores or its number of parts, and no pod lacks a card.

The cards of a pod are those of its annotations at the time of its bind, as the device plugin reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..observe.history import Object
from ..observe.shared_cards import Card, CardPart, cards_of, cards_requested, parts_of
from .ledger import Monitor
from .lives import Pod

PLUGIN = "deviceshare"
_ALL_CORES = 100


class SharedCardsMonitor(Monitor):
    """Compares the parts of each card of a node with the card after each bind, terminating pods included."""

    NAME = "shared-cards"

    def on_bound(self, pod: Pod) -> None:
        if not self.rules.has(PLUGIN):
            return
        shown = self.ledger.shown(pod.source)
        requested, node = cards_requested(shown), self.ledger.nodes.get(pod.node)
        if not requested or node is None:
            return
        cards, own = cards_of(node), parts_of(shown)
        named = {part.card for part in own}
        if len(own) != requested or not named <= cards.keys():
            seen = ", ".join(sorted(named)) or "none"
            self.find(f"requests {requested} of the cards of {pod.node}, but has {seen}", pod)
        held = _held(self.ledger.shown(it.source) for it in self.ledger.pods_on[pod.node].values())
        for name in sorted(named & cards.keys()):
            for over in _beyond(cards[name], held.get(name, [])):
                self.find(f"card {name} of {pod.node} then has {over}", pod)


def exceeded(node: Object, pods: Iterable[Object]) -> bool:
    """Whether the pods on a node hold more of a card than the card has."""
    cards = cards_of(node)
    return any(any(_beyond(cards[name], parts)) for name, parts in _held(pods).items() if name in cards)


def _held(pods: Iterable[Object]) -> dict[str, list[CardPart]]:
    found: dict[str, list[CardPart]] = {}
    for part in (part for pod in pods if cards_requested(pod) for part in parts_of(pod)):
        found.setdefault(part.card, []).append(part)
    return found


def _beyond(card: Card, parts: list[CardPart]) -> Iterator[str]:
    memory = sum(card.memory if part.whole else part.memory for part in parts)
    if memory > card.memory:
        yield f"{memory} of {card.memory} MiB in use"
    if (cores := sum(part.cores for part in parts)) > _ALL_CORES:
        yield f"{cores} percent of its cores in use"
    if len(parts) > card.parts:
        yield f"{len(parts)} of {card.parts} parts"
