"""predicates: what of a pod's spec decides where it may run (semantics: kube-scheduler's filter plugins, as Volcano wraps them).

The one rule: every constraint is one function that names the rule it applies; the masks over all nodes and the reason for one node
come from the same function, so that what is said is what was done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scheduler.model.nodes import Mask, NodeInfo
from scheduler.model.objects import Taint
from scheduler.model.task import Task
from scheduler.placement.selectors import node_selector_matches, untolerated

if TYPE_CHECKING:
    from scheduler.policy import PluginOption
    from scheduler.session import Register, Session

Rule = tuple[str, str]
UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class Predicates:
    """The plugin. Arguments ``predicate.<Name>Enable: false`` turn single constraints off, as in Volcano."""

    name = "predicates"

    def __init__(self, option: PluginOption) -> None:
        def on(name: str) -> bool:
            return str(option.arguments.get(f"predicate.{name}Enable", "true")).lower() != "false"

        self._affinity, self._taints = on("NodeAffinity"), on("TaintToleration")

    def open(self, session: Session, register: Register) -> None:
        self._nodes = session.nodes
        register("feasible", self._feasible)
        register("node_rule", self._node_rule)

    def _feasible(self, task: Task) -> Mask:
        kept = self._nodes.kept
        key = (task.shape, self._affinity, self._taints)
        mask: Mask | None = kept.get(key)
        if mask is None:
            rows = self._nodes.rows
            mask = np.fromiter((self._objection(task, node) is None for node in rows), np.bool_, len(rows))
            kept[key] = mask
        return mask

    def _node_rule(self, task: Task, node: NodeInfo) -> Rule | None:
        return self._objection(task, node)

    def _objection(self, task: Task, node: NodeInfo) -> Rule | None:
        """The first constraint that keeps the task off the node by what the node's object says."""
        spec = task.pod.spec
        if node.object.spec.unschedulable and untolerated((UNSCHEDULABLE,), spec.tolerations, ("NoSchedule",)):
            return ("unschedulable", "")
        if self._taints:
            taint = untolerated(node.object.spec.taints, spec.tolerations, ("NoSchedule", "NoExecute"))
            if taint is not None:
                return ("taint", f"{taint.key}={taint.value}" if taint.value else taint.key)
        if self._affinity:
            for key, value in (spec.node_selector or {}).items():
                if node.labels.get(key) != value:
                    return ("selector", f"{key}={value}")
            affinity = spec.affinity and spec.affinity.node_affinity
            if affinity and not node_selector_matches(affinity.required, node):
                return ("affinity", "")
        return None
