"""predicates: what of a pod's spec decides where it may run (semantics: kube-scheduler's filter plugins, as Volcano
wraps them).

The one rule: every constraint is one function that names the rule it applies, for one node or for all; what is said to
exclude a node is what did exclude it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..model.nodes import Mask, NodeInfo
from ..model.objects import PersistentVolume, Taint
from ..model.task import Task
from ..placement.attachments import AttachLimits
from ..placement.pod_affinity import PodAffinities
from ..placement.ports import HostPorts
from ..placement.selectors import node_selector_matches, untolerated
from ..placement.spread import Spread
from ..placement.volumes import outside_affinity, outside_zone, volumes_of

if TYPE_CHECKING:
    from ..framework.session import Register, Session
    from ..policy.model import PluginOption

Rule = tuple[str, str]
OS_LABEL = "kubernetes.io/os"
UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class Predicates:
    """The plugin. Arguments ``predicate.<Name>Enable: false`` turn single constraints off, as in Volcano."""

    name = "predicates"

    def __init__(self, option: PluginOption) -> None:
        def on(name: str) -> bool:
            return str(option.arguments.get(f"predicate.{name}Enable", "true")).lower() != "false"

        self._node_affinity, self._taints = on("NodeAffinity"), on("TaintToleration")
        self._ports_on, self._affinity_on, self._spread_on = on("NodePorts"), on("PodAffinity"), on("PodTopologySpread")
        self._reach = [
            outside for name, outside in (("VolumeBinding", outside_affinity), ("VolumeZone", outside_zone)) if on(name)
        ]
        self._limits_on = on("NodeVolumeLimits")

    def open(self, session: Session, register: Register) -> None:
        self._cluster, self._nodes = session.cluster, session.nodes
        self._ports = HostPorts(session.nodes)
        self._affinities = PodAffinities(session.cluster, session.placement.pods)
        self._spread = Spread(session.nodes, session.placement.pods)
        register("feasible", self._feasible)
        self._attachments = AttachLimits(session.cluster)
        if self._reach:
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
        volumes = volumes_of(self._cluster, task) if task.pod.spec.volumes else []
        if not volumes:
            return np.ones(len(self._nodes.rows), dtype=np.bool_)
        return np.fromiter((not self._out_of_reach(volumes, node) for node in self._nodes.rows), np.bool_)

    def _out_of_reach(self, volumes: list[PersistentVolume], node: NodeInfo) -> str:
        """The name of the first volume that the node does not reach; empty if it reaches all."""
        return next((v.metadata.name for v in volumes if any(outside(v, node) for outside in self._reach)), "")

    # ------------------------------------------------------------------------------------------- what runs on the nodes

    def _predicate(self, task: Task, future: bool) -> Mask | None:
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

    def _node_rule(self, task: Task, node: NodeInfo) -> Rule | None:
        return self._objection(task, node) or next(self._objections_of_neighbours(task, node), None)

    def _objections_of_neighbours(self, task: Task, node: NodeInfo) -> Iterator[Rule]:
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
