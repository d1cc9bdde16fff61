"""Choose cards of one node for one pod, from what other pods hold of each card.

A card takes a share if the share fits in each respect: memory, cores, the number of shares, and the pods that must not
be on one card. A share is never split over two cards. (Semantics: Volcano's `deviceshare`.)
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
    """What pods hold of one card, and which: their PodGroups, and the rules that keep them from each other."""

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
class Question:
    """A pod's request, and the pods with which it must not share a card. Equal questions have equal answers."""

    demand: CardDemand
    job: str = ""
    """The PodGroup with which no card is shared; empty if there is none."""
    rules: tuple[int, ...] = ()


def choose(question: Question, cards: Sequence[Card], used: Mapping[str, Usage], order: Order) -> Shares | None:
    """Return the cards for each part of a demand; None if the node lacks some."""
    own: dict[str, Usage] = {}
    chosen = []
    for part in question.demand.parts:
        shares: list[Share] = []
        for card in _sorted(question.demand, cards, used, own, order) if part.cards else ():
            if len(shares) == part.cards:
                break
            if fits(question, part, card, used.get(card.name, UNUSED), own.get(card.name, UNUSED)):
                shares.append(Share(card.name, _taken(question.demand, part, card), part.cores))
        if len(shares) < part.cards:
            return None
        for share in shares:
            own.setdefault(share.card, Usage()).add(share)
        chosen.append(tuple(shares))
    return tuple(chosen)


def fits(question: Question, part: CardPart, card: Card, used: Usage, own: Usage = UNUSED) -> bool:
    """Whether a card takes a share beside what other pods and the pod itself hold of it."""
    demand, shares = question.demand, used.shares + own.shares
    if not card.is_usable or not demand.permits(card.name, card.model) or shares >= card.split:
        return False
    if demand.scheme == "number":
        return not shares
    if used.memory + own.memory + part.memory_of(card.memory) > card.memory:
        return False
    cores = used.cores + own.cores
    if cores + part.cores > ALL_CORES or (part.cores == ALL_CORES and shares) or cores >= ALL_CORES:
        return False
    return question.job not in used.jobs and used.rules.isdisjoint(question.rules)


def score(shares: Shares, cards: Sequence[Card], used: Mapping[str, Usage], order: Order) -> float:
    """Return how much the order likes a choice: up to 100 for each card."""
    total, memory = 0.0, {card.name: card.memory for card in cards}
    for share in (share for part in shares for share in part):
        before = used.get(share.card, UNUSED)
        if order == "binpack" and memory[share.card]:
            total += 100.0 * (before.memory + share.memory) / memory[share.card]
        elif order == "spread" and not before.shares:
            total += 100.0
    return total


def _taken(demand: CardDemand, part: CardPart, card: Card) -> int:
    return card.memory if demand.scheme == "number" else part.memory_of(card.memory)


def _sorted(
    demand: CardDemand, cards: Sequence[Card], used: Mapping[str, Usage], own: Mapping[str, Usage], order: Order
) -> Sequence[Card]:
    """Return the cards in the order in which they are tried; those before others of equal rank have lower indexes."""

    def held(card: Card) -> tuple[int, int]:
        one, other = used.get(card.name, UNUSED), own.get(card.name, UNUSED)
        return one.memory + other.memory, one.shares + other.shares

    if order == "binpack":
        return sorted(cards, key=lambda card: -held(card)[0])
    if order == "spread":
        return sorted(cards, key=lambda card: held(card)[1])
    return cards[::-1] if demand.scheme == "vgpu" else cards
