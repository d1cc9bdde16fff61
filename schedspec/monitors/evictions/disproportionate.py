"""Monitor: the evictions for one workload are in proportion to its requests.

The bound is a sum: each pod of the workload that got a node adds its request and the largest eviction unit (one pod, or
a gang that was evicted as a whole). Only evictions whose message names the workload are judged. It is enough if one
dimension is within the bound: victims that free cards may hold many cpus.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence

from ...api.kinds import Kind
from ..amounts import NONE, Amounts, Object, above, of_pod, total
from ..gangs import SWITCHES
from ..ledger import Act, Ledger, Violation
from ..object_state import generation_of, keeps, key_of, waits
from ..rules import Rules

NAME = "disproportionate-eviction"


def judge(ledger: Ledger, rules: Rules) -> Iterator[Violation]:
    """Yield violations. Evictions for one cause are judged together unless a node or a queue changes between them."""
    changes = _changes(ledger)
    causes: dict[tuple[str, int], list[Act]] = {}
    for act in ledger.evictions():
        if act.message:
            causes.setdefault((act.cause, bisect.bisect(changes, act.position)), []).append(act)
    for (cause, _), acts in causes.items():
        waiting = _waiting(ledger, acts)
        if not waiting:
            continue
        evicted, units = total(act.amounts for act in acts), _units(ledger, acts, rules)
        largest = {name: max(unit.get(name, NONE) for unit in units) for name in evicted}
        if text := excess(cause, evicted, total(map(of_pod, waiting)), largest, len(waiting)):
            yield acts[-1].violation(NAME, text)


def excess(cause: str, evicted: Amounts, requested: Amounts, largest: Amounts, pods: int) -> str:
    """Return how much more was evicted than is proportionate; empty if one dimension is in proportion.

    The evictions were for `pods` pods that request `requested` in all; `largest` is the largest unit by dimension.
    """
    bound = total([requested, *([largest] * pods)])
    shared = [name for name, amount in evicted.items() if name != "pods" and amount and requested.get(name)]
    broken = above(evicted, bound, shared)
    is_excess = shared and len(broken) == len(shared)
    return f"{cause}: more evicted than is proportionate ({', '.join(broken)})" if is_excess else ""


def _changes(ledger: Ledger) -> list[int]:
    """Return the positions at which a node or a queue was changed or deleted: later evictions are judged separately."""
    found: list[int] = []
    generations: dict[tuple[Kind, str], int] = {}
    for position, seen in enumerate(ledger.versions):
        if seen.ref.kind in (Kind.NODE, Kind.QUEUE):
            key = (seen.ref.kind, seen.ref.name)
            generation = generation_of(seen.object)
            if seen.change == "gone" or generation != generations.setdefault(key, generation):
                found.append(position)
            generations[key] = generation
    return found


def _waiting(ledger: Ledger, acts: Sequence[Act]) -> list[Object]:
    """Return the pods that the evictions were for: the pods of the named workload that waited and then got a node.

    If none got a node, return all pods that waited.
    """
    waited: dict[str, Object] = {}
    for act in acts:
        for group in ledger.preemptors(act):
            for pod in ledger.members(act.position, group):
                if waits(pod):
                    waited.setdefault(pod["metadata"]["uid"], pod)
    return [pod for pod in waited.values() if _is_placed_after(ledger, acts[0].position, pod)] or [*waited.values()]


def _is_placed_after(ledger: Ledger, position: int, pod: Object) -> bool:
    """Whether a later version of the pod has a node or a nominated node."""
    return any(
        version["metadata"]["uid"] == pod["metadata"]["uid"]
        and (version["spec"].get("nodeName") or version.get("status", {}).get("nominatedNodeName"))
        for version in ledger.since(position, Kind.POD, key_of(pod))
    )


def _units(ledger: Ledger, acts: Sequence[Act], rules: Rules) -> list[Amounts]:
    """Return the amounts of each eviction unit: of a pod, or of all evicted pods of a broken gang."""
    of_group: dict[str, list[Act]] = {}
    for act in acts:
        of_group.setdefault(act.group or act.uid, []).append(act)
    units = []
    for key, evicted in of_group.items():
        if _is_broken(ledger, key, evicted, rules):
            units.append(total(act.amounts for act in evicted))
        else:
            units += [act.amounts for act in evicted]
    return units


def _is_broken(ledger: Ledger, key: str, evicted: Sequence[Act], rules: Rules) -> bool:
    """Whether the gang has fewer pods than its minimum after the evictions."""
    position = evicted[-1].position
    group = ledger.at(position, Kind.PODGROUP, key)
    if group is None or not rules.is_enabled("gang", SWITCHES.get(evicted[0].action, "enableReclaimable")):
        return False
    left = [pod for pod in ledger.members(position, key) if keeps(pod)]
    return len(left) < int(group["spec"].get("minMember") or 0)
