"""conformance: what keeps the cluster itself running is never a victim (semantics: Volcano's
``plugins/conformance``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..model.task import Task
from ..policy.hooks import by_unit
from ..reasons import Protected, Protection

if TYPE_CHECKING:
    from ..framework.session import Register, Session
    from ..policy.model import PluginOption

CRITICAL_CLASSES = frozenset({"system-cluster-critical", "system-node-critical"})
SYSTEM_NAMESPACE = "kube-system"


class Conformance:
    """The plugin."""

    name = "conformance"

    def __init__(self, _option: PluginOption) -> None:
        """No arguments."""

    def open(self, _session: Session, register: Register) -> None:
        register("reclaimable", by_unit)
        register("preemptable", by_unit)
        register("reclaim_unit", _of_the_system)
        register("preempt_unit", _of_the_system)


def _is_critical(task: Task) -> bool:
    return task.pod.spec.priority_class_name in CRITICAL_CLASSES or task.namespace == SYSTEM_NAMESPACE


def _of_the_system(_preemptor: Task, unit: Sequence[Task]) -> Protection | None:
    return Protected("system") if any(map(_is_critical, unit)) else None
