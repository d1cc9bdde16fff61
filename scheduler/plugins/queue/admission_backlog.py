"""What admitted jobs that wait have reserved, by who is served after whom.

The one rule: jobs are ranked once, as they stand when first asked; admission changes nothing that their order follows.
"""

from __future__ import annotations

import bisect
from typing import Any

from ...framework.session import Session
from ...model import resources
from ...model.job import Job
from ...model.resources import Resource


class WaitingLine:
    """The admitted jobs of each queue that wait for room, and what each has reserved."""

    def __init__(self, session: Session) -> None:
        self._key_of = session.hooks.job_key
        self._waiting: dict[str, list[tuple[Job, Resource]]] = {}
        self._ranked: dict[str, tuple[list[Any], list[Resource]]] = {}

    def add(self, job: Job, reserved: Resource) -> None:
        """Note what a waiting job has reserved. All are added before the first question."""
        self._waiting.setdefault(job.queue, []).append((job, reserved))

    def behind(self, job: Job) -> Resource:
        """The sum of what jobs of the same queue have reserved that would be served after ``job``."""
        if job.queue not in self._waiting:
            return {}
        if job.queue not in self._ranked:
            ranked = sorted(
                ((self._key_of(other), reserved) for other, reserved in self._waiting[job.queue]), key=lambda r: r[0]
            )
            sums: list[Resource] = [{}]
            for _, reserved in reversed(ranked):
                sums.append(resources.plus(sums[-1], reserved))
            self._ranked[job.queue] = ([key for key, _ in ranked], sums[::-1])
        keys, behind = self._ranked[job.queue]
        return behind[bisect.bisect_right(keys, self._key_of(job))]
