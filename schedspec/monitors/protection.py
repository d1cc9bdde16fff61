"""Monitor: no protected pod is evicted. A label, an annotation, its queue or the plugin conformance protects a pod."""

from __future__ import annotations

from collections.abc import Iterator

from ..api.kinds import Kind
from .amounts import Object
from .gangs import SWITCHES
from .ledger import Act, Ledger, Violation
from .rules import Rules

NAME = "protection"
PREEMPTABLE = "volcano.sh/preemptable"
SYSTEM_CLASSES = ("system-cluster-critical", "system-node-critical")


def judge(ledger: Ledger, rules: Rules) -> Iterator[Violation]:
    for act in ledger.evictions():
        if reason := _protects(ledger, act, rules):
            yield act.violation(NAME, f"evicted although {reason}")


def _protects(ledger: Ledger, act: Act, rules: Rules) -> str:
    metadata = act.pod["metadata"]
    value = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}.get(PREEMPTABLE, "true")
    if str(value).lower() not in ("true", "1", "t"):
        return f"it says {PREEMPTABLE}: {value}"
    if act.action == "reclaim" and (queue := ledger.queue_of(act.position, act.pod)):
        versions = ledger.lately(act.position, Kind.QUEUE, queue)
        if versions and all(_is_closed_to_reclaim(version) for version in versions):
            return f"queue {queue} is not reclaimable"
    system = metadata.get("namespace") == "kube-system" or act.pod["spec"].get("priorityClassName") in SYSTEM_CLASSES
    if system and rules.is_enabled("conformance", SWITCHES.get(act.action, "enableReclaimable")):
        return "it is a system pod"
    return ""


def _is_closed_to_reclaim(queue: Object) -> bool:
    return (queue.get("spec") or {}).get("reclaimable") is False
