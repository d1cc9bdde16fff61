"""Choose cards (GPUs) of one node for one pod, given what other pods hold of each card.

A share fits on a card if memory, cores and the number of shares suffice and no pod on the card excludes the new pod. A
share is never split over two cards. (Semantics: Volcano's `deviceshare`.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..model.card_demand import ALL_CORES, CardDemand, CardPart
from ..model.card_notation import Card, Share, Shares

Order = Literal["binpack", "spread", ""]


@dataclass(slots=True)
class Usage:
    """The amounts of one card in use. `jobs`: the pods' PodGroups; `rules`: those that forbid sharing it."""

    shares: int = 0
    memory: int = 0
    cores: int = 0
    jobs: set[str] = field(default_factory=set)
    rules: set[int] = field(default_factory=set)

    def add(self, share: Share) -> None:
        self.shares += 1
        self.memory += share.memory
        self.cores += share.cores


UNUSED = Usage()


@dataclass(frozen=True, slots=True)
class CardRequest:
    """A pod's request for cards, and the pods that must not share a card with it. Equal requests fit on equal cards."""

    demand: CardDemand
    job: str = ""
    """The PodGroup whose other pods must be on other cards; empty if there is none."""
    rules: tuple[int, ...] = ()
    """The exclusive rules that the pod matches: two pods of one rule never share a card."""


def choose(request: CardRequest, cards: Sequence[Card], used: Mapping[str, Usage], order: Order) -> Shares | None:
    """Return shares of cards for each part of the request; None if the cards do not suffice."""
    own: dict[str, Usage] = {}
    chosen = []
    for part in request.demand.parts:
        shares: list[Share] = []
        for card in _sorted(request.demand, cards, used, own, order) if part.cards else ():
            if len(shares) == part.cards:
                break
            if fits(request, part, card, used.get(card.name, UNUSED), own.get(card.name, UNUSED)):
                shares.append(Share(card.name, _share_memory(request.demand, part, card), part.cores))
        if len(shares) < part.cards:
            return None
        for share in shares:
            own.setdefault(share.card, Usage()).add(share)
        chosen.append(tuple(shares))
    return tuple(chosen)


def fits(request: CardRequest, part: CardPart, card: Card, used: Usage, own: Usage = UNUSED) -> bool:
    """Whether a share of `part` fits on a card, of which other pods hold `used` and the pod itself holds `own`."""
    demand, shares = request.demand, used.shares + own.shares
    if not card.is_usable or not demand.permits(card.name, card.model) or shares >= card.split:
        return False
    if demand.scheme == "number":
        return not shares
    if used.memory + own.memory + part.memory_of(card.memory) > card.memory:
        return False
    cores = used.cores + own.cores
    if cores + part.cores > ALL_CORES or (part.cores == ALL_CORES and shares) or cores >= ALL_CORES:
        return False
    return request.job not in used.jobs and used.rules.isdisjoint(request.rules)


def score(shares: Shares, cards: Sequence[Card], used: Mapping[str, Usage], order: Order) -> float:
    """Return the score of the chosen shares under `order`: up to 100 for each share."""
    total, memory = 0.0, {card.name: card.memory for card in cards}
    for share in (share for part in shares for share in part):
        before = used.get(share.card, UNUSED)
        if order == "binpack" and memory[share.card]:
            total += 100.0 * (before.memory + share.memory) / memory[share.card]
        elif order == "spread" and not before.shares:
            total += 100.0
    return total


def _share_memory(demand: CardDemand, part: CardPart, card: Card) -> int:
    return card.memory if demand.scheme == "number" else part.memory_of(card.memory)


def _sorted(
    demand: CardDemand, cards: Sequence[Card], used: Mapping[str, Usage], own: Mapping[str, Usage], order: Order
) -> Sequence[Card]:
    """Return the cards in the order in which they are tried; with `order`, equal cards remain sorted by index."""

    def held(card: Card) -> tuple[int, int]:
        others, itself = used.get(card.name, UNUSED), own.get(card.name, UNUSED)
        return others.memory + itself.memory, others.shares + itself.shares

    if order == "binpack":
        return sorted(cards, key=lambda card: -held(card)[0])
    if order == "spread":
        return sorted(cards, key=lambda card: held(card)[1])
    return cards[::-1] if demand.scheme == "vgpu" else cards
