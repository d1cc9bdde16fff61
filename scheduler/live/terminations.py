"""Bound the time that a terminating pod's room counts as being freed.

A pod may take decades to terminate: its grace period may be that long, a finalizer may hold it, or its node may be
dead. A job that waits for such a room would never start, though others could be evicted for it.

1. Each terminating pod gets a timer for the rest of the longest grace, counted from the request of its deletion.
2. Where the pod still exists when the timer ends, the state gets an `Overdue` input: the pod holds its room as before,
   and the room no longer counts as being freed. The next cycle chooses other victims.
3. With `force`, evictions also cut longer grace periods down to the longest, so that the kubelet ends the pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ..kube.clock import wall_time
from ..model.objects import Pod
from ..model.times import seconds
from ..recording.events import Overdue

LONGEST_GRACE = 600
"""Seconds, unless the option says otherwise."""
SLACK = 5.0
"""Seconds beyond the grace that a kubelet needs to end a pod and to report it."""


@dataclass(frozen=True, slots=True)
class GraceLimit:
    """The longest grace of an eviction in seconds, and whether its end is forced."""

    seconds: int = LONGEST_GRACE
    force: bool = False

    def of_eviction(self, pod: Pod) -> int | None:
        """Return the grace period to delete a victim with; None leaves the pod's own."""
        own = pod.spec.termination_grace_period_seconds
        return self.seconds if self.force and own is not None and own > self.seconds else None


class Terminations:
    """The timers of terminating pods, by uid. `put` receives the inputs."""

    def __init__(self, limit: GraceLimit, put: Callable[[Overdue], None]) -> None:
        self._limit = limit
        self._put = put
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        """Return how many timers run."""
        return sum(not timer.cancelled() for timer in self._timers.values())

    def seen(self, pod: Pod) -> None:
        """Start the timer of a terminating pod that has none yet."""
        meta = pod.metadata
        if meta.deletion_timestamp is None or meta.uid in self._timers:
            return
        longest = self._limit.seconds
        rest = min(max(longest - (wall_time() - _requested(pod)), 0.0), longest) + SLACK
        overdue = Overdue(meta.key, meta.uid, longest)
        self._timers[meta.uid] = asyncio.get_running_loop().call_later(rest, self._put, overdue)

    def gone(self, uid: str) -> None:
        """Stop the timer of a pod that no longer exists."""
        if (timer := self._timers.pop(uid, None)) is not None:
            timer.cancel()

    def close(self) -> None:
        """Stop all timers."""
        for uid in list(self._timers):
            self.gone(uid)


def _requested(pod: Pod) -> float:
    """Return when the deletion of a pod was requested: its deletion timestamp is the end of its grace period."""
    meta = pod.metadata
    try:
        return seconds(meta.deletion_timestamp) - (meta.deletion_grace_period_seconds or 0)
    except ValueError:  # a year out of range
        return wall_time()
