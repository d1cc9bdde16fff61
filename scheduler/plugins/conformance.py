"""conformance: never evict pods that keep the cluster itself running (semantics: Volcano's `plugins/conformance`)."""

from __future__ import annotations

from collections.abc import Sequence

from ..framework.plugin import Covers, Plugin
from ..model.task import Task
from ..policy.hooks import EvictableByUnit, EvictUnit
from ..reasons import Protected, ProtectedBy, Protection

CRITICAL_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
SYSTEM_NAMESPACE = "kube-system"


class Conformance(Plugin, EvictableByUnit, EvictUnit):
    """Protect critical pods."""

    name = "conformance"
    refusal_covers = Covers.LOWER_PRIORITIES
    lasting = (Protected,)

    def evict_unit(self, preemptor: Task, unit: Sequence[Task]) -> Protection | None:  # noqa: ARG002
        for task in unit:
            if task.pod.spec.priority_class_name in CRITICAL_CLASSES or task.namespace == SYSTEM_NAMESPACE:
                return Protected(ProtectedBy.SYSTEM)
        return None
