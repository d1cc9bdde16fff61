"""The limits of queues: what their specs permit, and what other queues' guarantees leave.

A branch of queues is guaranteed the larger of its own guarantee and the sum of its children's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from . import amounts
from .amounts import NONE, Amounts, Object
from .rules import CARD_PLUGIN, ROOT, Rules

CARD_QUOTA = "volcano.sh/card.quota"
CLUSTER = ""
"""The parent of the queues that have no other."""


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """The limits of a queue, as its user wrote them."""

    parent: str
    capability: Amounts
    guarantee: Amounts
    cards: Amounts
    is_reclaimable: bool
    source: object = None
    """The whole spec; every change of it counts as a change of the queue."""

    @classmethod
    def of(cls, queue: Object, rules: Rules) -> QueueSpec:
        """Read a queue. Zero cpu or memory is no limit; capacity-card knows guarantees of cpu and memory only."""
        spec = queue.get("spec") or {}
        unlimited = ("cpu", "memory") if rules.queue_plugin else ()
        guarantee = amounts.parse((spec.get("guarantee") or {}).get("resource"))
        capability = amounts.parse(spec.get("capability"))
        return cls(
            parent_of(queue),
            {name: amount for name, amount in capability.items() if amount > 0 or name not in unlimited},
            without_cards(guarantee) if rules.queue_plugin == CARD_PLUGIN else guarantee,
            card_quota(queue),
            spec.get("reclaimable") is not False,
            spec,
        )


def parent_of(queue: Object | None) -> str:
    return str(((queue or {}).get("spec") or {}).get("parent") or "")


def card_quota(queue: Object) -> Amounts:
    """Return the quota by card model; empty without one."""
    text = (queue["metadata"].get("annotations") or {}).get(CARD_QUOTA)
    return amounts.parse(json.loads(text)) if text else {}


def without_cards(requested: Amounts) -> Amounts:
    """Return the part of a request that the capabilities of capacity-card limit: cards have quotas of their own."""
    return {name: amount for name, amount in requested.items() if name in ("cpu", "memory")}


def left_by_guarantees(
    total: Amounts, queues: Mapping[str, QueueSpec], kin: Sequence[str], *, is_tree: bool
) -> Amounts:
    """Return the cluster's capacity minus the guarantees of the siblings of the queue and of its ancestors.

    Dimensions without such a guarantee are absent.

    `kin`: the queue and its ancestors, the queue first. `is_tree`: whether queues form a tree; otherwise all other
    queues are siblings.
    """
    above = {"", ROOT, *kin[1:]}
    kept = amounts.total(
        spec.guarantee
        for name, spec in queues.items()
        if name not in {*kin, ROOT} and (not is_tree or spec.parent in above)
    )
    return {name: total[name] - amount for name, amount in kept.items() if name in total}


def least_guarantee(specs: Sequence[QueueSpec]) -> Amounts:
    common = set.intersection(*(set(spec.guarantee) for spec in specs))
    return {name: min(spec.guarantee[name] for spec in specs) for name in common}


def largest_guarantee(specs: Sequence[QueueSpec]) -> Amounts:
    found: Amounts = {}
    for spec in specs:
        found |= {name: max(amount, found.get(name, amount)) for name, amount in spec.guarantee.items()}
    return found


def lowest(*limits: Amounts) -> Amounts:
    found: Amounts = {}
    for limit in limits:
        found |= {name: min(most, found.get(name, most)) for name, most in limit.items()}
    return found


class UnusedGuarantees:
    """What is guaranteed to queues and not used.

    Args:
        parents: Queue → parent, `CLUSTER` for the topmost queues.
        guarantees: The guarantees in the queues' specs.
        held: Returns what a queue holds with all queues below it.
        own: What each queue may use as its own: more than its guarantee if a recent spec guaranteed more.
    """

    def __init__(
        self,
        parents: Mapping[str, str],
        guarantees: Mapping[str, Amounts],
        held: Callable[[str], Amounts],
        own: Mapping[str, Amounts] = {},
    ) -> None:
        self._parents, self._guarantees, self._held, self._own = parents, guarantees, held, own
        self._children: dict[str, list[str]] = {}
        for name, parent in parents.items():
            self._children.setdefault(parent, []).append(name)

    def frozen(self) -> UnusedGuarantees:
        """Return what is unused now, whatever the queues hold later."""
        held = {name: {**self._held(name)} for name in self._parents}
        return UnusedGuarantees(self._parents, self._guarantees, lambda name: held.get(name, {}), self._own)

    def without(self, gone: Mapping[str, Amounts]) -> UnusedGuarantees:
        """Return what is unused if queues hold less: queue → amounts that it no longer holds."""
        held = self._held
        return UnusedGuarantees(
            self._parents, self._guarantees, lambda name: amounts.minus(held(name), gone.get(name, {})), self._own
        )

    def below(self, pool: str, dimension: str) -> Decimal:
        """Return the sum of what the children of a queue, or of the cluster, are guaranteed and do not use."""
        return sum((self._unused(child, dimension) for child in self._children.get(pool, ())), NONE)

    def beside(self, line: Sequence[str], dimension: str) -> dict[str, Decimal]:
        """Return the unused guarantees beside a queue and its ancestors, up to one that uses its own guarantee.

        `line`: the queue and its ancestors, the queue first.
        """
        found: dict[str, Decimal] = {}
        for name in line:
            used = self._held(name).get(dimension, NONE) + sum(found.values(), NONE)
            if used <= max(self._guaranteed(name, dimension), self._own.get(name, {}).get(dimension, NONE)):
                break
            for other in self._children.get(self._parents.get(name, CLUSTER), ()):
                if other != name and (unused := self._unused(other, dimension)) > 0:
                    found[other] = unused
        return found

    def left(self, free: Mapping[str, Decimal]) -> Amounts:
        """Return what is free beyond all unused guarantees, in the dimensions in which there are any."""
        dimensions = {name for guarantee in self._guarantees.values() for name in guarantee}
        below = {name: self.below(CLUSTER, name) for name in sorted(dimensions)}
        return {name: free.get(name, NONE) - amount for name, amount in below.items() if amount > 0}

    def _guaranteed(self, name: str, dimension: str) -> Decimal:
        below = sum((self._guaranteed(child, dimension) for child in self._children.get(name, ())), NONE)
        return max(self._guarantees.get(name, {}).get(dimension, NONE), below)

    def _unused(self, name: str, dimension: str) -> Decimal:
        own = self._guarantees.get(name, {}).get(dimension, NONE) - self._held(name).get(dimension, NONE)
        return max(own, self.below(name, dimension), NONE)
