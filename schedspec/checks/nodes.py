"""Checks of nodes, and of the shared cards that pods have on them."""

from __future__ import annotations

from ..api.kinds import Kind, Ref
from ..observe import view as views
from ..observe.expect import Check, Outcome
from ..observe.history import View
from ..observe.shared_cards import parts_of
from .workloads import about, held, of_known

Cards = set[tuple[str, str]]
"""Node and name of each card."""


@of_known
def are_on(workload: str, number: int) -> Check:
    """The pods of the workload that have a node have parts of exactly `number` cards in total."""

    def check(view: View) -> Outcome:
        found = cards(view, workload)
        expected = f"the pods of {workload} share {views.count(number, 'card')}"
        return Outcome(len(found) == number, expected, _seen(found), about(view, workload))

    return check


@of_known
def share(workload: str, other: str, some: bool) -> Check:
    """The pods of two workloads share a card (`some`), or share none. Both must have a card."""

    def check(view: View) -> Outcome:
        mine, others = cards(view, workload), cards(view, other)
        expected = f"{workload} and {other} share {'a' if some else 'no'} card"
        ok = bool(mine and others) and bool(mine & others) is some
        return Outcome(ok, expected, f"{workload}: {_seen(mine)}; {other}: {_seen(others)}", about(view, workload))

    return check


def cards(view: View, workload: str) -> Cards:
    """Return the cards of which the workload's pods on nodes have parts."""
    pods = held(views.pods_of(view, workload))
    return {(str(pod["spec"]["nodeName"]), part.card) for pod in pods for part in parts_of(pod)}


def _seen(found: Cards) -> str:
    return ", ".join(f"card {card} of {node}" for node, card in sorted(found)) or "no card"


def is_empty(name: str) -> Check:
    """The node is deleted, and no remaining pod is bound to it."""

    def check(view: View) -> Outcome:
        pods = sorted(str(p["metadata"]["name"]) for p in view.all(Kind.POD) if p["spec"].get("nodeName") == name)
        exists = view.get(Kind.NODE, name) is not None
        seen = f"{'it is still there' if exists else 'it is gone'}; on it: {', '.join(pods) or 'nothing'}"
        return Outcome(not exists and not pods, f"node {name} is gone with its pods", seen, (Ref(Kind.NODE, name),))

    return check
