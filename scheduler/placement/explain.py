"""Explain why no node fits a task.

A node counts once, for the first rule that excludes it, in the order of the checks: ready, the constraints of the spec,
neighbours, room.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from ..model.nodes import Amounts, Mask, NodeInfo, Nodes
from ..model.resources import PODS
from ..model.task import Task
from ..policy.tiers import Hooks
from ..reasons import NodeRule, NodeUnfit, NoNode

OTHER = ("other", "are excluded by a plugin")


def no_node(
    nodes: Nodes, hooks: Hooks, task: Task, admitted: Mask, left: Amounts, *, inside: Mask | None = None
) -> NoNode:
    """Return the histogram of reasons for a task.

    Args:
        nodes: all nodes.
        hooks: the plugins' `node_rule` names the rule that excludes a node.
        task: the task that finds no node.
        admitted: the nodes that only lack room.
        left: what will be free on each node after as many equal tasks as fit are placed, [nodes x dimensions].
        inside: the nodes that count at all; None for all.
    """
    counts: Counter[tuple[str, str]] = Counter()
    excluded = ~admitted if inside is None else ~admitted & inside
    for row in np.flatnonzero(excluded):
        counts[_rule(hooks, task, nodes.rows[row])] += 1
    needed, available = nodes.needed(task), left[admitted]
    for name, column in sorted(nodes.dimensions.items()):
        if needed[column] <= 0:
            continue
        lacking = available[:, column] < needed[column]
        if count := int(lacking.sum()):
            counts["pods" if name == PODS else "resource", "" if name == PODS else name] += count
            available = available[~lacking]
    return NoNode(
        task.key,
        len(nodes.rows) if inside is None else int(inside.sum()),
        tuple(sorted(NodeRule(count, rule, detail) for (rule, detail), count in counts.items())),
    )


def unfit(nodes: Nodes, hooks: Hooks, task: Task, node: NodeInfo, admitted: bool) -> NodeUnfit:
    """Return why a node does not fit a task after releasing tasks have left. `admitted`: the node only lacks room."""
    if not admitted:
        return NodeUnfit(node.name, *_rule(hooks, task, node))
    needed, available = nodes.needed(task), nodes.future_idle(node.row)
    lacking = (name for name, i in sorted(nodes.dimensions.items()) if available[i] < needed[i])
    name = next(lacking, PODS)
    return NodeUnfit(node.name, "pods") if name == PODS else NodeUnfit(node.name, "resource", name)


def _rule(hooks: Hooks, task: Task, node: NodeInfo) -> tuple[str, str]:
    if not node.is_ready:
        return ("not-ready", "")
    rule: tuple[str, str] | None = hooks.node_rule(task, node)
    return rule or OTHER
