"""predicates: what of a pod's spec decides where it may run (semantics: kube-scheduler's filter plugins, as Volcano
wraps them).

The one rule: every constraint is one function that names the rule it applies, for one node or for all; what is said to
exclude a node is what did exclude it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ..framework.plugin import Plugin
from ..framework.session import Session
from ..model.nodes import Mask, NodeInfo
from ..model.objects import PersistentVolume, Taint
from ..model.task import Task
from ..placement.attachments import AttachLimits
from ..placement.pod_affinity import PodAffinities
from ..placement.ports import HostPorts
from ..placement.selectors import node_selector_matches, untolerated
from ..placement.spread import Spread
from ..placement.volumes import outside_affinity, outside_zone, volumes_of
from ..policy.hooks import Exclusion, Feasible, NodeRule, Predicate
from ..policy.model import PluginOption
from ..policy.schema import BOOL, Argument

OS_LABEL = "kubernetes.io/os"
UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


CONSTRAINTS = {
    "NodeAffinity": "node selector and required node affinity",
    "TaintToleration": "taints NoSchedule and NoExecute",
    "NodePorts": "host ports",
    "PodAffinity": "required affinity and anti-affinity of pods",
    "PodTopologySpread": "topology spread that is not a preference",
    "VolumeBinding": "node affinity of bound volumes",
    "VolumeZone": "zone and region of bound volumes",
    "NodeVolumeLimits": "how many volumes of a driver a node can attach",
}


class Predicates(Plugin, Feasible, Predicate, NodeRule):
    """See the module."""

    name = "predicates"
    arguments: ClassVar = {
        **{
            f"predicate.{name}Enable": Argument(BOOL, default=True, means=f"`false` ignores {means}")
            for name, means in CONSTRAINTS.items()
        },
        "predicate.DynamicResourceAllocationEnable": Argument(BOOL, ignored="pods with resource claims wait here"),
        "predicate.CacheEnable": Argument(BOOL, ignored="what a node's labels decide is always remembered"),
    }

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)

        def on(name: str) -> bool:
            return bool(self.argument(f"predicate.{name}Enable"))

        self._node_affinity, self._taints = on("NodeAffinity"), on("TaintToleration")
        self._ports_on, self._affinity_on, self._spread_on = on("NodePorts"), on("PodAffinity"), on("PodTopologySpread")
        self._reach = [
            outside for name, outside in (("VolumeBinding", outside_affinity), ("VolumeZone", outside_zone)) if on(name)
        ]
        self._limits_on = on("NodeVolumeLimits")

    def open(self, session: Session) -> None:
        self._cluster, self._nodes = session.cluster, session.nodes
        self._ports = HostPorts(session.nodes)
        self._affinities = PodAffinities(session.cluster, session.placement.pods)
        self._spread = Spread(session.nodes, session.placement.pods)
        self._attachments = AttachLimits(session.cluster)

    # -------------------------------------------------------------------------------------- what the nodes' objects say

    def feasible(self, task: Task) -> Mask:
        mask = self._matches(task)
        return mask & self._reaches_volumes(task) if self._reach and task.pod.spec.volumes else mask

    def _matches(self, task: Task) -> Mask:
        kept = self._nodes.kept
        key = (task.shape, self._node_affinity, self._taints)
        mask: Mask | None = kept.get(key)
        if mask is None:
            rows = self._nodes.rows
            mask = np.fromiter((self._objection(task, node) is None for node in rows), np.bool_, len(rows))
            kept[key] = mask
        return mask

    def _objection(self, task: Task, node: NodeInfo) -> Exclusion | None:
        """The first constraint that keeps the task off the node by what the node's object says."""
        spec = task.pod.spec
        if node.object.spec.unschedulable and untolerated((UNSCHEDULABLE,), spec.tolerations, ("NoSchedule",)):
            return ("unschedulable", "")
        if self._taints and node.object.spec.taints:
            taint = untolerated(node.object.spec.taints, spec.tolerations, ("NoSchedule", "NoExecute"))
            if taint is not None:
                return ("taint", f"{taint.key}={taint.value}" if taint.value else taint.key)
        if spec.os is not None and node.labels.get(OS_LABEL, spec.os.name) != spec.os.name:
            return ("selector", f"{OS_LABEL}={spec.os.name}")
        if self._node_affinity:
            for key, value in (spec.node_selector or {}).items():
                if node.labels.get(key) != value:
                    return ("selector", f"{key}={value}")
            affinity = spec.affinity and spec.affinity.node_affinity
            if affinity and not node_selector_matches(affinity.required, node):
                return ("affinity", "")
        return None

    def _reaches_volumes(self, task: Task) -> Mask:
        volumes = volumes_of(self._cluster, task)
        return np.fromiter((not self._out_of_reach(volumes, node) for node in self._nodes.rows), np.bool_)

    def _out_of_reach(self, volumes: list[PersistentVolume], node: NodeInfo) -> str:
        """The name of the first volume that the node does not reach; empty if it reaches all."""
        return next((v.metadata.name for v in volumes if any(outside(v, node) for outside in self._reach)), "")

    # ------------------------------------------------------------------------------------------- what runs on the nodes

    def predicate(self, task: Task, future: bool) -> Mask | None:
        masks = []
        if self._ports_on:
            masks.append(self._ports.mask(task, future=future))
        if self._affinity_on:
            masks.append(self._affinities.mask(task, future=future))
        if self._spread_on:
            masks.append(self._spread.mask(task))
        if self._limits_on:
            masks.append(self._attachments.mask(task, future=future))
        asked = [mask for mask in masks if mask is not None]
        return np.logical_and.reduce(asked) if asked else None

    def node_rule(self, task: Task, node: NodeInfo) -> Exclusion | None:
        return self._objection(task, node) or next(self._objections_of_neighbours(task, node), None)

    def _objections_of_neighbours(self, task: Task, node: NodeInfo) -> Iterator[Exclusion]:
        """What keeps the task off the node by its volumes and by what runs there, in the order of asking."""
        if self._reach and (volume := self._out_of_reach(volumes_of(self._cluster, task), node)):
            yield ("volume", volume)
        if self._ports_on and (port := self._ports.taken(task, node)):
            yield ("port", port)
        if self._affinity_on:
            for name, mask in (
                ("pod-affinity", self._affinities.affinity_mask(task, future=True)),
                ("pod-anti-affinity", self._affinities.anti_affinity_mask(task, future=True)),
            ):
                if mask is not None and not mask[node.row]:
                    yield (name, "")
        if self._spread_on and (key := self._spread.broken(task, node)):
            yield ("spread", key)
        if self._limits_on and (driver := self._attachments.full(task, node)):
            yield ("attachments", driver)
