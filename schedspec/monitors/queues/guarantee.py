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

NAME = "guarantee"


def judge(ledger: Ledger, rules: Rules) -> Iterator[Violation]:
    if rules.queue_plugin not in usage.GUARANTEED:
        return
    for act in ledger.acts:
        queue = ledger.queue_of(act.position, act.pod)
        if not queue:
            continue
        if act.kind == "bind":
            yield from _bind(ledger, act, queue, rules)
        elif act.action == "reclaim":
            yield from _eviction(ledger, act, queue, rules)


def _bind(ledger: Ledger, act: Act, queue: str, rules: Rules) -> Iterator[Violation]:
    """Check a bind beyond its queue's guarantee: the free capacity must still cover the guarantees of other queues."""
    requested = {n: v for n, v in act.amounts.items() if v > 0 and n != "pods"}
    held, left = ledger.held(act.position), ledger.capacity(act.position)
    for part in held.values():
        left = {name: amount - part.get(name, NONE) for name, amount in left.items()}
    kin = set(usage.lineage(ledger, act.position, queue, rules))
    for other in ledger.all_at(act.position, Kind.QUEUE):
        name = str(other["metadata"]["name"])
        if name in kin or name == usage.ROOT:
            continue
        missing = _missing(usage.guarantee(other), usage.held_below(ledger, act.position, name, rules))
        own = usage.guarantee(ledger.at(act.position, Kind.QUEUE, queue) or other)
        short = [
            dimension
            for dimension in requested
            if missing.get(dimension, NONE) > left.get(dimension, NONE)
            and held.get(queue, {}).get(dimension, NONE) > own.get(dimension, NONE)
        ]
        if short and _was_guaranteed(ledger, act, name):
            text = f"uses {', '.join(short)} that is guaranteed to queue {name}"
            yield act.violation(NAME, text)


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


def _missing(guaranteed: Amounts, held: Amounts) -> Amounts:
    return {name: max(amount - held.get(name, NONE), NONE) for name, amount in guaranteed.items()}


def _was_guaranteed(ledger: Ledger, act: Act, queue: str) -> bool:
    return all(usage.guarantee(version) for version in ledger.lately(act.position, Kind.QUEUE, queue))
