"""Monitor: no bind exceeds the capacity of a node."""

from __future__ import annotations

from collections.abc import Iterator

from ..api.kinds import Kind
from . import amounts
from .ledger import Ledger, Violation, occupied
from .rules import Rules

NAME = "node"


def judge(ledger: Ledger, rules: Rules) -> Iterator[Violation]:
    """Compare the pods on the node after each bind, terminating pods included, with the node's allocatable amounts."""
    del rules
    for act in ledger.binds():
        node = ledger.at(act.position, Kind.NODE, act.node)
        if node is None:
            continue
        used = occupied(ledger.on_node(act.position, act.node))
        has = amounts.parse(node.get("status", {}).get("allocatable"))
        # A node has none of a requested resource that it does not list.
        requested = act.amounts
        limits = {**dict.fromkeys(requested, amounts.NONE), **has}
        if over := amounts.above(used, limits, requested):
            text = f"bound to {act.node}, which then holds {', '.join(over)}"
            yield act.violation(NAME, text)
