"""conformance: what keeps the cluster itself running is never a victim (semantics: Volcano's ``plugins/conformance``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scheduler.hooks import Vote
from scheduler.model.task import Task

if TYPE_CHECKING:
    from scheduler.policy import PluginOption
    from scheduler.session import Register, Session

CRITICAL_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
SYSTEM_NAMESPACE = "kube-system"


class Conformance:
    """The plugin."""

    name = "conformance"

    def __init__(self, option: PluginOption) -> None:
        self._option = option

    def open(self, session: Session, register: Register) -> None:
        register("reclaimable", _not_critical)
        register("preemptable", _not_critical)


def _not_critical(claimant: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
    return [
        task
        for task in candidates
        if task.pod.spec.priority_class_name not in CRITICAL_CLASSES and task.namespace != SYSTEM_NAMESPACE
    ], Vote.PERMIT
