"""Bound how long an admitted job reserves room for pods that do not exist yet.

An admitted job reserves its `minResources` before its pods exist, so that the pods find room once they are created. A
PodGroup costs a tenant only 300 bytes, so such a reservation lapses: if the pods do not exist within `GRACE` seconds,
the job reserves only what its existing pods request. (Admission bounds the size of the reservation.)

The time at which a reservation lapses depends on the times of cycles alone. A cycle's decisions contain it
(`scheduler.backlog.entries.Memory`), and it is an input of the next cycle, so that a replay decides the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..model import resources
from ..model.job import Job
from ..model.resources import Resource
from ..model.task import Task, TaskStatus

GRACE = 30.0
"""Seconds that a reservation lasts without pods."""
LAPSED = 0.0
"""Noted in place of the time once the reservation has lapsed."""


class Reservations:
    """The reservations of one cycle that are not covered by pods.

    Args:
        uncovered: The jobs that may have a reservation and whose pods request less.
        known: Job → when its reservation lapses (or `LAPSED`), as the last cycle noted it.
        now: The time of the cycle, in seconds since the epoch.
    """

    def __init__(self, uncovered: Iterable[Job], known: Mapping[str, float], now: float) -> None:
        self.lapses: dict[str, float] = {}
        """The same as `known`, for the next cycle."""
        for job in uncovered:
            at = known.get(job.key, now + GRACE)
            self.lapses[job.key] = at if at > now else LAPSED

    def is_uncovered(self, job: Job) -> bool:
        """Whether the pods of the job request less than it reserves."""
        return job.key in self.lapses

    def has_lapsed(self, job: Job) -> bool:
        """Whether the job's reservation has lapsed, so that the job reserves only what its pods request."""
        return self.lapses.get(job.key) == LAPSED

    @property
    def next_lapse(self) -> float | None:
        """When the next reservation lapses; None if none does."""
        return min((at for at in self.lapses.values() if at != LAPSED), default=None)


def requested(job: Job, measure: Callable[[Task], Mapping[str, int]]) -> Resource:
    """Return the sum of `measure` over the waiting pods of a job."""
    return resources.total_of(measure(task) for task in job.by_status.get(TaskStatus.PENDING, {}).values())
