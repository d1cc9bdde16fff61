"""No eviction goes beyond the need.

The one rule: a victim was needless if it could have stayed on its node with everything that has been bound there since
still fitting, and its queue within its limits; computed from what the cluster showed, not from what the scheduler
thought. A gang that had to go whole is one victim: it was needed if not all of its members could have stayed.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...api.kinds import Kind
from .. import amounts
from ..amounts import NONE, Object
from ..gangs import SWITCHES
from ..ledger import Act, Ledger, Violation, group_of, is_leaving, taken
from ..queues import usage
from ..rules import Rules

NAME = "needless-eviction"


def judge(ledger: Ledger, rules: Rules) -> Iterator[Violation]:
    for act in ledger.evictions():
        unit = _unit(ledger, act, rules)
        if all(_was_needless(ledger, member, unit, rules) for member in unit):
            yield Violation(
                NAME, act.time, act.name, f"evicted, yet {act.node} had room for it and for all that came since"
            )


def _unit(ledger: Ledger, act: Act, rules: Rules) -> list[Act]:
    """The evictions that stand and fall with this one: all of its gang, if the gang could not lose one alone."""
    key = group_of(act.pod)
    group = ledger.at(act.position, Kind.PODGROUP, key)
    if group is None or not rules.has_say("gang", SWITCHES.get(act.action, "enableReclaimable")):
        return [act]
    evicted = [other for other in ledger.evictions() if group_of(other.pod) == key and other.cause == act.cause]
    held = [pod for pod in ledger.holding(evicted[-1].position) if group_of(pod) == key and not is_leaving(pod)]
    return [act] if held else evicted


def _was_needless(ledger: Ledger, act: Act, unit: list[Act], rules: Rules) -> bool:
    together = [other for other in ledger.evictions() if other.node == act.node and other.cause == act.cause]
    end = _when_served(ledger, act, together)
    return end is not None and _could_have_stayed(ledger, act, end, unit, rules)


def _when_served(ledger: Ledger, act: Act, together: list[Act]) -> int | None:
    """Where the last bind onto the victim's node stands before anything else left that node; None if nothing came."""
    gone = {other.uid for other in together}
    came: int | None = None
    for position in range(act.position + 1, len(ledger.versions)):
        seen = ledger.versions[position]
        if seen.ref.kind != Kind.POD or seen.object["spec"].get("nodeName") != act.node:
            continue
        uid = seen.object["metadata"]["uid"]
        over = seen.change == "gone" or seen.object.get("status", {}).get("phase") in ("Succeeded", "Failed")
        if over and uid not in gone:
            break
        if any(bind.position == position for bind in ledger.binds()):
            came = position
    return came


def _could_have_stayed(ledger: Ledger, act: Act, end: int, unit: list[Act], rules: Rules) -> bool:
    """Whether the victim, and those of its unit that were on the same node, would fit there beside all that came."""
    node = ledger.at(end, Kind.NODE, act.node)
    if node is None:
        return False
    here = [member for member in unit if member.node == act.node]
    uids, pod_names = {member.uid for member in here}, {member.name for member in here}
    there = [
        pod
        for pod in ledger.holding(end)
        if pod["spec"]["nodeName"] == act.node
        and pod["metadata"]["uid"] not in uids
        and pod["metadata"]["name"] not in pod_names
    ]
    with_it = taken([*there, *_still_to_come(ledger, act, end), *(member.pod for member in here)])
    has = amounts.parse(node.get("status", {}).get("allocatable"))
    if amounts.above(with_it, has, with_it):
        return False
    return not _above_quota(ledger, act, end, unit, rules)


def _still_to_come(ledger: Ledger, act: Act, end: int) -> list[Object]:
    """Pods that the victim went for and that were bound to its node only after something else had left it as well.

    Where the scheduler does not say for whom it went, these are the rest of the gangs that came.
    """
    came = {group_of(bind.pod) for bind in ledger.binds() if act.position < bind.position <= end} - {""}
    groups = {group_of(pod) for pod in ledger.all_at(act.position, Kind.POD)}
    words = groups.intersection(act.cause.split()) or came
    waited = {
        pod["metadata"]["uid"] for pod in ledger.all_at(act.position, Kind.POD) if not pod["spec"].get("nodeName")
    }
    return [
        bind.pod
        for bind in ledger.binds()
        if bind.position > end and bind.node == act.node and bind.uid in waited and group_of(bind.pod) in words
    ]


def _above_quota(ledger: Ledger, act: Act, end: int, unit: list[Act], rules: Rules) -> bool:
    """Whether the room that had to be made was the queue's, not the node's (preempt at the queue's ceiling)."""
    queue = ledger.queue_of(act.position, act.pod)
    for name in usage.lineage(ledger, end, queue, rules):
        held = amounts.total((usage.held_below(ledger, end, name, rules), taken([member.pod for member in unit])))
        found = ledger.at(end, Kind.QUEUE, name) or {}
        limits = {**usage.capability(found), **({} if not found else usage.card_quota(found))}
        cards = sum((v for n, v in held.items() if "/" in n), NONE)
        if amounts.above(held, limits, held) or any(
            cards > v for v in usage.card_quota(found or {"metadata": {}}).values()
        ):
            return True
    return False
