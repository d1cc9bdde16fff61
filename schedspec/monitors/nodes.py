"""Monitor: no bind exceeds the capacity of a node."""

from __future__ import annotations

from collections.abc import Iterator

from ..api.kinds import Kind
from . import amounts
from .amounts import Amounts
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
        if text := overfull(act.node, used, has, act.amounts):
            yield act.violation(NAME, text)


def overfull(node: str, held: Amounts, has: Amounts, requested: Amounts) -> str:
    """Return how a bind exceeds a node, which has none of a requested resource that it does not list; else nothing."""
    over = amounts.above(held, {**dict.fromkeys(requested, amounts.NONE), **has}, requested)
    return f"bound to {node}, which then holds {', '.join(over)}" if over else ""
