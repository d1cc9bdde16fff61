"""Describe the network of a scenario as HyperNodes, for schedulers that read Volcano's topology. No I/O.

The columns `rack` and `spine` of a table of nodes are labels of the nodes. Each value becomes a HyperNode of that name:
a rack (tier 1) has its nodes as members, a spine (tier 2) the racks of its nodes, and its nodes that are in no rack.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..api.errors import HarnessError
from ..api.kinds import LEVELS, SERVED, Kind

Object = dict[str, Any]


def of_nodes(nodes: Sequence[Object]) -> list[Object]:
    """Return the HyperNodes of these nodes, the racks first.

    Raises:
        HarnessError: a rack and a spine have one name, or a rack is in two spines.
    """
    racks, spines = (_by_label(nodes, label) for label in LEVELS.values())
    if ambiguous := sorted(racks.keys() & spines.keys()):
        raise HarnessError(f"{ambiguous[0]!r} is a rack and a spine: rename one of the two")
    spine_of: dict[str, str] = {}
    for spine, inside in spines.items():
        for node in inside:
            rack = _label(node, "rack")
            if rack and spine_of.setdefault(rack, spine) != spine:
                raise HarnessError(
                    f"rack {rack!r} is in the spines {spine_of[rack]!r} and {spine!r}: put the rack into one"
                )
    found = [_made("rack", rack, [("Node", _name(node)) for node in inside]) for rack, inside in racks.items()]
    for spine, inside in spines.items():
        members = [("HyperNode", rack) for rack in racks if spine_of.get(rack) == spine]
        members += [("Node", _name(node)) for node in inside if not _label(node, "rack")]
        found.append(_made("spine", spine, members))
    return found


def _by_label(nodes: Iterable[Object], label: str) -> dict[str, list[Object]]:
    """Return the nodes with the label by its value, values and nodes in alphabetical order."""
    found: dict[str, list[Object]] = {}
    for node in sorted(nodes, key=_name):
        if value := (node["metadata"].get("labels") or {}).get(label, ""):
            found.setdefault(value, []).append(node)
    return dict(sorted(found.items()))


def _label(node: Object, level: str) -> str:
    return str((node["metadata"].get("labels") or {}).get(LEVELS[level], ""))


def _name(node: Object) -> str:
    return str(node["metadata"]["name"])


def _made(level: str, name: str, members: Sequence[tuple[str, str]]) -> Object:
    served = SERVED[Kind.HYPERNODE]
    return {
        "apiVersion": served.api_version,
        "kind": served.kind,
        "metadata": {"name": name},
        "spec": {
            "tier": list(LEVELS).index(level) + 1,
            "tierName": level,
            "members": [{"type": kind, "selector": {"exactMatch": {"name": member}}} for kind, member in members],
        },
    }
