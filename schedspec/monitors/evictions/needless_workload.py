"""Monitor: no Workload of Kueue is evicted that could have stayed.

Kueue admits and evicts a Workload as a whole and counts quota, not nodes. An eviction was needless if, once the
preemptor runs, the evicted Workload would still fit beside all running pods: within the total of the nodes, within the
capability of its queue and of the queue's ancestors, and with the guarantees of the other queues kept free. If other
preemptors have evicted by then, they must run too, because the capacity of their victims is not free. The monitor does
not judge if another pod ended or the nodes changed meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...api.kinds import WORLD, Kind
from .. import amounts
from ..amounts import NONE, Amounts, Object
from ..holdings import QueueSums, parent_of
from ..ledger import Act, Ledger, Violation, occupied
from ..object_state import group_of, is_leaving, is_over, key_of
from ..queues import usage
from ..rules import Rules

NAME = "needless-workload-eviction"
_PREEMPTOR = re.compile(r"accommodate a workload \(UID: ([^,)]+)")


def judge(ledger: Ledger, rules: Rules) -> Iterator[Violation]:
    served = [(unit, _when_served(ledger, unit[0])) for unit in _units(ledger)]
    for unit, own_end in served:
        first, key = unit[0], unit[0].group
        end = _when_all_served(own_end, [(others[0].position, their_end) for others, their_end in served])
        if end is None or _ended_meanwhile(ledger, first, end) or _total(ledger, end) != _total(ledger, first.position):
            continue
        beside = [pod for pod in ledger.holding(end) if not is_leaving(pod) and group_of(pod) != key]
        if _fits(ledger, end, [act.pod for act in unit], beside, rules):
            text = f"Workload {key} was evicted although its quota was free beside everything that runs"
            yield first.violation(NAME, text)


def _units(ledger: Ledger) -> list[list[Act]]:
    """Return the evictions of each Workload's pods, one list for each preemptor."""
    units: dict[tuple[str, str], list[Act]] = {}
    for act in ledger.evictions():
        preemptor, key = _PREEMPTOR.search(act.message), act.group
        if preemptor and ledger.at(act.position, Kind.WORKLOAD, key) is not None:
            units.setdefault((key, preemptor[1]), []).append(act)
    return list(units.values())


def _when_served(ledger: Ledger, act: Act) -> int | None:
    """Return the position of the last bind of the preemptor's pods after the eviction, if all of them are bound."""
    found = _PREEMPTOR.search(act.message)
    uid = found[1] if found else ""
    preemptors = [it for it in ledger.all_at(act.position, Kind.WORKLOAD) if it["metadata"]["uid"] == uid]
    acts = (act for it in preemptors for act in ledger.acts_on(key_of(it)))
    wanted = sum(part["count"] for it in preemptors for part in it["spec"].get("podSets") or ())
    binds = [later.position for later in acts if later.kind == "bind" and later.position > act.position]
    return max(binds) if binds and len(binds) >= wanted else None


def _when_all_served(end: int | None, preemptions: list[tuple[int, int | None]]) -> int | None:
    """Return the first position from `end` on at which every preemptor that has evicted by then is bound."""
    while end is not None:
        later = [served for begin, served in preemptions if begin < end and (served is None or served > end)]
        if not later:
            break
        end = None if None in later else max(served for served in later if served is not None)
    return end


def _ended_meanwhile(ledger: Ledger, act: Act, end: int) -> bool:
    """Whether a pod other than a victim ended between the eviction and the bind."""
    evicted = {eviction.uid for eviction in ledger.evictions()}
    before = {pod["metadata"]["uid"] for pod in ledger.holding(act.position)} - evicted
    between = ledger.versions[act.position : end + 1]
    return any(
        seen.ref.kind == Kind.POD
        and seen.object["metadata"]["uid"] in before
        and (seen.change == "gone" or is_over(seen.object))
        for seen in between
    )


def _total(ledger: Ledger, position: int) -> Amounts:
    """Return the total of the scenario's nodes, without the kind cluster's own nodes."""
    nodes = [it for it in ledger.all_at(position, Kind.NODE) if WORLD in (it["metadata"].get("labels") or {})]
    return amounts.of_nodes(nodes)


def _fits(ledger: Ledger, end: int, unit: list[Object], beside: list[Object], rules: Rules) -> bool:
    freed = {name: amount for name, amount in occupied(unit).items() if amount > 0}
    queues = {str(queue["metadata"]["name"]): queue for queue in ledger.all_at(end, Kind.QUEUE)}
    sums = QueueSums(is_tree=rules.is_tree)
    for name, queue in queues.items():
        sums.put(name, parent_of(queue))
    for pod in beside:
        sums.hold(ledger.queue_of(end, pod), amounts.of_pod(pod), 1)
    kin = list(usage.lineage(ledger, end, ledger.queue_of(end, unit[0]), rules))
    for name in kin:
        held = amounts.total([sums.below.get(name, {}), occupied(unit)])
        if amounts.above(held, usage.capability(queues.get(name, {}), rules), freed):
            return False
    unmet = [
        {
            it: max(amount - sums.below.get(name, {}).get(it, NONE), NONE)
            for it, amount in usage.guarantee(queue).items()
        }
        for name, queue in queues.items()
        if name not in kin
    ]
    return not amounts.above(amounts.total([occupied([*beside, *unit]), *unmet]), _total(ledger, end), freed)
