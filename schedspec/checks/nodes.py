"""Checks of nodes."""

from __future__ import annotations

from ..api.kinds import Kind, Ref
from ..observe.expect import Check, Outcome
from ..observe.history import View


def is_empty(name: str) -> Check:
    """The node is deleted, and no remaining pod is bound to it."""

    def check(view: View) -> Outcome:
        left = sorted(str(p["metadata"]["name"]) for p in view.all(Kind.POD) if p["spec"].get("nodeName") == name)
        there = view.get(Kind.NODE, name) is not None
        seen = f"{'it is still there' if there else 'it is gone'}; on it: {', '.join(left) or 'nothing'}"
        return Outcome(not there and not left, f"node {name} is gone with its pods", seen, (Ref(Kind.NODE, name),))

    return check
