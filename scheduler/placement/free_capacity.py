"""Room on nodes, as arrays.

The one rule: idle room that somebody pipelined is going to need is not available to others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..model.nodes import Amounts, Mask, Nodes, Rows
from ..model.task import Task

ALL = slice(None)
MANY = 2**31


def amounts(nodes: Nodes, rows: Any, *, future: bool) -> tuple[Amounts, Amounts]:
    """What is available and what is used on some rows: now, or once the releasing have left and the pipelined have
    come.
    """
    idle = nodes.idle[rows]
    used = nodes.allocatable[rows] - idle
    coming = nodes.pipelined[rows] - nodes.releasing[rows]
    if future:
        return idle - coming, used + coming
    return _now(idle, coming), used


def without(nodes: Nodes, waiting: Sequence[Task]) -> Amounts:
    """What would be available now on all rows if these tasks, which are alike and pipelined, were not."""
    others = nodes.pipelined.copy()
    np.subtract.at(others, [nodes.by_name[task.node].row for task in waiting], nodes.held(waiting[0]))
    return _now(nodes.idle, others - nodes.releasing)


def _now(idle: Amounts, coming: Amounts) -> Amounts:
    """Idle room less what those need of it who are pipelined onto more than is being freed."""
    left: Amounts = np.minimum(idle, idle - coming)
    return left


def times(nodes: Nodes, task: Task, available: Amounts) -> Rows:
    """How many tasks like this one fit into each row of ``available``, one after the other."""
    needed, held = nodes.needed(task), nodes.held(task)
    asked = needed > 0
    more = (available[:, asked] - needed[asked]) // held[asked]
    times: Rows = np.maximum(more.min(axis=1, initial=MANY) + 1, 0)
    return times


def within(needed: Amounts, available: Amounts) -> Mask:
    """Rows of ``available`` with at least ``needed`` of all that is asked."""
    asked = needed > 0
    mask: Mask = np.logical_and.reduce(available[:, asked] >= needed[asked], axis=1)
    return mask
