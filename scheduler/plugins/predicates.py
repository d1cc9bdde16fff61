"""predicates: check the constraints of a pod's spec that decide where the pod may run.

The checks that filter the nodes also name the rule, so that the rule reported for a node is the rule that excluded it.
(Semantics: kube-scheduler's filter plugins, as Volcano wraps them.)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from ..framework.plugin import Covers, Plugin
from ..framework.session import Session
from ..model.nodes import Mask, NodeInfo, Rows
from ..model.objects import NodeSelector, Taint
from ..model.task import Task
from ..placement.attachments import AttachLimits
from ..placement.label_column import VALUES_A_STEP
from ..placement.node_index import HARD_TAINTS, NODE_AFFINITY, TOLERATIONS, NodeIndex, Tolerations, mask_of, steps_of
from ..placement.ports import HostPorts
from ..placement.spread import Spread
from ..placement.volumes import FIELD, VOLUME, steps_of_reach, volumes_of, within_affinity, within_zone
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
    """Filter nodes by the constraints of the pod's spec."""

    name = "predicates"
    refusal_covers = Covers.LOWER_PRIORITIES
    arguments: ClassVar = {
        **{
            f"predicate.{name}Enable": Argument(BOOL, default=True, means=f"`false` ignores {means}")
            for name, means in CONSTRAINTS.items()
        },
        "predicate.DynamicResourceAllocationEnable": Argument(BOOL, ignored="pods with resource claims wait here"),
        "predicate.CacheEnable": Argument(BOOL, ignored="the results for a node's labels are always cached"),
    }

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)

        def on(name: str) -> bool:
            return bool(self.argument(f"predicate.{name}Enable"))

        self._node_affinity, self._taints = on("NodeAffinity"), on("TaintToleration")
        self._ports_on, self._affinity_on, self._spread_on = on("NodePorts"), on("PodAffinity"), on("PodTopologySpread")
        self._volume_rules = [
            within for name, within in (("VolumeBinding", within_affinity), ("VolumeZone", within_zone)) if on(name)
        ]
        self._limits_on = on("NodeVolumeLimits")

    def open(self, session: Session) -> None:
        self._cluster, self._nodes = session.cluster, session.nodes
        self._spend = session.work.spend
        self._ports = HostPorts(session.nodes, self._spend)
        self._tolerations_by_shape: dict[bytes, Tolerations] = {}
        self._unreached: dict[bytes, tuple[list[str], Rows]] = {}
        """Shape → its volumes, and for each node the position of the first one that the node does not reach, or -1."""
        self._affinities = session.placement.affinities
        self._spread = Spread(session.nodes, session.placement.pods)
        self._attachments = AttachLimits(session.cluster, self._spend)

    # ---------------------------------------------------------------------------------------------- the nodes' objects

    def feasible(self, task: Task) -> Mask:
        mask = self._matches(task)
        return mask & self._reaches_volumes(task) if self._volume_rules and task.pod.spec.volumes else mask

    def _matches(self, task: Task) -> Mask:
        spec, required = task.pod.spec, self._required(task)
        # The steps depend on the pod alone, whether or not an earlier cycle has cached its mask.
        if required is not None:
            self._spend(steps_of(required, self._nodes), NODE_AFFINITY)
        if spec.tolerations:
            self._spend(len(spec.tolerations) // VALUES_A_STEP, TOLERATIONS)
        if spec.node_selector:
            self._spend(len(spec.node_selector) // VALUES_A_STEP, "spec.nodeSelector")
        known = self._known_masks()
        mask = known.get(task.shape)
        if mask is None:
            if len(known) >= self._nodes.most_shapes:
                known.clear()
            mask = mask_of(self._nodes, lambda node: self._objection_of_object(task, node) is None)
            mask &= NodeIndex.of(self._nodes).selected(required)
            known[task.shape] = mask
        return mask

    def _known_masks(self) -> dict[bytes, Mask]:
        return self._nodes.kept.once(("feasible", self._node_affinity, self._taints), dict[bytes, Mask])

    def _required(self, task: Task) -> NodeSelector | None:
        """Return the required node affinity of the task, if node affinity is enabled."""
        affinity = task.pod.spec.affinity
        node_affinity = affinity.node_affinity if affinity is not None and self._node_affinity else None
        return None if node_affinity is None else node_affinity.required

    def _tolerations(self, task: Task) -> Tolerations:
        known = self._tolerations_by_shape.get(task.shape)
        if known is None:
            known = self._tolerations_by_shape[task.shape] = Tolerations(task.pod.spec.tolerations)
        return known

    def _objection(self, task: Task, node: NodeInfo) -> Exclusion | None:
        """Return the first rule by which the node's object excludes the task."""
        objection = self._objection_of_object(task, node)
        if objection is not None or self._required(task) is None:
            return objection
        mask = self._known_masks().get(task.shape)
        return None if (self._matches(task) if mask is None else mask)[node.row] else ("affinity", "")

    def _objection_of_object(self, task: Task, node: NodeInfo) -> Exclusion | None:
        """Return the same as `_objection`, without node affinity."""
        spec = task.pod.spec
        if node.object.spec.unschedulable and not self._tolerations(task).cover(UNSCHEDULABLE):
            return ("unschedulable", "")
        if self._taints and node.object.spec.taints:
            taint = self._tolerations(task).uncovered(node.object.spec.taints, HARD_TAINTS)
            if taint is not None:
                return ("taint", f"{taint.key}={taint.value}" if taint.value else taint.key)
        if spec.os is not None and node.labels.get(OS_LABEL, spec.os.name) != spec.os.name:
            return ("selector", f"{OS_LABEL}={spec.os.name}")
        if self._node_affinity:
            for key, value in (spec.node_selector or {}).items():
                if node.labels.get(key) != value:
                    return ("selector", f"{key}={value}")
        return None

    def _reaches_volumes(self, task: Task) -> Mask:
        mask: Mask = self._first_unreached(task)[1] < 0
        return mask

    def _first_unreached(self, task: Task) -> tuple[list[str], Rows]:
        known = self._unreached.get(task.shape)
        if known is None:
            self._spend(VOLUME * len(task.pod.spec.volumes or ()), FIELD)
            volumes, index = volumes_of(self._cluster, task), NodeIndex.of(self._nodes)
            first = np.full(len(self._nodes.rows), -1)
            for position, volume in enumerate(volumes):
                self._spend(steps_of_reach(volume, self._nodes), FIELD)
                for within in self._volume_rules:
                    first[(first < 0) & ~within(volume, index)] = position
            known = self._unreached[task.shape] = [volume.metadata.name for volume in volumes], first
        return known

    def _out_of_reach(self, task: Task, node: NodeInfo) -> str:
        """Return the name of the first volume that the node cannot reach; empty if it reaches all."""
        names, first = self._first_unreached(task)
        return names[first[node.row]] if first[node.row] >= 0 else ""

    # ------------------------------------------------------------------------------------------- the pods on the nodes

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
        constraining = [mask for mask in masks if mask is not None]
        return np.logical_and.reduce(constraining) if constraining else None

    def node_rule(self, task: Task, node: NodeInfo) -> Exclusion | None:
        return self._objection(task, node) or next(self._objections_of_neighbours(task, node), None)

    def _objections_of_neighbours(self, task: Task, node: NodeInfo) -> Iterator[Exclusion]:
        """Yield the rules by which volumes or the node's pods exclude the node, in the order of the checks."""
        if self._volume_rules and task.pod.spec.volumes and (volume := self._out_of_reach(task, node)):
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
        if self._spread_on and (key := self._spread.violated(task, node)):
            yield ("spread", key)
        if self._limits_on and (driver := self._attachments.exhausted_driver(task, node)):
            yield ("attachments", driver)
