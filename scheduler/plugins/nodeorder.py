"""nodeorder: the scores of kube-scheduler, each 0 to 100, weighted and added (semantics: Volcano's
``plugins/nodeorder``).

The one rule: a score that nothing in a cycle changes is computed once for all nodes; one that follows from what is
used is a function of arrays, so that a run of equal tasks is scored at once. Ours is exact where kube-scheduler cuts
to whole numbers, and normalises over the nodes that the pod may go to, full or not.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ..framework.plugin import Plugin
from ..framework.session import Session
from ..model.nodes import Amounts, Mask, Nodes, Vector
from ..model.resources import CPU, MEMORY
from ..model.task import Task
from ..placement.pod_affinity import PodAffinities
from ..placement.selectors import term_matches, tolerates
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
"""Default weight of each score, and what it prefers."""
MIB = 1024.0 * 1024.0
IMAGE_MIN, IMAGE_MAX = 23 * MIB, 1000 * MIB
"""An image smaller than the first is not worth a detour, one larger than the second counts no more (per container)."""


class NodeOrder(Plugin, Score, UsageScore, PodScore):
    """See the module."""

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
        self._nodes = session.nodes
        pods = session.placement.pods
        self._affinities, self._spread = PodAffinities(session.cluster, pods), Spread(session.nodes, pods)

    # --------------------------------------------------------------------------------------------------- what is used

    def usage_score(self, _task: Task, used: Amounts, allocatable: Amounts) -> Vector:
        columns = [self._nodes.dimensions[name] for name in (CPU, MEMORY) if name in self._nodes.dimensions]
        fractions = [_fraction(used[..., column], allocatable[..., column]) for column in columns]
        total = np.zeros(used.shape[:-1])
        weights = self._weights
        if not fractions:
            return total
        if weight := weights["leastrequested"]:
            total += weight * 100.0 / len(fractions) * sum(1.0 - fraction for fraction in fractions)
        if weight := weights["mostrequested"]:
            total += weight * 100.0 / len(fractions) * sum(fractions)
        if (weight := weights["balancedresource"]) and len(fractions) > 1:
            total += weight * 100.0 * (1.0 - np.abs(fractions[0] - fractions[1]) / 2.0)
        return total

    # -------------------------------------------------------------------------------------- what the nodes' objects say

    def score(self, task: Task, feasible: Mask) -> Vector | None:
        weights = self._weights
        total: Vector | None = None
        for name, score in (
            ("nodeaffinity", _node_affinity),
            ("tainttoleration", _taint_toleration),
            ("imagelocality", _image_locality),
        ):
            if weights[name]:
                values = score(self._nodes, task, feasible)
                total = _added(total, values, weights[name])
        return total

    # ------------------------------------------------------------------------------------------- what runs on the nodes

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


def _fraction(used: Amounts, allocatable: Amounts) -> Vector:
    """The part that is used, at most all; of nothing, all."""
    some = allocatable > 0
    if some.all():  # nearly always, and half as dear
        part: Vector = used / allocatable
    else:
        part = np.divide(used, allocatable, out=np.ones(used.shape), where=some)
    return np.minimum(part, 1.0, out=part)


def _node_affinity(nodes: Nodes, task: Task, feasible: Mask) -> Vector | None:
    affinity = task.pod.spec.affinity
    preferred = affinity and affinity.node_affinity and affinity.node_affinity.preferred
    if not preferred:
        return None
    weights = [
        float(sum(item.weight for item in preferred if term_matches(item.preference, node)))
        if feasible[node.row]
        else 0.0
        for node in nodes.rows
    ]
    return _normalised(np.array(weights))


def _taint_toleration(nodes: Nodes, task: Task, feasible: Mask) -> Vector | None:
    counts = nodes.kept.get("prefer-no-schedule")
    if counts is None:
        counts = nodes.kept["prefer-no-schedule"] = [
            [t for t in node.object.spec.taints or () if t.effect == "PreferNoSchedule"] for node in nodes.rows
        ]
        if not any(counts):
            counts = nodes.kept["prefer-no-schedule"] = ()
    if not counts:
        return None
    tolerations = task.pod.spec.tolerations or ()
    disliked = np.array(
        [
            float(sum(not any(tolerates(t, taint) for t in tolerations) for taint in taints)) if allowed else 0.0
            for taints, allowed in zip(counts, feasible, strict=True)
        ]
    )
    return 100.0 - _normalised(disliked)


def _image_locality(nodes: Nodes, task: Task, _feasible: Mask) -> Vector | None:
    images = _images(nodes)
    containers = task.pod.spec.containers
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
    """The image's name as nodes list it: with a tag."""
    return image if ":" in image.rsplit("/", 1)[-1] else f"{image}:latest"


def _images(nodes: Nodes) -> dict[str, Vector]:
    """Image name → its size on each node, 0 where it is not."""
    known: dict[str, Vector] | None = nodes.kept.get("images")
    if known is None:
        known = nodes.kept["images"] = {}
        for node in nodes.rows:
            for image in node.object.status.images or ():
                for name in image.names or ():
                    known.setdefault(name, np.zeros(len(nodes.rows)))[node.row] = image.size_bytes
    return known


def _normalised(values: Vector) -> Vector:
    """Scaled so that the largest is 100."""
    top = values.max(initial=0.0)
    return values * (100.0 / top) if top > 0 else values
