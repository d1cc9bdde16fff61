"""No bind puts more onto a node than the node has."""

from __future__ import annotations

from collections.abc import Iterator

from ..api.kinds import Kind
from . import amounts
from .ledger import Ledger, Violation, taken
from .rules import Rules

NAME = "node"


def judge(ledger: Ledger, rules: Rules) -> Iterator[Violation]:
    """Pods on the node after each bind, those that are still leaving included, against what the node offers."""
    del rules
    for act in ledger.binds():
        node = ledger.at(act.position, Kind.NODE, act.node)
        if node is None:
            continue
        used = taken(p for p in ledger.holding(act.position) if p["spec"]["nodeName"] == act.node)
        has = amounts.parse(node.get("status", {}).get("allocatable"))
        # What a node does not name it has none of, as far as the pod asks for it.
        asked = amounts.of_pod(act.pod)
        limits = {**dict.fromkeys(asked, amounts.NONE), **has}
        if over := amounts.above(used, limits, asked):
            yield Violation(NAME, act.time, act.name, f"bound to {act.node}, which then holds {', '.join(over)}")
