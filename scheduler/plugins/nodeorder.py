"""nodeorder: the scores of kube-scheduler, each 0 to 100, weighted and added.

Semantics: Volcano's `plugins/nodeorder`. Scores here are exact where kube-scheduler truncates to integers, and are
normalised over all nodes on which the pod may run, full or not.

A score that does not change within a cycle is computed once for all nodes; a score that depends on usage is a function
of arrays, so that a run of equal tasks is scored at once.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..framework.plugin import Plugin
from ..framework.session import Session
from ..model.nodes import Amounts, Mask, Nodes, Vector
from ..model.objects.topology import Taint
from ..model.resources import CPU, MEMORY
from ..model.task import Task
from ..placement.label_column import VALUES_A_STEP
from ..placement.node_index import NODE_AFFINITY, TOLERATIONS, NodeIndex, Tolerations, steps_of_term
from ..placement.pod_index import Spend
from ..placement.spread import Spread
from ..policy.hooks import PodScore, Score, UsageScore
from ..policy.model import PluginOption
from ..policy.schema import INT, Argument

SCORES = {
    "leastrequested": (1, "nodes with more cpu and memory left"),
    "mostrequested": (0, "nodes with less cpu and memory left"),
    "balancedresource": (1, "nodes whose cpu and memory are used alike"),
    "nodeaffinity": (2, "nodes that the pod's preferred node affinity names"),
    "podaffinity": (2, "nodes near pods that the preferred pod affinity names"),
    "tainttoleration": (3, "nodes without taints PreferNoSchedule that the pod does not tolerate"),
    "imagelocality": (1, "nodes that have the pod's images"),
    "podtopologyspread": (2, "domains with fewer pods of a kind, where the pod's spread is a preference"),
}
"""The default weight of each score, and what it prefers."""
MIB = 1024.0 * 1024.0
PREFERENCE = 6
"""The steps to add the weight of one preferred term."""
IMAGE_MIN, IMAGE_MAX = 23 * MIB, 1000 * MIB
"""Bounds of the image score in bytes: images below the minimum score 0; the maximum applies to each container."""


class NodeOrder(Plugin, Score, UsageScore, PodScore):
    """Score nodes as kube-scheduler does."""

    name = "nodeorder"
    arguments: ClassVar = {
        **{
            f"{name}.weight": Argument(INT, 0, default=weight, means=f"prefers {means}")
            for name, (weight, means) in SCORES.items()
        },
        **{
            f"{name}.weight": Argument(INT, 0, ignored="Volcano has dropped this score")
            for name in ("selectorspread", "volumebinding")
        },
    }

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        self._weights: dict[str, int] = {name: self.argument(f"{name}.weight") for name in SCORES}

    def open(self, session: Session) -> None:
        self._nodes, self._spend = session.nodes, session.work.spend
        self._affinities = session.placement.affinities
        self._spread = Spread(session.nodes, session.placement.pods)

    # ---------------------------------------------------------------------------------------------------------- usage

    def usage_score(self, _task: Task, used: Amounts, allocatable: Amounts) -> Vector:
        columns = [self._nodes.dimensions[name] for name in (CPU, MEMORY) if name in self._nodes.dimensions]
        total = np.zeros(used.shape[:-1])
        if not columns:
            return total
        fractions = _fractions(used, allocatable, columns)
        weights = self._weights
        if weight := weights["leastrequested"]:
            total += weight * 100.0 / len(fractions) * sum(1.0 - fraction for fraction in fractions)
        if weight := weights["mostrequested"]:
            total += weight * 100.0 / len(fractions) * sum(fractions)
        if (weight := weights["balancedresource"]) and len(fractions) > 1:
            total += weight * 100.0 * (1.0 - np.abs(fractions[0] - fractions[1]) / 2.0)
        return total

    # ---------------------------------------------------------------------------------------------- the nodes' objects

    def score(self, task: Task, feasible: Mask) -> Vector | None:
        weights = self._weights
        total: Vector | None = None
        for name, score in (
            ("nodeaffinity", _node_affinity),
            ("tainttoleration", _taint_toleration),
            ("imagelocality", _image_locality),
        ):
            if weights[name]:
                values = score(self._nodes, task, feasible, self._spend)
                total = _added(total, values, weights[name])
        return total

    # ------------------------------------------------------------------------------------------- the pods on the nodes

    def pod_score(self, task: Task, feasible: Mask) -> Vector | None:
        total: Vector | None = None
        if (weight := self._weights["podaffinity"]) and self._affinities.concerns(task):
            total = _added(total, self._affinities.score(task, feasible), weight)
        if (weight := self._weights["podtopologyspread"]) and task.pod.spec.topology_spread_constraints:
            total = _added(total, self._spread.score(task, feasible), weight)
        return total


def _added(total: Vector | None, part: Vector | None, weight: float) -> Vector | None:
    if part is None:
        return total
    return weight * part if total is None else total + weight * part


def _fractions(used: Amounts, allocatable: Amounts, columns: list[int]) -> list[Vector]:
    """Return the used fraction of each column, at most 1; 1 where there is no capacity."""
    first, last = columns[0], columns[-1]
    if last - first == len(columns) - 1:  # the usual case: one division, and views instead of copies
        parts = _fraction(used[..., first : last + 1], allocatable[..., first : last + 1])
        return [parts[..., i] for i in range(len(columns))]
    return [_fraction(used[..., column], allocatable[..., column]) for column in columns]


def _fraction(used: Amounts, allocatable: Amounts) -> Vector:
    has_capacity = allocatable > 0
    if has_capacity.all():  # the usual case, at half the cost
        part: Vector = used / allocatable
    else:
        part = np.divide(used, allocatable, out=np.ones(used.shape), where=has_capacity)
    return np.minimum(part, 1.0, out=part)


def _node_affinity(nodes: Nodes, task: Task, feasible: Mask, spend: Spend) -> Vector | None:
    affinity = task.pod.spec.affinity
    preferred = affinity and affinity.node_affinity and affinity.node_affinity.preferred
    if not preferred:
        return None
    spend(sum(PREFERENCE + steps_of_term(item.preference, nodes) for item in preferred), NODE_AFFINITY)
    index, weights = NodeIndex.of(nodes), np.zeros(len(nodes.rows))
    for item in preferred:
        weights += item.weight * index.matching(item.preference)
    return _normalised(np.where(feasible, weights, 0.0))


def _taint_toleration(nodes: Nodes, task: Task, feasible: Mask, spend: Spend) -> Vector | None:
    by_node = nodes.kept.once("prefer-no-schedule", lambda: _taints_to_avoid(nodes))
    if not by_node:
        return None
    spend(len(task.pod.spec.tolerations or ()) // VALUES_A_STEP, TOLERATIONS)
    tolerations = Tolerations(task.pod.spec.tolerations)
    untolerated = np.array(
        [
            float(sum(not tolerations.cover(taint) for taint in taints)) if allowed else 0.0
            for taints, allowed in zip(by_node, feasible, strict=True)
        ]
    )
    return 100.0 - _normalised(untolerated)


def _taints_to_avoid(nodes: Nodes) -> list[list[Taint]]:
    """Return the taints `PreferNoSchedule` of each node; an empty list if no node has one."""
    by_node = [[t for t in node.object.spec.taints or () if t.effect == "PreferNoSchedule"] for node in nodes.rows]
    return by_node if any(by_node) else []


def _image_locality(nodes: Nodes, task: Task, _feasible: Mask, spend: Spend) -> Vector | None:
    images = nodes.kept.once("images", lambda: _images(nodes))
    containers = task.pod.spec.containers
    spend(2 * len(containers) if images else 0, "spec.containers")
    total: Any = None
    for container in containers:
        sizes = images.get(_tagged(container.image))
        if sizes is not None:
            spread = np.count_nonzero(sizes) / max(len(nodes.rows), 1)
            total = sizes * spread if total is None else total + sizes * spread
    if total is None:
        return None
    limit = IMAGE_MAX * len(containers)
    score: Vector = 100.0 * (np.clip(total, IMAGE_MIN, limit) - IMAGE_MIN) / (limit - IMAGE_MIN)
    return score


def _tagged(image: str) -> str:
    """Return the image's name as nodes list it: with a tag."""
    return image if ":" in image.rsplit("/", 1)[-1] else f"{image}:latest"


def _images(nodes: Nodes) -> dict[str, Vector]:
    """Map each image name to its size on each node; 0 where the node does not have it."""
    found: dict[str, Vector] = {}
    for node in nodes.rows:
        for image in node.object.status.images or ():
            for name in image.names or ():
                found.setdefault(name, np.zeros(len(nodes.rows)))[node.row] = image.size_bytes
    return found


def _normalised(values: Vector) -> Vector:
    """Return the values scaled so that the largest is 100."""
    top = values.max(initial=0.0)
    return values * (100.0 / top) if top > 0 else values
