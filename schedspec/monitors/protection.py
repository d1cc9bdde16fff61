"""Monitor: no protected pod is evicted. A label, an annotation, its queue or the plugin conformance protects a pod."""

from __future__ import annotations

from .amounts import Object
from .ledger import SWITCHES, Monitor
from .lives import Eviction, Pod
from .rules import Rules

PREEMPTABLE = "volcano.sh/preemptable"
SYSTEM_CLASSES = ("system-cluster-critical", "system-node-critical")


class ProtectionMonitor(Monitor):
    """Judges each eviction by the fields of the pod and of its queue."""

    NAME = "protection"

    def on_evicted(self, pod: Pod, eviction: Eviction) -> None:
        reason = protection_of(self.ledger.shown(pod.source), eviction.action, self.rules)
        if not reason and eviction.action == "reclaim":
            specs = self.ledger.lately(pod.job.queue)
            if specs and not any(spec.is_reclaimable for spec in specs):
                reason = f"queue {pod.job.queue} is not reclaimable"
        if reason:
            self.find(f"evicted although {reason}", pod, eviction)


def protection_of(pod: Object, action: str, rules: Rules) -> str:
    """Return why the pod's own fields protect it from an eviction; empty if they do not."""
    metadata = pod["metadata"]
    value = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}.get(PREEMPTABLE, "true")
    if str(value).lower() not in ("true", "1", "t"):
        return f"it says {PREEMPTABLE}: {value}"
    is_system = metadata.get("namespace") == "kube-system" or pod["spec"].get("priorityClassName") in SYSTEM_CLASSES
    is_judged = is_system and rules.is_enabled("conformance", SWITCHES.get(action, "enableReclaimable"))
    return "it is a system pod" if is_judged else ""
