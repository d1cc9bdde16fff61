"""Monitor: no bind uses capacity that is guaranteed to another queue, and reclaim never cuts into a guarantee."""

from __future__ import annotations

from collections.abc import Iterator

from ...api.kinds import Kind
from .. import amounts
from ..amounts import NONE, Amounts
from ..ledger import Act, Ledger, Violation, occupied
from ..object_state import waits
from ..rules import Rules
from . import usage
from .unused import CLUSTER, largest

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

    Capacity that was freed for the pod's group was not free before, so that the group may use it in any case.
    """
    line = [*usage.lineage(ledger, act.position, queue, rules)]
    requested = {n: v for n, v in act.amounts.items() if v > 0 and n != "pods"}
    if rules.queue_plugin == "capacity-card":  # a card is no dimension of its quotas
        is_unlimited = bool(rules.argument("capacity-card", "cardUnlimitedCpuMemory"))
        requested = {n: v for n, v in requested.items() if n in ("cpu", "memory") and not is_unlimited}
    unused = usage.unused_guarantees(ledger, act.position, rules)
    pools = {CLUSTER: ledger.capacity(act.position)}
    pools |= {name: usage.capability(ledger.at(act.position, Kind.QUEUE, name) or {}, rules) for name in line[1:]}
    for pool, size in pools.items():
        held = usage.held_below(ledger, act.position, pool, rules)
        for dimension in requested.keys() & size.keys():
            left = size[dimension] - held.get(dimension, NONE)
            others = unused.beside(line[: line.index(pool)] if pool else line, dimension)
            if others and sum(others.values()) > left and not _was_freed(ledger, act, queue, rules, dimension):
                yield act.violation(NAME, f"uses {dimension} that is guaranteed to queue {largest(others)}")
                return


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
        cut = [_cut(usage.guarantee(v), held, act.amounts) for v in ledger.lately(act.position, Kind.QUEUE, name)]
        if cut and all(cut):
            yield act.violation(NAME, f"its eviction cuts queue {name} below its guarantee: {', '.join(cut[0])}")


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


def _cut(guaranteed: Amounts, held: Amounts, evicted: Amounts) -> list[str]:
    return [n for n, v in guaranteed.items() if evicted.get(n, NONE) > 0 and held.get(n, NONE) < v]
