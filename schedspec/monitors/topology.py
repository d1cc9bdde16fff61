"""Monitor: a gang that requires one rack or one spine never has pods in two.

The constraint is read from the gang's PodGroup (Volcano's or Kubernetes') at the time of the bind. A node is in the
rack that its label names; this holds for HyperNodes too, because the harness makes them from the labels.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..api.kinds import LEVELS, Kind
from .ledger import Act, Ledger, Violation
from .object_state import keeps
from .rules import Rules

NAME = "topology"
_GROUPS = (Kind.PODGROUP, Kind.GANG, Kind.GANG_ALPHA)


def judge(ledger: Ledger, rules: Rules) -> Iterator[Violation]:
    """Compare the domains of all bound pods of a gang after each of its binds."""
    del rules  # a scheduler without support for topology has to let the gang wait
    for act in ledger.binds():
        label = _required(ledger, act)
        found = _domains(ledger, act, label) if label else {}
        if len(found) > 1:
            where = ", ".join(f"{name or 'no domain'}: {pods}" for name, pods in sorted(found.items()))
            yield act.violation(NAME, f"its gang has to be in one {_level(label)}, and is in {where}")


def _required(ledger: Ledger, act: Act) -> str:
    """Return the node label whose value has to be the same for all pods of the gang; empty if there is none."""
    key = act.group
    for kind in _GROUPS if key else ():
        group = ledger.at(act.position, kind, key)
        if group is None:
            continue
        request = group["spec"].get("networkTopology") or {}
        if request.get("mode", "hard") != "soft" and request.get("highestTierName") in LEVELS:
            return LEVELS[request["highestTierName"]]
        keys = (group["spec"].get("schedulingConstraints") or {}).get("topology") or ()
        return next((str(constraint.get("key", "")) for constraint in keys), "")
    return ""


def _domains(ledger: Ledger, act: Act, label: str) -> dict[str, int]:
    """Return how many pods of the gang are in each domain. Pods on deleted nodes are not counted."""
    found: dict[str, int] = {}
    for pod in ledger.members(act.position, act.group):
        node = ledger.at(act.position, Kind.NODE, pod["spec"]["nodeName"]) if keeps(pod) else None
        if node is not None:
            name = str((node["metadata"].get("labels") or {}).get(label, ""))
            found[name] = found.get(name, 0) + 1
    return found


def _level(label: str) -> str:
    return next((level for level, key in LEVELS.items() if key == label), label)
