"""conformance: never evict pods that keep the cluster itself running (semantics: Volcano's `plugins/conformance`)."""

from __future__ import annotations

from collections.abc import Sequence

from ..framework.plugin import Plugin
from ..model.task import Task
from ..policy.hooks import PreemptableByUnit, PreemptUnit, ReclaimableByUnit, ReclaimUnit
from ..reasons import Protected, ProtectedBy, Protection

CRITICAL_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
SYSTEM_NAMESPACE = "kube-system"


class Conformance(Plugin, ReclaimableByUnit, PreemptableByUnit, ReclaimUnit, PreemptUnit):
    """Protect critical pods."""

    name = "conformance"
    judges_equals_alike = True
    judges_priorities_alike = True
    lasting = (Protected,)

    def reclaim_unit(self, preemptor: Task, unit: Sequence[Task]) -> Protection | None:  # noqa: ARG002
        return Protected(ProtectedBy.SYSTEM) if any(map(_is_critical, unit)) else None

    preempt_unit = reclaim_unit


def _is_critical(task: Task) -> bool:
    return task.pod.spec.priority_class_name in CRITICAL_CLASSES or task.namespace == SYSTEM_NAMESPACE
