"""Monitor: no bind uses capacity that is guaranteed to another queue, and reclaim never cuts into a guarantee."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from ...api.kinds import Kind
from .. import amounts
from ..amounts import NONE, Amounts
from ..ledger import Act, Ledger, Violation, occupied
from ..object_state import waits
from ..rules import Rules
from . import usage
from .unused import CLUSTER, UnusedGuarantees, largest

NAME = "guarantee"


def judge(ledger: Ledger, rules: Rules) -> Iterator[Violation]:
    if rules.queue_plugin not in (*usage.GUARANTEED, "capacity-card"):
        return
    for act in ledger.acts:
        queue = ledger.queue_of(act.position, act.pod)
        if not queue:
            continue
        if act.kind == "bind":
            yield from _bind(ledger, act, queue, rules)
        elif act.action == "reclaim" and rules.queue_plugin in usage.GUARANTEED:
            yield from _eviction(ledger, act, queue, rules)


def _bind(ledger: Ledger, act: Act, queue: str, rules: Rules) -> Iterator[Violation]:
    """Check a bind beyond its queue's guarantee: the free capacity must still cover the guarantees of other queues.

    Pods that the same decision evicts have freed their quota, as for the monitor of capabilities: they may be written
    after the bind. Capacity that was freed for the pod's group was not free before, so that the group may use it in any
    case.
    """
    evicted = usage.evicted_with(ledger, act)
    line = [*usage.lineage(ledger, act.position, queue, rules)]
    requested = {n: v for n, v in act.amounts.items() if v > 0 and n != "pods"}
    if rules.queue_plugin == "capacity-card":  # a card is no dimension of its quotas
        requested = {} if rules.are_cards_unlimited else usage.without_cards(requested)
    unused = usage.unused_guarantees(ledger, act.position, rules, evicted)
    pools = {CLUSTER: ledger.capacity(act.position)}
    pools |= {name: usage.capability(ledger.at(act.position, Kind.QUEUE, name) or {}, rules) for name in line[1:]}
    for pool, size in pools.items():
        held = usage.held_below(ledger, act.position, pool, rules, evicted)
        left = {dimension: amount - held.get(dimension, NONE) for dimension, amount in size.items()}
        for dimension, text in taken(pool, left, line, requested, unused).items():
            if text and not _was_freed(ledger, act, queue, rules, dimension):
                yield act.violation(NAME, text)
                return


def taken(
    pool: str, left: Amounts, line: Sequence[str], requested: Collection[str], unused: UnusedGuarantees
) -> dict[str, str]:
    """Return for each dimension whether a bind leaves too little for the unused guarantees of other queues: a text.

    The text is empty if enough is left. Dimensions in which other queues have no unused guarantee are absent. `pool` is
    the cluster or an ancestor of the queue, and `left` what is free there after the bind; `line` is the queue with its
    ancestors.
    """
    found = {}
    for dimension in (name for name in requested if name in left):
        others = unused.beside(line[: line.index(pool)] if pool else line, dimension)
        if others:
            is_short = sum(others.values()) > left[dimension]
            found[dimension] = f"uses {dimension} that is guaranteed to queue {largest(others)}" if is_short else ""
    return found


def _was_freed(ledger: Ledger, act: Act, queue: str, rules: Rules, dimension: str) -> bool:
    """Whether pods were evicted for as much as the act's group has been bound since, or for waiting jobs of its queue.

    An eviction that names no preemptor may be for any group.
    """
    known = [it for it in ledger.evictions() if it.position <= act.position or it.time == act.time]
    evictions = [it for it in known if not ledger.preemptors(it) or act.group in ledger.preemptors(it)]
    freed = amounts.total(it.amounts for it in evictions)
    since = min((it.position for it in evictions), default=act.position)
    binds = [it for it in ledger.acts_on(act.group) if it.kind == "bind" and since <= it.position <= act.position]
    taken = amounts.total(it.amounts for it in binds)
    reserved = _reserved(ledger, act, queue, rules)
    return taken.get(dimension, NONE) <= freed.get(dimension, NONE) + reserved.get(dimension, NONE)


def _eviction(ledger: Ledger, act: Act, queue: str, rules: Rules) -> Iterator[Violation]:
    """Check the victim's queue and its ancestors, except those of the preemptor: they get the capacity back."""
    receives = _receiving(ledger, act, rules)
    for name in usage.lineage(ledger, act.position, queue, rules):
        if name in receives:
            continue
        held = amounts.total((usage.held_below(ledger, act.position, name, rules), _reserved(ledger, act, name, rules)))
        guarantees = [usage.guarantee(v) for v in ledger.lately(act.position, Kind.QUEUE, name)]
        if text := cut(name, guarantees, held, act.amounts):
            yield act.violation(NAME, text)


def _reserved(ledger: Ledger, act: Act, queue: str, rules: Rules) -> Amounts:
    """Return the capacity reserved for those waiting jobs of a queue for which pods were evicted so far."""
    reserved: list[Amounts] = []
    for group, evictions in ledger.evictions_for.items():
        freed = [other.amounts for other in evictions if other.position <= act.position or other.time == act.time]
        waiting = [pod for pod in ledger.members(act.position, group) if waits(pod)] if freed else []
        if waiting and queue in usage.lineage(ledger, act.position, ledger.queue_of_group(act.position, group), rules):
            reserved.append(amounts.at_most(amounts.total(freed), occupied(waiting)))
    return amounts.total(reserved)


def _receiving(ledger: Ledger, act: Act, rules: Rules) -> set[str]:
    """Return the queue of the preemptor and its ancestors; empty if the scheduler names no preemptor."""
    groups = (group for group in ledger.preemptors(act) if ledger.members(act.position, group))
    queues = {ledger.queue_of_group(act.position, group) for group in groups} - {""}
    return {name for queue in queues for name in usage.lineage(ledger, act.position, queue, rules)}


def cut(queue: str, guarantees: Iterable[Amounts], held: Amounts, evicted: Amounts) -> str:
    """Return how an eviction cuts into each guarantee that may have been valid; empty if it does not cut into all."""
    short = [
        [name for name, amount in guaranteed.items() if evicted.get(name, NONE) > 0 and held.get(name, NONE) < amount]
        for guaranteed in guarantees
    ]
    return f"its eviction cuts queue {queue} below its guarantee: {', '.join(short[0])}" if short and all(short) else ""
