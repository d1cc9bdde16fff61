"""Match pods with nodes: index the nodes by labels and names, and the tolerations of a pod by key.

The index of nodes lives as long as the nodes' objects are unchanged (`Nodes.kept`).

An expression is matched with all nodes at once, as arrays. The cost of a pod's node affinity depends on the number of
its expressions and values. A pod's tolerations are read once for all nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from ..model.matching import requirement_holds
from ..model.nodes import Mask, NodeInfo, Nodes
from ..model.objects import NodeSelector, NodeSelectorTerm, SelectorRequirement, Taint, Toleration

NAME = "metadata.name"
VALUES_A_STEP = 16
"""How many values of an expression are looked up in one step."""
HARD_TAINTS = ("NoSchedule", "NoExecute")
NODE_AFFINITY, TOLERATIONS = "spec.affinity.nodeAffinity", "spec.tolerations"
"""The fields of a pod that are matched with nodes."""
EXPRESSION = 6
"""The steps that one expression costs, whatever its values."""


class NodeIndex:
    """The labels and names of all nodes at one moment."""

    def __init__(self, nodes: Nodes) -> None:
        self._size = len(nodes.rows)
        self._by_label: dict[str, dict[str, list[int]]] = {}
        for info in nodes.rows:
            for key, value in info.labels.items():
                self._by_label.setdefault(key, {}).setdefault(value, []).append(info.row)
        self._by_name = {NAME: {info.name: [info.row] for info in nodes.rows}}

    @classmethod
    def of(cls, nodes: Nodes) -> NodeIndex:
        """Return the index of the nodes as they are now."""
        found: NodeIndex | None = nodes.kept.get("index")
        if found is None:
            found = nodes.kept["index"] = cls(nodes)
        return found

    def has_label(self, key: str) -> bool:
        """Whether any node has the label."""
        return key in self._by_label

    def labelled(self, labels: Mapping[str, str]) -> Mask:
        """Return the nodes that have all of these labels."""
        mask = np.ones(self._size, dtype=np.bool_)
        for key, value in labels.items():
            mask &= self._marked([self._by_label.get(key, {}).get(value, ())])
            if not mask.any():
                break
        return mask

    def selected(self, selector: NodeSelector | None) -> Mask:
        """Return the nodes that any term of the selector matches; an absent selector matches every node."""
        if selector is None:
            return np.ones(self._size, dtype=np.bool_)
        mask = np.zeros(self._size, dtype=np.bool_)
        for term in selector.node_selector_terms:
            mask |= self.matching(term)
        return mask

    def matching(self, term: NodeSelectorTerm) -> Mask:
        """Return the nodes that one term matches; an empty term matches nothing."""
        if not term.match_expressions and not term.match_fields:
            return np.zeros(self._size, dtype=np.bool_)
        mask = np.ones(self._size, dtype=np.bool_)
        for known, items in ((self._by_label, term.match_expressions), (self._by_name, term.match_fields)):
            for item in items or ():
                mask &= self._holding(known.get(item.key, {}), item)
        return mask

    def _holding(self, known: Mapping[str, list[int]], item: SelectorRequirement) -> Mask:
        mask = self._marked(rows_holding(known, item))
        if requirement_holds(item, {}):  # NotIn and DoesNotExist also hold without the label
            mask |= ~self._marked(known.values())
        return mask

    def _marked(self, lists: Iterable[Iterable[int]]) -> Mask:
        mask = np.zeros(self._size, dtype=np.bool_)
        for rows in lists:
            mask[np.fromiter(rows, np.int64)] = True
        return mask


def rows_holding(known: Mapping[str, list[int]], item: SelectorRequirement) -> Iterable[list[int]]:
    """Return those entries of `known` whose value meets a requirement.

    The cost grows with the number of values in `known` and in the requirement, not with the product of both.
    """
    match item.operator:
        case "In":
            return [known[value] for value in dict.fromkeys(item.values or ()) if value in known]
        case "NotIn":
            excluded = frozenset(item.values or ())
            return [rows for value, rows in known.items() if value not in excluded]
    return [rows for value, rows in known.items() if requirement_holds(item, {item.key: value})]


def steps_of(selector: NodeSelector | None) -> int:
    """Return how many steps it takes to match a node selector."""
    return 0 if selector is None else sum(map(steps_of_term, selector.node_selector_terms))


def steps_of_term(term: NodeSelectorTerm) -> int:
    """Return how many steps it takes to match one term."""
    items = (*(term.match_expressions or ()), *(term.match_fields or ()))
    return 1 + EXPRESSION * len(items) + sum(len(item.values or ()) for item in items) // VALUES_A_STEP


class Tolerations:
    """The taints that the tolerations of one pod cover, by key."""

    def __init__(self, tolerations: Iterable[Toleration] | None) -> None:
        self._exists: set[tuple[str, str]] = set()
        self._equal: set[tuple[str, str, str]] = set()
        for item in tolerations or ():
            if item.operator == "Exists":
                self._exists.add((item.key, item.effect))
            elif item.key and item.operator in ("", "Equal"):
                self._equal.add((item.key, item.value, item.effect))

    def cover(self, taint: Taint) -> bool:
        """Whether a toleration covers the taint."""
        effects = ("", taint.effect)
        return any(
            ("", effect) in self._exists
            or (taint.key, effect) in self._exists
            or (taint.key, taint.value, effect) in self._equal
            for effect in effects
        )

    def uncovered(self, taints: Iterable[Taint] | None, effects: tuple[str, ...]) -> Taint | None:
        """Return the first taint with one of `effects` that no toleration covers."""
        return next((taint for taint in taints or () if taint.effect in effects and not self.cover(taint)), None)


def mask_of(nodes: Nodes, holds: Callable[[NodeInfo], bool]) -> Mask:
    """Return the nodes for which `holds` returns True."""
    return np.fromiter((holds(node) for node in nodes.rows), np.bool_, len(nodes.rows))
