"""Monitor: no pod is evicted that could have stayed.

An eviction was needless if the victim would fit on its node beside every pod that was bound there since, and if its
queue would have been within its limits at each of these binds. The input is the history, not the scheduler's state. A
gang that had to be evicted as a whole is one victim: its eviction was needed unless all members could have stayed.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator

from ...api.kinds import Kind
from .. import amounts, shared_cards
from ..amounts import NONE, Amounts, Object
from ..gangs import SWITCHES
from ..ledger import Act, Ledger, Violation, occupied
from ..object_state import keeps, key_of, waits
from ..queues import usage
from ..queues.unused import CLUSTER
from ..rules import Rules

NAME = "needless-eviction"


def judge(ledger: Ledger, rules: Rules) -> Iterator[Violation]:
    freed = _FreedCapacity(ledger)
    for act in ledger.evictions():
        unit = _unit(ledger, act, rules)
        ends = ((member, freed.last_used(member)) for member in unit)
        if all(end is not None and _could_have_stayed(ledger, member, end, unit, rules) for member, end in ends):
            yield act.violation(NAME, f"evicted although {act.node} had capacity for it and for all pods bound since")


def _unit(ledger: Ledger, act: Act, rules: Rules) -> list[Act]:
    """Return the evictions that belong together: all of the gang's, if they left no member on a node; else `act`."""
    group = ledger.at(act.position, Kind.PODGROUP, act.group)
    if group is None or not rules.is_enabled("gang", SWITCHES.get(act.action, "enableReclaimable")):
        return [act]
    evicted = list(ledger.evictions_of_group(act.cause, act.group))
    members = ledger.members(evicted[-1].position, act.group)
    held = [pod for pod in members if keeps(pod)]
    return [act] if held else evicted


class _FreedCapacity:
    """Finds the last bind that may have used the capacity that a victim freed.

    Pods that are evicted from a node for one cause count as one victim. The ends of the node's other pods are looked up
    once for each cause and node, because one cause may evict very often.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._ends: dict[tuple[str, str], list[int]] = {}
        """By cause and node: the positions at which pods of the node end that were not evicted for the cause."""

    def last_used(self, act: Act) -> int | None:
        """Return the position of the last bind to the victim's node before another pod left that node, if any."""
        key = (act.cause, act.node)
        if key not in self._ends:
            gone = {other.uid for other in self._ledger.evictions_from(*key)}
            self._ends[key] = [position for position, uid in self._ledger.ends_on(act.node) if uid not in gone]
        ends = self._ends[key]
        first = bisect.bisect_right(ends, act.position)
        return self._ledger.last_bind_between(act.position, ends[first] if first < len(ends) else math.inf, act.node)


def _could_have_stayed(ledger: Ledger, act: Act, end: int, unit: list[Act], rules: Rules) -> bool:
    """Whether the victim, and the members of its unit on the same node, would fit there beside all pods bound since.

    One decision may evict for several jobs. Each of them may then use the capacity of another job's victim.
    """
    node = ledger.at(end, Kind.NODE, act.node)
    if node is None:
        return False
    here = [member for member in unit if member.node == act.node]
    uids, pod_names = {member.uid for member in here}, {member.name for member in here}
    there = [
        pod
        for pod in ledger.on_node(end, act.node)
        if pod["metadata"]["uid"] not in uids and pod["metadata"]["name"] not in pod_names
    ]
    decided = {other.cause: other for other in ledger.evictions_at(act.time)} | {act.cause: act}
    pending = {bind.uid: bind for other in decided.values() for bind in _later_binds(ledger, other, end)}
    later = [bind for bind in pending.values() if bind.node == act.node]
    has = amounts.parse(node.get("status", {}).get("allocatable"))
    if not is_within(amounts.total((occupied(there), *(other.amounts for other in (*later, *here)))), has):
        return False
    if shared_cards.exceeded(node, [*there, *(other.pod for other in (*later, *here))]):
        return False
    return not _above_quota(ledger, act, end, unit, rules)


def is_within(held: Amounts, limits: Amounts) -> bool:
    """Whether the amounts that a node or a queue would hold with the victim are within the limits."""
    return not amounts.above(held, limits, held)


def _later_binds(ledger: Ledger, act: Act, end: int) -> list[Act]:
    """Return the binds after `end` of the preemptor's pods, which may have to wait until another pod leaves its node.

    If the scheduler names no preemptor, return the later binds of all gangs that were partly bound by `end`.
    """
    named = {group for group in ledger.preemptors(act) if ledger.members(act.position, group)}
    groups = named or {bind.group for bind in ledger.binds_between(act.position, end)} - {""}
    return [
        later
        for group in groups
        for later in ledger.acts_on(group)
        if later.kind == "bind" and later.position > end
        if (pod := ledger.pod_of(act.position, later)) is not None and waits(pod)
    ]


def _above_quota(ledger: Ledger, act: Act, end: int, unit: list[Act], rules: Rules) -> bool:
    """Whether the queue, not the node, needed the capacity: with the unit it would be above its quota at a bind.

    Later binds for which other pods were evicted by then count too: the capacity of those pods is not free.
    """
    queue, names = ledger.queue_of(act.position, act.pod), {key_of(member.pod) for member in unit}
    gone = amounts.total(member.amounts for member in unit)
    causes = ledger.causes_until(end) | {act.cause: act}
    later = [bind for other in causes.values() for bind in _later_binds(ledger, other, end)]
    binds = [bind.position for bind in (*ledger.binds_between(act.position, end), *later)]
    for position in binds:
        own = [pod for key in names if (pod := ledger.at(position, Kind.POD, key)) is not None]
        for name in usage.lineage(ledger, position, queue, rules):
            held = amounts.total((usage.held_below(ledger, position, name, rules, own), gone))
            if _exceeds(ledger, position, name, held, rules):
                return True
        if _uses_guarantees(ledger, position, gone, own, rules):
            return True
    return False


def _uses_guarantees(ledger: Ledger, position: int, gone: Amounts, own: list[Object], rules: Rules) -> bool:
    """Whether too little would be free for the unused guarantees of queues if the unit still held its capacity."""
    if rules.queue_plugin not in usage.GUARANTEED:
        return False
    held = usage.held_below(ledger, position, CLUSTER, rules, own)
    left = {name: amount - held.get(name, NONE) for name, amount in ledger.capacity(position).items()}
    return not usage.unused_guarantees(ledger, position, rules).would_be_free(left, gone)


def _exceeds(ledger: Ledger, position: int, queue: str, held: Amounts, rules: Rules) -> bool:
    """Whether held amounts exceed a queue's capability, its quota of cards, or what other queues' guarantees leave."""
    found = ledger.at(position, Kind.QUEUE, queue) or {}
    quota = usage.card_quota(found) if found else {}
    limits = usage.lowest(usage.unguaranteed(ledger, position, queue, rules), usage.capability(found, rules), quota)
    cards = sum((v for n, v in held.items() if "/" in n), NONE)
    return not is_within(held, limits) or any(cards > v for v in quota.values())
