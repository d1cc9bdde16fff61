"""The lane of pods without a node: alike ones together, and why they wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from .axis import seconds
from .canvas import CHARACTER, Canvas, fitting
from .lives import Life
from .picture import GAP, GUTTER, MARGIN, ROW, WIDTH, Bar, Lane
from .slots import place

_WAITING_ROWS = 12
_LONG = 0.2
"""Seconds from which on a reader asks why a pod waited."""


@dataclass(slots=True)
class _Wait:
    """Alike pods that wait: their bar, and with its text beside it from ``left`` to ``right``."""

    lives: list[Life]
    x: float
    until: float
    left: float
    right: float
    text: str
    side: int
    """Where the text is: 0 inside, 1 behind, -1 before."""


def draw_waiting(canvas: Canvas) -> None:
    """Pods without a node, alike ones together, and why they wait; of many those that waited longest."""
    if canvas.picture.shared:
        _waiting_together(canvas)
    found = [_wait_of(canvas, lives) for lives in _alike(canvas) if not canvas.picture.shared or lives[0].reasons]
    if not found:
        return
    longest = sorted(found, key=lambda it: it.x - it.until)[: _WAITING_ROWS * 3]
    shown = sorted(longest, key=lambda it: it.left)
    rows = [row[0][0] for row in place([(it.left, it.right, 1.0) for it in shown])]
    most = min(_WAITING_ROWS, int(max(rows)) + 1)
    drawn = [(it, int(row)) for it, row in zip(shown, rows, strict=True) if row < most]
    for it, row in drawn:
        y, life = canvas.y + row * ROW, it.lives[0]
        colour = canvas.colours.get(life.queue, -1)
        bar = Bar(it.x, y + 1.5, max(2.0, it.until - it.x), ROW - 3, colour, life.uid, _why(canvas, it.lives))
        bar.kind, bar.label, bar.note = "wait", it.text if it.side == 0 else "", it.text if it.side else ""
        bar.note_left = it.side < 0
        canvas.picture.bars.append(bar)
        for one in it.lives:
            canvas.waits[one.uid] = (it.x, y + ROW / 2)
    hidden = len(found) - len(drawn)
    detail = f"{hidden} more not shown" if hidden else "for a node"
    canvas.picture.lanes.append(Lane("waiting", canvas.y, most * ROW, "waiting", detail))
    canvas.y += most * ROW + GAP


def _waiting_together(canvas: Canvas) -> None:
    """How many pods of each queue waited, as a chart."""
    stays = [(it.created, it.waited_until(canvas.end), it.queue, 1.0) for it in canvas.lives]
    if not stays:
        return
    changes = sorted([(a, 1) for a, *_ in stays] + [(b, -1) for _, b, *_ in stays])
    most = max(accumulate(step for _, step in changes))
    lane = Lane("waiting", canvas.y, 44.0, "shared", f"at most {most:,} pods")
    lane.areas = canvas.stacked(stays, float(most), canvas.y, lane.height)
    canvas.picture.lanes.append(lane)
    for life in canvas.lives:
        canvas.waits[life.uid] = (canvas.x(life.created), canvas.y + 22)
    canvas.y += lane.height + GAP


def _alike(canvas: Canvas) -> Iterable[list[Life]]:
    """Pods of one workload that came and stopped waiting together; of many all of one workload."""
    groups: dict[tuple[object, ...], list[Life]] = {}
    for life in canvas.lives:
        key: tuple[object, ...] = (life.workload, life.bound is None)
        if not canvas.picture.shared:
            until = round(canvas.x(life.waited_until(canvas.end)) / 6)
            key = (*key, round(canvas.x(life.created)), until, life.reasons[-1][1] if life.reasons else "")
        groups.setdefault(key, []).append(life)
    return groups.values()


def _wait_of(canvas: Canvas, lives: list[Life]) -> _Wait:
    """Where alike pods are drawn while they wait, and what stands in or beside their bar."""
    began, ended = min(it.created for it in lives), max(it.waited_until(canvas.end) for it in lives)
    x, until = canvas.x(began), canvas.x(ended)
    why = next((it.reasons[-1][1] for it in lives if it.reasons), "")
    name = canvas.names[lives[0].uid] if len(lives) == 1 else f"{len(lives)} pods of {lives[0].workload}"
    tells = bool(why) and (ended - began > _LONG or any(it.bound is None for it in lives))
    text = f"{name}: {canvas.plain(why)}" if tells else name
    inside, behind, before = until - x - 8, WIDTH - MARGIN - until - 8, x - GUTTER - 8
    if len(text) * CHARACTER <= inside:
        return _Wait(lives, x, until, x, until, text, 0)
    if max(behind, inside) >= min(len(text) * CHARACTER, 200.0):
        side = 1 if behind >= inside else 0
    else:
        side = -1 if before > max(behind, inside) else 1 if behind >= inside else 0
    text = fitting(text, {0: inside, 1: behind, -1: before}[side])
    wide = len(text) * CHARACTER + 8
    left, right = (x - wide if side < 0 else x), (until + wide if side > 0 else until)
    return _Wait(lives, x, until, left, right, text, side)


def _why(canvas: Canvas, lives: Sequence[Life]) -> str:
    head = f"{len(lives)} pods of {lives[0].workload}" if len(lives) > 1 else canvas.title(lives[0])
    said = (f"at {seconds(t)}: {canvas.plain(why)}" for life in lives[:20] for t, why in life.reasons)
    return "\n".join([head, *dict.fromkeys(said)])
