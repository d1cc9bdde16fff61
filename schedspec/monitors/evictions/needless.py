"""Monitor: no eviction exceeds the need.

An eviction was needless if the victim could have stayed on its node beside every pod bound there since, with its queue
within its limits at each of these binds. The input is the history, not the scheduler's state. A gang that had to be
evicted as a whole counts as one victim: its eviction was needed unless all members could have stayed.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...api.kinds import Kind
from .. import amounts, shared_cards
from ..amounts import NONE, Amounts
from ..gangs import SWITCHES
from ..ledger import Act, Ledger, Violation, group_of, is_leaving, taken
from ..queues import usage
from ..rules import Rules

NAME = "needless-eviction"


def judge(ledger: Ledger, rules: Rules) -> Iterator[Violation]:
    for act in ledger.evictions():
        unit = _unit(ledger, act, rules)
        if all(_was_needless(ledger, member, unit, rules) for member in unit):
            yield act.violation(NAME, f"evicted although {act.node} had room for it and for all pods bound since")


def _unit(ledger: Ledger, act: Act, rules: Rules) -> list[Act]:
    """Return the evictions that belong together: all of the gang's, if the gang could not lose a single pod."""
    key = group_of(act.pod)
    group = ledger.at(act.position, Kind.PODGROUP, key)
    if group is None or not rules.is_enabled("gang", SWITCHES.get(act.action, "enableReclaimable")):
        return [act]
    evicted = [other for other in ledger.evictions() if group_of(other.pod) == key and other.cause == act.cause]
    held = [pod for pod in ledger.holding(evicted[-1].position) if group_of(pod) == key and not is_leaving(pod)]
    return [act] if held else evicted


def _was_needless(ledger: Ledger, act: Act, unit: list[Act], rules: Rules) -> bool:
    together = [other for other in ledger.evictions() if other.node == act.node and other.cause == act.cause]
    end = _when_served(ledger, act, together)
    return end is not None and _could_have_stayed(ledger, act, end, unit, rules)


def _when_served(ledger: Ledger, act: Act, together: list[Act]) -> int | None:
    """Return the position of the last bind to the victim's node before another pod left that node, if any."""
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
    """Whether the victim, and the members of its unit on the same node, would fit there beside all pods bound since.

    The jobs for which one decision evicts may each get the room that another one's victim leaves.
    """
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
    decided = {other.cause: other for other in ledger.evictions_at(act.time)} | {act.cause: act}
    coming = {bind.uid: bind for other in decided.values() for bind in _still_to_come(ledger, other, end)}
    later = [bind.pod for bind in coming.values() if bind.node == act.node]
    together = [*there, *later, *(member.pod for member in here)]
    has = amounts.parse(node.get("status", {}).get("allocatable"))
    if not is_within(taken(together), has) or shared_cards.exceeded(node, together):
        return False
    return not _above_quota(ledger, act, end, unit, rules)


def is_within(held: Amounts, limits: Amounts) -> bool:
    """Whether a node or a queue may hold this, with a victim that stays."""
    return not amounts.above(held, limits, held)


def _still_to_come(ledger: Ledger, act: Act, end: int) -> list[Act]:
    """Return binds after `end` of pods of the victim's preemptor, for instance after another pod had left its node too.

    If the scheduler does not name the preemptor, return those of the other members of the gangs that were bound.
    """
    came = {group_of(bind.pod) for bind in ledger.binds() if act.position < bind.position <= end} - {""}
    groups = {group_of(pod) for pod in ledger.all_at(act.position, Kind.POD)}
    words = groups.intersection(act.cause.split()) or came
    waited = {
        pod["metadata"]["uid"] for pod in ledger.all_at(act.position, Kind.POD) if not pod["spec"].get("nodeName")
    }
    return [
        bind for bind in ledger.binds() if bind.position > end and bind.uid in waited and group_of(bind.pod) in words
    ]


def _above_quota(ledger: Ledger, act: Act, end: int, unit: list[Act], rules: Rules) -> bool:
    """Whether the queue, not the node, needed the capacity: with the unit it would be above its quota at a bind.

    Binds for which other pods were evicted by then count too: the room of those pods is not free.
    """
    queue, names = ledger.queue_of(act.position, act.pod), {member.name for member in unit}
    gone = taken([member.pod for member in unit])
    since = [bind for bind in ledger.binds() if act.position < bind.position <= end]
    causes = {other.cause: other for other in ledger.evictions() if other.position <= end} | {act.cause: act}
    later = [bind for other in causes.values() for bind in _still_to_come(ledger, other, end)]
    binds = [bind.position for bind in (*since, *later)]
    for position, name in ((at, name) for at in binds for name in usage.lineage(ledger, at, queue, rules)):
        others = usage.held_below(ledger, position, name, rules, lambda pod: pod["metadata"]["name"] not in names)
        held = amounts.total((others, gone))
        found = ledger.at(position, Kind.QUEUE, name) or {}
        quota = usage.card_quota(found) if found else {}
        limits = usage.lowest(usage.unguaranteed(ledger, position, name, rules), usage.capability(found, rules), quota)
        cards = sum((v for n, v in held.items() if "/" in n), NONE)
        if not is_within(held, limits) or any(cards > v for v in quota.values()):
            return True
    return False
