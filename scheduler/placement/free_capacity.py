"""Compute free room on nodes, as arrays.

Idle room that a pipelined task will need is not available to other tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..model.nodes import Amounts, Mask, Nodes, Rows
from ..model.task import Task

MANY = 2**31
LEAST = np.iinfo(np.int64).min


def amounts(nodes: Nodes, rows: Any, *, future: bool) -> tuple[Amounts, Amounts]:
    """Return what is available and what is used on some rows.

    With `future`, for the time when all releasing tasks have left and all pipelined tasks run; otherwise for now.
    """
    if future:
        available = idle = nodes.future_idle(rows)
    else:
        idle = nodes.idle[rows]
        available = _now(idle, nodes.pipelined[rows] - nodes.releasing[rows])
    return available, nodes.allocatable[rows] - idle


def without(nodes: Nodes, waiting: Sequence[Task]) -> Amounts:
    """Return what would be available now on all rows without these tasks, which are pipelined and of one shape."""
    pipelined = nodes.pipelined.copy()
    np.subtract.at(pipelined, [nodes.by_name[task.node].row for task in waiting], nodes.held(waiting[0]))
    return _now(nodes.idle, pipelined - nodes.releasing)


def _now(idle: Amounts, beyond_releasing: Amounts) -> Amounts:
    """Return idle room without the part that pipelined tasks need beyond what releasing tasks free."""
    left: Amounts = np.minimum(idle, idle - beyond_releasing)
    return left


def times(nodes: Nodes, task: Task, available: Amounts) -> Rows:
    """Return how many equal tasks fit into each row of `available`."""
    needed, held = nodes.needed(task), nodes.held(task)
    needs_any = needed > 0
    more = (available[:, needs_any] - needed[needs_any]) // held[needs_any]
    fitting: Rows = np.maximum(more.min(axis=1, initial=MANY) + 1, 0)
    return fitting


def least(needed: Amounts) -> Amounts:
    """Return the least room that suffices in each dimension; where none is needed, `LEAST`: room can be negative."""
    return np.where(needed > 0, needed, LEAST)


def within(bounds: Amounts, available: Amounts) -> Mask:
    """Return the rows of `available` that have at least `bounds` (see `least`) in each dimension."""
    mask: Mask = np.logical_and.reduce(available >= bounds, axis=1)
    return mask
