"""The usage of queues and the limits in their specs, at a position of the ledger.

A queue uses what its bound pods request, until the pods end or are marked as victims. In a tree, an ancestor uses what
its descendants use.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...api.kinds import Kind
from .. import amounts
from ..amounts import NONE, Amounts, Object
from ..holdings import parent_of
from ..ledger import Act, Ledger, occupied
from ..object_state import keeps
from ..rules import ROOT, Rules
from .unused import CLUSTER, UnusedGuarantees

CARD_QUOTA = "volcano.sh/card.quota"
GUARANTEED = ("capacity", "proportion")
"""The queue plugins that keep guarantees."""


def lineage(ledger: Ledger, position: int, queue: str, rules: Rules) -> Iterator[str]:
    """Yield the queue and, where queues form a tree, its ancestors below the root."""
    return rules.lineage(queue, lambda name: parent_of(ledger.at(position, Kind.QUEUE, name)))


def held_below(ledger: Ledger, position: int, queue: str, rules: Rules, without: Iterable[Object] = ()) -> Amounts:
    """Return the usage of a queue and its descendants, or of all pods (`CLUSTER`).

    Args:
        ledger: The history.
        position: The position in the ledger.
        queue: The queue.
        rules: The switches of the policy.
        without: Pods, as they are at this position, that do not count.
    """
    held = amounts.total(
        part
        for name, part in ledger.held(position).items()
        if queue == CLUSTER or queue in lineage(ledger, position, name, rules)
    )
    left_out = occupied(
        pod
        for pod in without
        if keeps(pod)
        and (queue == CLUSTER or queue in lineage(ledger, position, ledger.queue_of(position, pod), rules))
    )
    return {name: amount - left_out.get(name, NONE) for name, amount in held.items()}


def evicted_with(ledger: Ledger, act: Act) -> list[Object]:
    """Return the pods that are evicted at the moment of a bind, as they are at its position."""
    pods = (ledger.pod_of(act.position, eviction) for eviction in ledger.evictions_at(act.time))
    return [pod for pod in pods if pod is not None]


def capability(queue: Mapping[str, object], rules: Rules) -> Amounts:
    """Return the limits that a queue's spec sets."""
    spec = queue.get("spec")
    return limits(spec.get("capability") if isinstance(spec, dict) else None, rules)


def limits(quantities: Mapping[str, object] | None, rules: Rules) -> Amounts:
    """Return a capability's limits. Zero cpu or memory is no limit for Volcano's plugins capacity and proportion."""
    found = amounts.parse(quantities)
    unlimited = ("cpu", "memory") if rules.queue_plugin in GUARANTEED else ()
    return {name: amount for name, amount in found.items() if amount > 0 or name not in unlimited}


def without_cards(requested: Amounts) -> Amounts:
    """Return the part of a request that the capabilities of capacity-card limit: cards have quotas of their own."""
    return {name: amount for name, amount in requested.items() if name in ("cpu", "memory")}


def guarantee(queue: Object) -> Amounts:
    return amounts.parse(((queue.get("spec") or {}).get("guarantee") or {}).get("resource"))


def unused_guarantees(ledger: Ledger, position: int, rules: Rules, without: Sequence[Object] = ()) -> UnusedGuarantees:
    """Return what is guaranteed to queues and not used; of recent versions of a queue, the smaller amounts count.

    For `without` see `held_below`.
    """
    parents: dict[str, str] = {}
    guarantees: dict[str, Amounts] = {}
    for item in ledger.all_at(position, Kind.QUEUE):
        name = str(item["metadata"]["name"])
        if line := [*lineage(ledger, position, name, rules)]:
            parents[name] = line[1] if len(line) > 1 else CLUSTER
            recent = [guarantee(version) for version in ledger.lately(position, Kind.QUEUE, name)]
            common = set.intersection(*map(set, recent)) if recent else set[str]()
            guarantees[name] = {dim: min(version[dim] for version in recent) for dim in common}
    return UnusedGuarantees(parents, guarantees, lambda name: held_below(ledger, position, name, rules, without))


class Guaranteed(NamedTuple):
    """A queue with its parent and its guarantee."""

    name: str
    parent: str
    amounts: Amounts


def unguaranteed(ledger: Ledger, position: int, queue: str, rules: Rules) -> Amounts:
    """Return the cluster's capacity minus other queues' guarantees, for each dimension with such a guarantee."""
    if rules.queue_plugin not in GUARANTEED:
        return {}
    total = ledger.capacity(position)
    queues = (
        Guaranteed(other["metadata"]["name"], parent_of(other), guarantee(other))
        for other in ledger.all_at(position, Kind.QUEUE)
    )
    return left_by_guarantees(total, queues, [*lineage(ledger, position, queue, rules)], is_tree=rules.is_tree)


def left_by_guarantees(total: Amounts, queues: Iterable[Guaranteed], kin: Sequence[str], *, is_tree: bool) -> Amounts:
    """Return the cluster's capacity minus the guarantees of the siblings of the queue and of its ancestors.

    Dimensions without such a guarantee are absent.

    Args:
        total: The capacity of the cluster.
        queues: All queues.
        kin: The queue and its ancestors, the queue first.
        is_tree: Whether queues form a tree; otherwise all other queues are siblings.
    """
    above = {"", ROOT, *kin[1:]}
    kept = amounts.total(
        other.amounts for other in queues if other.name not in {*kin, ROOT} and (not is_tree or other.parent in above)
    )
    return {name: total[name] - amount for name, amount in kept.items() if name in total}


def lowest(*limits: Amounts) -> Amounts:
    """Return the lowest limit of each dimension."""
    found: Amounts = {}
    for limit in limits:
        found |= {name: min(most, found.get(name, most)) for name, most in limit.items()}
    return found


def card_quota(queue: Object) -> Amounts:
    """Return the quota by card model; empty without one."""
    text = (queue["metadata"].get("annotations") or {}).get(CARD_QUOTA)
    return amounts.parse(json.loads(text)) if text else {}
