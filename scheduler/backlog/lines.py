"""Group equal waiting jobs into lines, of which only the first job is tried.

The first job of a line is served before the others. A change that does not help the first job helps no other job of the
line, so that only the first waits for changes. A job that becomes the first is due.

Jobs of all priorities share a line if no job may start where an equal one of higher priority may not. That is so if
priority decides nothing but the order of service, and also under preempt, if higher priorities are served first: such a
job may evict whatever one of lower priority may.
"""

from __future__ import annotations

import bisect
from enum import Enum

from ..model.job import Job

Place = tuple[int, float, str]
"""Rank, time of creation and key of a job: the order in which equal jobs are served."""


class LineRule(Enum):
    """Which waiting jobs share a line."""

    NONE = "none"
    ONE_PRIORITY = "one priority"
    """Equal jobs of equal priority."""
    BY_PRIORITY = "by priority"
    """Jobs that are equal but for their priority; higher priorities are served first."""
    BY_CREATION = "by creation"
    """Jobs that are equal but for their priority; priority does not matter."""

    @property
    def joins_priorities(self) -> bool:
        """Whether jobs of different priority share a line."""
        return self in (LineRule.BY_PRIORITY, LineRule.BY_CREATION)

    def line_of(self, job: Job) -> str:
        """Return the key of the line for this job; empty if the job waits alone."""
        if self.joins_priorities:
            return job.kind_of_any_priority
        return f"{job.kind}.{job.priority}" if job.kind and self is not LineRule.NONE else ""

    def rank_of(self, job: Job) -> int:
        """Return the place of the job's priority in the order of its line."""
        return -job.priority if self is LineRule.BY_PRIORITY else 0


class Lines:
    """The waiting jobs of each line, in order."""

    def __init__(self) -> None:
        self._places: dict[str, list[Place]] = {}

    def first(self, line: str) -> str:
        """Return the key of the first job of a line; empty if the line is empty."""
        places = self._places.get(line)
        return places[0][-1] if places else ""

    def join(self, line: str, place: Place) -> None:
        """Put a job into a line."""
        bisect.insort(self._places.setdefault(line, []), place)

    def leave(self, line: str, place: Place) -> None:
        """Remove a job from its line."""
        places = self._places[line]
        del places[bisect.bisect_left(places, place)]
        if not places:
            del self._places[line]

    def after(self, line: str, place: Place) -> str:
        """Return the key of the job behind a place; empty for the last one."""
        places = self._places.get(line, ())
        at = bisect.bisect_right(places, place)
        return places[at][-1] if at < len(places) else ""

    def followers(self, line: str) -> list[str]:
        """Return the keys of all jobs of a line but the first."""
        return [key for *_, key in self._places.get(line, ())[1:]]
