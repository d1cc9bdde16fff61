"""Conditions by which a scheduler marks evictions and publishes why something waits.

Neither a bind (the pod has a node) nor an admission (the PodGroup has a phase) needs a mark. If an adapter's scheduler
uses other conditions than the usual ones, they are read when an object arrives and stored in a field of the object.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

READ: Final = "schedspec.dev/read"
"""Field of an object in a history that stores the meaning of its unusual conditions."""


class Mark(NamedTuple):
    """A condition of a pod or a PodGroup."""

    type: str
    status: str
    reason: str = ""
    """Reason of the condition; empty for any."""

    def find(self, obj: dict[str, Any]) -> dict[str, Any] | None:
        """Return the object's condition with this mark, or None."""
        for cond in (obj.get("status") or {}).get("conditions") or ():
            if (cond.get("type"), cond.get("status")) == self[:2] and self.reason in ("", cond.get("reason")):
                return dict(cond)
        return None


class Marks(NamedTuple):
    """The marks of one scheduler. The first mark that an object has counts."""

    evicted: tuple[Mark, ...] = (Mark("DisruptionTarget", "True", "PreemptionByScheduler"),)
    """Mark of a pod that is evicted."""
    waits: tuple[Mark, ...] = (
        Mark("PodScheduled", "False"),
        Mark("PodGroupScheduled", "False"),
        Mark("PodGroupInitiallyScheduled", "False"),
        Mark("Unschedulable", "True"),
    )
    """Marks of a pod or PodGroup that waits.

    The reason is the condition's message, or its reason if the message is empty.
    """

    unit_evicted: Mark | None = None
    """Mark of an evicted unit, for a scheduler that marks the unit and lets another controller delete its pods."""

    def eviction(self, obj: dict[str, Any]) -> dict[str, Any] | None:
        """Return the condition that marks a victim, or None."""
        return next((found for mark in self.evicted if (found := mark.find(obj)) is not None), None)

    def reason(self, obj: dict[str, Any]) -> str:
        """Return the reason why the object waits; empty before one is published.

        A Workload of Kueue that has its quota waits for its admission checks.
        """
        for mark in self.waits:
            found = mark.find(obj)
            if found is not None:
                return str(found.get("message") or found.get("reason") or "")
        checks = (obj.get("status") or {}).get("admissionChecks") or ()
        return ", ".join(f"admission check {it['name']} is {it['state']}" for it in checks if it["state"] != "Ready")

    def read(self, obj: dict[str, Any], unit: dict[str, Any] | None = None) -> None:
        """Store the meaning of these marks on the object, unless they are the usual ones.

        Args:
            obj: The object that arrived.
            unit: For a pod that is being deleted, the unit that the scheduler evicts and that the pod belongs to.
        """
        if self != USUAL:
            evicted = self.eviction(obj) or (self.unit_evicted.find(unit) if self.unit_evicted and unit else None)
            obj[READ] = {"evicted": evicted, "reason": self.reason(obj)}


USUAL: Final = Marks()
"""Marks of kube-scheduler, of Volcano and of our scheduler."""
