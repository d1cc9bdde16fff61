"""Checks of nodes."""

from __future__ import annotations

from ..api.kinds import Kind, Ref
from ..observe.expect import Check, Outcome
from ..observe.history import View


def is_empty(name: str) -> Check:
    """The node is deleted, and no remaining pod is bound to it."""

    def check(view: View) -> Outcome:
        pods = sorted(str(p["metadata"]["name"]) for p in view.all(Kind.POD) if p["spec"].get("nodeName") == name)
        exists = view.get(Kind.NODE, name) is not None
        seen = f"{'it is still there' if exists else 'it is gone'}; on it: {', '.join(pods) or 'nothing'}"
        return Outcome(not exists and not pods, f"node {name} is gone with its pods", seen, (Ref(Kind.NODE, name),))

    return check
