"""cdp: protect pods from eviction for a cooldown after their start (semantics: Volcano's `plugins/cdp`).

A pod carries its cooldown as the label or annotation `volcano.sh/cooldown-time`; the label counts if it has both.

The protection applies in every tier and to bound pods too; a gang with a protected member is not evicted as a whole.
The cooldown begins when the pod was bound or started, whichever is later. (In Volcano a lower tier may overrule the
protection, and the cooldown begins with the binding, so that an image pull uses it up.)
"""

from __future__ import annotations

from collections.abc import Sequence

from ..framework.plugin import Plugin
from ..framework.session import Session
from ..model import names
from ..model.task import Task, TaskStatus
from ..model.times import duration, seconds
from ..policy.hooks import EvictableByUnit, EvictUnit
from ..reasons import CoolingDown, Protection


class Cdp(Plugin, EvictableByUnit, EvictUnit):
    """Protect pods during their cooldown."""

    name = "cdp"

    def open(self, session: Session) -> None:
        self._session = session
        self._ends: dict[str, float] = {}

    def evict_unit(self, preemptor: Task, unit: Sequence[Task]) -> Protection | None:  # noqa: ARG002
        """Return the protection of the member whose cooldown ends last; None if all cooldowns have ended."""
        now = self._session.now
        end, pod = max((self._end_of(task), task.key) for task in unit)
        if end <= now:
            return None
        self._session.wake_at(end)
        return CoolingDown(pod, int(end - now + 0.999))

    def _end_of(self, task: Task) -> float:
        """Return when a pod's cooldown ends, in seconds since the epoch; 0 for a pod without a cooldown."""
        end = self._ends.get(task.uid)
        if end is None:
            meta = task.pod.metadata
            text = (meta.labels or {}).get(names.COOLDOWN, (meta.annotations or {}).get(names.COOLDOWN, ""))
            cooldown = (duration(text) or 0.0) if text else 0.0
            end = self._ends[task.uid] = _start_of(task) + cooldown if cooldown > 0 else 0.0
        return end


def _start_of(task: Task) -> float:
    """Return when a pod was bound or started, whichever is later, in seconds since the epoch; 0 if neither."""
    if not task.status & (TaskStatus.RUNNING | TaskStatus.BOUND | TaskStatus.BINDING):
        return 0.0
    bound = (c for c in task.pod.status.conditions or () if c.type == "PodScheduled" and c.status == "True")
    return max(task.started, *(seconds(condition.last_transition_time) for condition in bound), 0.0)
