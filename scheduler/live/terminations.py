"""Limit the time for which the capacity of a terminating pod counts as being freed.

A pod may take decades to terminate: its grace period may be that long, a finalizer may hold it, or its node may be
dead. A job that waits for this capacity would never start, although other pods could be evicted for the job.

1. Each terminating pod gets a timer that ends after the longest grace, counted from the request of its deletion.
2. If the pod still exists when the timer ends, the state gets an `Overdue` input: the pod still holds its capacity, but
   the capacity no longer counts as being freed. The next cycle chooses other victims.
3. With `force`, evictions also cut longer grace periods down to the longest, so that the kubelet ends the pod.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ..inputs import Overdue
from ..kube.clock import wall_time
from ..model.objects import Pod
from ..model.times import seconds

LONGEST_GRACE = 600
"""Default of `--longest-grace`, in seconds."""
SLACK = 5.0
"""Seconds after the grace period in which a kubelet ends a pod and reports the end."""


@dataclass(frozen=True, slots=True)
class GraceLimit:
    """The longest grace of an eviction in seconds, and whether longer grace periods of pods are cut to it."""

    seconds: int = LONGEST_GRACE
    force: bool = False

    def of_eviction(self, pod: Pod) -> int | None:
        """Return the grace period in seconds with which to delete a victim; None keeps the pod's own grace period."""
        own = pod.spec.termination_grace_period_seconds
        return self.seconds if self.force and own is not None and own > self.seconds else None


class Terminations:
    """The timers of terminating pods, by uid. `put` receives an input for each timer that ends."""

    def __init__(self, limit: GraceLimit, put: Callable[[Overdue], None]) -> None:
        self._limit = limit
        self._put = put
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def __len__(self) -> int:
        """Return the number of timers; a timer that has ended counts until its pod is gone."""
        return sum(not timer.cancelled() for timer in self._timers.values())

    def seen(self, pod: Pod) -> None:
        """Start the timer of a pod if the pod is terminating and has no timer."""
        meta = pod.metadata
        if meta.deletion_timestamp is None or meta.uid in self._timers:
            return
        longest = self._limit.seconds
        remaining = min(max(longest - (wall_time() - _requested_at(pod)), 0.0), longest) + SLACK
        overdue = Overdue(meta.key, meta.uid, longest)
        self._timers[meta.uid] = asyncio.get_running_loop().call_later(remaining, self._put, overdue)

    def gone(self, uid: str) -> None:
        """Stop the timer of a pod that no longer exists."""
        if (timer := self._timers.pop(uid, None)) is not None:
            timer.cancel()

    def close(self) -> None:
        """Stop all timers."""
        for uid in list(self._timers):
            self.gone(uid)


def _requested_at(pod: Pod) -> float:
    """Return when the deletion of a pod was requested. Its deletion timestamp is the end of its grace period."""
    meta = pod.metadata
    try:
        return seconds(meta.deletion_timestamp) - (meta.deletion_grace_period_seconds or 0)
    except ValueError:  # a year out of range
        return wall_time()
