"""What counts as an eviction, and as the reason why something waits: the conditions by which a scheduler says so.

A bind needs none (a pod has a node), nor an admission (a PodGroup's phase). What an adapter's scheduler says in other
conditions than the usual ones is read when an object comes in, and kept beside what the cluster showed.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

READ: Final = "schedspec.dev/read"
"""The field of an object in a history in which what was read of it is kept, where the conditions are not the usual."""


class Mark(NamedTuple):
    """A condition of a pod or a PodGroup."""

    type: str
    status: str
    reason: str = ""
    """Empty: any."""

    def find(self, obj: dict[str, Any]) -> dict[str, Any] | None:
        """The condition of an object that bears this mark, or None."""
        for it in (obj.get("status") or {}).get("conditions") or ():
            if (it.get("type"), it.get("status")) == self[:2] and self.reason in ("", it.get("reason")):
                return dict(it)
        return None


class Marks(NamedTuple):
    """How one scheduler says what it did and why. The first mark that an object bears counts."""

    evicted: tuple[Mark, ...] = (Mark("DisruptionTarget", "True", "PreemptionByScheduler"),)
    """On a pod: it has to go."""
    waits: tuple[Mark, ...] = (
        Mark("PodScheduled", "False"),
        Mark("PodGroupScheduled", "False"),
        Mark("PodGroupInitiallyScheduled", "False"),
        Mark("Unschedulable", "True"),
    )
    """On a pod or PodGroup: it has no place; the message, or where there is none the reason, says why."""

    def eviction(self, obj: dict[str, Any]) -> dict[str, Any] | None:
        """The condition that marks a victim, or None."""
        return next((found for mark in self.evicted if (found := mark.find(obj)) is not None), None)

    def reason(self, obj: dict[str, Any]) -> str:
        """Why it waits, in the scheduler's words; empty before it has spoken."""
        for mark in self.waits:
            found = mark.find(obj)
            if found is not None:
                return str(found.get("message") or found.get("reason") or "")
        return ""

    def read(self, obj: dict[str, Any]) -> None:
        """Keep beside an object what these marks say of it, unless they are the usual ones."""
        if self != USUAL:
            obj[READ] = {"evicted": self.eviction(obj), "reason": self.reason(obj)}


USUAL: Final = Marks()
"""Of Kubernetes' own scheduler, of Volcano's, and of ours."""
