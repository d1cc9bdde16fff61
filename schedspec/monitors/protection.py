"""Monitor: no protected pod is evicted. A label, an annotation, its queue or the plugin conformance protects a pod."""

from __future__ import annotations

from collections.abc import Iterator

from ..api.kinds import Kind
from .amounts import Object
from .gangs import SWITCHES
from .ledger import Ledger, Violation
from .rules import Rules

NAME = "protection"
PREEMPTABLE = "volcano.sh/preemptable"
SYSTEM_CLASSES = ("system-cluster-critical", "system-node-critical")


def judge(ledger: Ledger, rules: Rules) -> Iterator[Violation]:
    for act in ledger.evictions():
        reason = protection_of(act.pod, act.action, rules)
        if not reason and act.action == "reclaim" and (queue := ledger.queue_of(act.position, act.pod)):
            versions = ledger.lately(act.position, Kind.QUEUE, queue)
            if versions and all(_is_closed_to_reclaim(version) for version in versions):
                reason = closed(queue)
        if reason:
            yield act.violation(NAME, f"evicted although {reason}")


def protection_of(pod: Object, action: str, rules: Rules) -> str:
    """Return why the pod's own fields protect it from an eviction; empty if they do not."""
    metadata = pod["metadata"]
    value = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}.get(PREEMPTABLE, "true")
    if str(value).lower() not in ("true", "1", "t"):
        return f"it says {PREEMPTABLE}: {value}"
    is_system = metadata.get("namespace") == "kube-system" or pod["spec"].get("priorityClassName") in SYSTEM_CLASSES
    is_judged = is_system and rules.is_enabled("conformance", SWITCHES.get(action, "enableReclaimable"))
    return "it is a system pod" if is_judged else ""


def closed(queue: str) -> str:
    """Return why the pods of a queue that is not reclaimable are protected from reclaim."""
    return f"queue {queue} is not reclaimable"


def _is_closed_to_reclaim(queue: Object) -> bool:
    return (queue.get("spec") or {}).get("reclaimable") is False
