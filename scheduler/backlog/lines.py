"""Group equal waiting jobs into lines, of which only the first job is tried.

Of equal jobs, the first of the line is refused before all others. What does not help the first job helps no other job
of the line, so that only the first waits for changes. A job that becomes the first is due.
"""

from __future__ import annotations

import bisect

Place = tuple[float, str]
"""When a job was created, and its key: the order in which equal jobs are served."""


class Lines:
    """The waiting jobs of each line, in order."""

    def __init__(self) -> None:
        self._places: dict[str, list[Place]] = {}

    def first(self, line: str) -> str:
        """Return the key of the first job of a line; empty if the line is empty."""
        places = self._places.get(line)
        return places[0][1] if places else ""

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
        return places[at][1] if at < len(places) else ""

    def others(self, line: str) -> list[str]:
        """Return the keys of all jobs of a line but the first."""
        return [key for _, key in self._places.get(line, ())[1:]]

    def names(self) -> list[str]:
        """Return the lines with more than one job."""
        return [line for line, places in self._places.items() if len(places) > 1]
