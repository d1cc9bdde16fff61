"""Match pods with nodes: index the nodes by labels and names, and the tolerations of a pod by key.

The index of nodes lives as long as the nodes' objects are unchanged (`Nodes.kept`).

An expression is matched with all nodes at once (`LabelColumn`). The columns of labels are shared by all pods. A pod's
tolerations are read once for all nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from ..model.nodes import Mask, NodeInfo, Nodes
from ..model.objects import NodeSelector, NodeSelectorTerm, Taint, Toleration
from .label_column import ITEMS_A_STEP, LabelColumn, steps_of_requirement

NAME = "metadata.name"
HARD_TAINTS = ("NoSchedule", "NoExecute")
NODE_AFFINITY, TOLERATIONS = "spec.affinity.nodeAffinity", "spec.tolerations"
"""The fields of a pod that are matched with nodes."""
TERM = 2
"""The steps that one term costs, whatever its expressions and the nodes."""


class NodeIndex:
    """The labels and names of all nodes at one moment."""

    def __init__(self, nodes: Nodes) -> None:
        self._rows = tuple(nodes.rows)
        self._labels = frozenset().union(*(info.labels for info in self._rows))
        self._columns: dict[str, LabelColumn] = {}
        """Label → its column, for labels that pods have named and nodes have."""
        self._names = LabelColumn(len(self._rows), {info.row: info.name for info in self._rows})
        self._nothing = LabelColumn(len(self._rows), {})

    @classmethod
    def of(cls, nodes: Nodes) -> NodeIndex:
        """Return the index of the nodes as they are now."""
        return nodes.kept.once("index", lambda: cls(nodes))

    def has_label(self, key: str) -> bool:
        """Whether any node has the label."""
        return key in self._labels

    def labelled(self, labels: Mapping[str, str]) -> Mask:
        """Return the nodes that have all of these labels."""
        return self.with_any({key: (value,) for key, value in labels.items()})

    def with_any(self, values: Mapping[str, Iterable[str]]) -> Mask:
        """Return the nodes that have, for each label, one of its values."""
        mask = np.ones(len(self._rows), dtype=np.bool_)
        for key, some in values.items():
            mask &= self._column(key).having(some)
            if not mask.any():
                break
        return mask

    def selected(self, selector: NodeSelector | None) -> Mask:
        """Return the nodes that any term of the selector matches; an absent selector matches every node."""
        if selector is None:
            return np.ones(len(self._rows), dtype=np.bool_)
        mask = np.zeros(len(self._rows), dtype=np.bool_)
        for term in selector.node_selector_terms:
            mask |= self.matching(term)
        return mask

    def matching(self, term: NodeSelectorTerm) -> Mask:
        """Return the nodes that one term matches; an empty term matches nothing."""
        if not term.match_expressions and not term.match_fields:
            return np.zeros(len(self._rows), dtype=np.bool_)
        mask = np.ones(len(self._rows), dtype=np.bool_)
        for item in term.match_expressions or ():
            mask &= self._column(item.key).holding(item)
        for item in term.match_fields or ():
            mask &= (self._names if item.key == NAME else self._nothing).holding(item)
        return mask

    def _column(self, key: str) -> LabelColumn:
        """Return the values of a label. Labels that no node has share a column: pods may name any number of them."""
        if key not in self._labels:
            return self._nothing
        known = self._columns.get(key)
        if known is None:
            found = {info.row: info.labels[key] for info in self._rows if key in info.labels}
            known = self._columns[key] = LabelColumn(len(self._rows), found)
        return known


def steps_of(selector: NodeSelector | None, nodes: Nodes) -> int:
    """Return how many steps it takes to match a node selector."""
    return 0 if selector is None else sum(steps_of_term(term, nodes) for term in selector.node_selector_terms)


def steps_of_term(term: NodeSelectorTerm, nodes: Nodes) -> int:
    """Return how many steps it takes to match one term."""
    size = len(nodes.rows)
    items = (*(term.match_expressions or ()), *(term.match_fields or ()))
    return TERM + size // ITEMS_A_STEP + sum(steps_of_requirement(item, size) for item in items)


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
