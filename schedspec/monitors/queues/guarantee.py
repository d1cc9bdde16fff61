"""Monitor: no bind uses capacity that is guaranteed to another queue, and reclaim never cuts into a guarantee."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from ...api.kinds import Kind
from .. import amounts
from ..amounts import NONE, Amounts
from ..ledger import Act, Ledger, Violation, occupied
from ..object_state import waits
from ..rules import Rules
from . import usage

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
    tree = _Tree(ledger, act, rules)
    pools = {"": ledger.capacity(act.position)}
    pools |= {name: usage.capability(ledger.at(act.position, Kind.QUEUE, name) or {}, rules) for name in line[1:]}
    for pool, size in pools.items():
        held = tree.held(pool)
        for dimension in requested.keys() & size.keys():
            left = size[dimension] - held.get(dimension, NONE)
            unused = tree.unused_by_others(line[: line.index(pool)] if pool else line, dimension)
            if unused and sum(unused.values()) > left and not _was_freed(ledger, act, queue, rules, dimension):
                largest = min(unused, key=lambda name: (-unused[name], name))
                yield act.violation(NAME, f"uses {dimension} that is guaranteed to queue {largest}")
                return


class _Tree:
    """The queues with what they hold and what is guaranteed to them, after a bind."""

    def __init__(self, ledger: Ledger, act: Act, rules: Rules) -> None:
        self._children: dict[str, list[str]] = {}
        self._guarantees: dict[str, Amounts] = {}
        lines: dict[str, list[str]] = {}
        for item in ledger.all_at(act.position, Kind.QUEUE):
            name = str(item["metadata"]["name"])
            line = lines[name] = [*usage.lineage(ledger, act.position, name, rules)]
            if not line:
                continue  # the root
            self._children.setdefault(line[1] if len(line) > 1 else "", []).append(name)
            recent = [usage.guarantee(version) for version in ledger.lately(act.position, Kind.QUEUE, name)]
            common = set.intersection(*map(set, recent)) if recent else ()
            self._guarantees[name] = {dim: min(version[dim] for version in recent) for dim in common}
        self._held: dict[str, list[Amounts]] = {}
        for name, held in ledger.held(act.position).items():
            for one in (*lines.get(name, ()), ""):
                self._held.setdefault(one, []).append(held)

    def held(self, name: str) -> Amounts:
        """Return what a queue holds with all queues below it; without a name, what all pods hold."""
        return amounts.total(self._held.get(name, ()))

    def unused_by_others(self, line: list[str], dimension: str) -> dict[str, Decimal]:
        """Return the unused guarantees beside a queue and its ancestors (`line`), up to one that uses its own."""
        found: dict[str, Decimal] = {}
        for name in line:
            used = self.held(name).get(dimension, NONE) + sum(found.values(), NONE)
            if used <= self._guaranteed(name, dimension):
                break
            siblings = next((names for names in self._children.values() if name in names), [])
            found |= {one: unused for one in siblings if one != name and (unused := self._unused(one, dimension)) > 0}
        return found

    def _guaranteed(self, name: str, dimension: str) -> Decimal:
        below = sum((self._guaranteed(child, dimension) for child in self._children.get(name, ())), NONE)
        return max(self._guarantees.get(name, {}).get(dimension, NONE), below)

    def _unused(self, name: str, dimension: str) -> Decimal:
        below = sum((self._unused(child, dimension) for child in self._children.get(name, ())), NONE)
        own = self._guarantees.get(name, {}).get(dimension, NONE) - self.held(name).get(dimension, NONE)
        return max(own, below, NONE)


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
