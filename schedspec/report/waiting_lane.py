"""Draw the lane of waiting pods: similar pods share a bar, with their reason below it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from .axis import seconds
from .canvas import CHARACTER, Canvas, fitting
from .lives import Life
from .picture import GAP, GUTTER, MARGIN, ROW, WIDTH, Bar, Lane, Text
from .slots import place

_WAITING_ROWS = 12
_LINE = int((WIDTH - MARGIN - GUTTER - 8) / CHARACTER)
"""The maximum number of characters of a reason in one line."""
_LONG = 0.2
"""Seconds of waiting above which the picture shows the reason."""


@dataclass(slots=True)
class _Wait:
    """Similar pods that wait: their bar, the name inside or beside it, and the lines of their reason."""

    lives: list[Life]
    x: float
    until: float
    left: float
    right: float
    name: str
    side: int
    """The place of the name: 0 inside of the bar, 1 right of the bar, -1 left of the bar."""
    reason: list[str]


def draw_waiting(canvas: Canvas) -> None:
    """Draw the pods without a node. If there are many, draw counts by queue, and only the longest waits."""
    if canvas.picture.shared:
        _draw_counts(canvas)
    found = [_wait_of(canvas, lives) for lives in _similar(canvas) if not canvas.picture.shared or lives[0].reasons]
    if not found:
        return
    longest = sorted(found, key=lambda wait: wait.x - wait.until)[: _WAITING_ROWS * 3]
    rows = _rows(longest)
    top = canvas.y
    for wait, row in rows:
        _draw(canvas, wait, top + row * ROW)
    most = max(row + 1 + len(wait.reason) for wait, row in rows)
    hidden = len(found) - len(rows)
    detail = f"{hidden} more not shown" if hidden else "for a node"
    canvas.picture.lanes.append(Lane("waiting", top, most * ROW, "waiting", detail))
    canvas.y = top + most * ROW + GAP


def _rows(waits: Sequence[_Wait]) -> list[tuple[_Wait, int]]:
    """Assign each wait a row: waits without a reason share rows at the top, the others have rows of their own."""
    unexplained = sorted((wait for wait in waits if not wait.reason), key=lambda wait: wait.left)
    placed = [int(row[0][0]) for row in place([(wait.left, wait.right, 1.0) for wait in unexplained])]
    found = [(wait, row) for wait, row in zip(unexplained, placed, strict=True) if row < _WAITING_ROWS]
    row = max((row + 1 for _, row in found), default=0)
    for wait in sorted((wait for wait in waits if wait.reason), key=lambda wait: wait.x):
        if row >= _WAITING_ROWS * 2:
            break
        found.append((wait, row))
        row += 1 + len(wait.reason)
    return found


def _draw(canvas: Canvas, wait: _Wait, y: float) -> None:
    life = wait.lives[0]
    colour = canvas.colours.get(life.queue, -1)
    width = max(2.0, wait.until - wait.x)
    bar = Bar(wait.x, y + 1.5, width, ROW - 3, colour, life.uid, _tooltip(canvas, wait.lives))
    bar.kind, bar.label, bar.note = "wait", wait.name if wait.side == 0 else "", wait.name if wait.side else ""
    bar.note_left = wait.side < 0
    canvas.picture.bars.append(bar)
    longest = max(map(len, wait.reason), default=0) * CHARACTER
    left = max(GUTTER + 4, min(wait.x + 4, WIDTH - MARGIN - longest))
    for number, line in enumerate(wait.reason, 1):
        canvas.picture.texts.append(Text(left, y + number * ROW + ROW * 0.7, line))
    for pod in wait.lives:
        canvas.waits[pod.uid] = (wait.x, y + ROW / 2)


def _draw_counts(canvas: Canvas) -> None:
    """Draw the number of waiting pods of each queue as a chart."""
    intervals = [(life.created, life.waited_until(canvas.end), life.queue, 1.0) for life in canvas.lives]
    if not intervals:
        return
    changes = sorted([(a, 1) for a, *_ in intervals] + [(b, -1) for _, b, *_ in intervals])
    most = max(accumulate(step for _, step in changes))
    lane = Lane("waiting", canvas.y, 44.0, "shared", f"at most {most:,} pods")
    lane.areas = canvas.stacked(intervals, float(most), canvas.y, lane.height)
    canvas.picture.lanes.append(lane)
    for life in canvas.lives:
        canvas.waits[life.uid] = (canvas.x(life.created), canvas.y + 22)
    canvas.y += lane.height + GAP


def _similar(canvas: Canvas) -> Iterable[list[Life]]:
    """Group the pods of a workload that began and stopped waiting together; on shared lanes, whatever the times are."""
    groups: dict[tuple[object, ...], list[Life]] = {}
    for life in canvas.lives:
        key: tuple[object, ...] = (life.workload, life.bound is None)
        if not canvas.picture.shared:
            until = round(canvas.x(life.waited_until(canvas.end)) / 6)
            key = (*key, round(canvas.x(life.created)), until, life.reasons[-1][1] if life.reasons else "")
        groups.setdefault(key, []).append(life)
    return groups.values()


def _wait_of(canvas: Canvas, lives: list[Life]) -> _Wait:
    """Return the bar of similar pods while they wait, with their last reason if they waited for long."""
    began, ended = min(life.created for life in lives), max(life.waited_until(canvas.end) for life in lives)
    x, until = canvas.x(began), canvas.x(ended)
    why = next((life.reasons[-1][1] for life in lives if life.reasons), "")
    is_shown = bool(why) and (ended - began > _LONG or any(life.bound is None for life in lives))
    reason = textwrap.wrap(canvas.plain(why), _LINE, break_on_hyphens=False) if is_shown else []
    name = canvas.names[lives[0].uid] if len(lives) == 1 else f"{len(lives)} pods of {lives[0].workload}"
    inside, behind, before = until - x - 8, WIDTH - MARGIN - until - 8, x - GUTTER - 8
    side = 0 if len(name) * CHARACTER <= inside else 1 if behind >= before else -1
    name = fitting(name, {0: inside, 1: behind, -1: before}[side])
    wide = len(name) * CHARACTER + 8
    left, right = (x - wide if side < 0 else x), (until + wide if side > 0 else until)
    return _Wait(lives, x, until, left, right, name, side, reason)


def _tooltip(canvas: Canvas, lives: Sequence[Life]) -> str:
    head = f"{len(lives)} pods of {lives[0].workload}" if len(lives) > 1 else canvas.title(lives[0])
    reasons = (f"at {seconds(t)}: {canvas.plain(why)}" for life in lives[:20] for t, why in life.reasons)
    return "\n".join([head, *dict.fromkeys(reasons)])
