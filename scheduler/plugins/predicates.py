"""predicates: what of a pod's spec decides where it may run (semantics: kube-scheduler's filter plugins, as Volcano
wraps them).

The one rule: every constraint is one function that names the rule it applies, for one node or for all; what is said to
exclude a node is what did exclude it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from scheduler.model.nodes import Mask, NodeInfo
from scheduler.model.objects import Taint
from scheduler.model.task import Task
from scheduler.placement.pod_affinity import PodAffinities
from scheduler.placement.ports import HostPorts
from scheduler.placement.selectors import node_selector_matches, untolerated
from scheduler.placement.spread import Spread
from scheduler.placement.volumes import out_of_reach, volumes_of

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

        self._node_affinity, self._taints = on("NodeAffinity"), on("TaintToleration")
        self._ports_on, self._affinity_on, self._spread_on = on("NodePorts"), on("PodAffinity"), on("PodTopologySpread")
        self._volumes_on = on("VolumeBinding") and on("VolumeZone")

    def open(self, session: Session, register: Register) -> None:
        self._cluster, self._nodes = session.cluster, session.nodes
        self._ports = HostPorts(session.nodes)
        self._affinities = PodAffinities(session.cluster)
        self._spread = Spread(session.nodes)
        register("feasible", self._feasible)
        if self._volumes_on:
            register("feasible", self._reaches_volumes)
        register("predicate", self._predicate)
        register("node_rule", self._node_rule)

    # -------------------------------------------------------------------------------------- what the nodes' objects say

    def _feasible(self, task: Task) -> Mask:
        kept = self._nodes.kept
        key = (task.shape, self._node_affinity, self._taints)
        mask: Mask | None = kept.get(key)
        if mask is None:
            rows = self._nodes.rows
            mask = np.fromiter((self._objection(task, node) is None for node in rows), np.bool_, len(rows))
            kept[key] = mask
        return mask

    def _objection(self, task: Task, node: NodeInfo) -> Rule | None:
        """The first constraint that keeps the task off the node by what the node's object says."""
        spec = task.pod.spec
        if node.object.spec.unschedulable and untolerated((UNSCHEDULABLE,), spec.tolerations, ("NoSchedule",)):
            return ("unschedulable", "")
        if self._taints and node.object.spec.taints:
            taint = untolerated(node.object.spec.taints, spec.tolerations, ("NoSchedule", "NoExecute"))
            if taint is not None:
                return ("taint", f"{taint.key}={taint.value}" if taint.value else taint.key)
        if self._node_affinity:
            for key, value in (spec.node_selector or {}).items():
                if node.labels.get(key) != value:
                    return ("selector", f"{key}={value}")
            affinity = spec.affinity and spec.affinity.node_affinity
            if affinity and not node_selector_matches(affinity.required, node):
                return ("affinity", "")
        return None

    def _reaches_volumes(self, task: Task) -> Mask:
        volumes = volumes_of(self._cluster, task) if task.pod.spec.volumes else []
        if not volumes:
            return np.ones(len(self._nodes.rows), dtype=np.bool_)
        return np.fromiter((not out_of_reach(volumes, node) for node in self._nodes.rows), np.bool_)

    # ------------------------------------------------------------------------------------------- what runs on the nodes

    def _predicate(self, task: Task, future: bool) -> Mask | None:
        masks = []
        if self._ports_on:
            masks.append(self._ports.mask(task, future=future))
        if self._affinity_on:
            masks.append(self._affinities.mask(task, future=future))
        if self._spread_on:
            masks.append(self._spread.mask(task))
        asked = [mask for mask in masks if mask is not None]
        return np.logical_and.reduce(asked) if asked else None

    def _node_rule(self, task: Task, node: NodeInfo) -> Rule | None:
        if (rule := self._objection(task, node)) is not None:
            return rule
        if self._volumes_on and (volume := out_of_reach(volumes_of(self._cluster, task), node)):
            return ("volume", volume)
        if self._ports_on and (port := self._ports.taken(task, node)):
            return ("port", port)
        if self._affinity_on:
            for name, mask in (
                ("pod-affinity", self._affinities.affinity_mask(task, future=True)),
                ("pod-anti-affinity", self._affinities.anti_affinity_mask(task, future=True)),
            ):
                if mask is not None and not mask[node.row]:
                    return (name, "")
        if self._spread_on and (key := self._spread.broken(task, node)):
            return ("spread", key)
        return None
