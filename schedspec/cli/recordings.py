"""Options that the commands about a recording of a cluster share: its place, and a span of its time."""

from __future__ import annotations

from pathlib import Path

import click

from ..virtual.state import StateError
from ..virtual.state.over_time import span_of, time_in

FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


def span(folder: Path, since: str | None, until: str | None, options: tuple[str, str]) -> tuple[float, float]:
    """Return the times that two options name, by default those at which the recording begins and ends.

    Raises:
        StateError: a text is no time, or the recording has nothing between these times.
    """
    begins, ends = span_of(folder)
    first = begins if since is None else time_in(folder, since)
    last = ends if until is None else time_in(folder, until)
    if first > last:
        named = f"{options[0]} {since or 'its beginning'} {options[1]} {until or 'its end'}"
        raise StateError(named, "ends before it begins", "name an earlier time first")
    if last < begins or first > ends:
        raise StateError(str(folder), "has nothing between these times", "leave the times out to read all of it")
    return first, last
