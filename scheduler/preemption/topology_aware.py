"""The topology-aware mode of preempt: evict all candidates of a node, then reprieve as many as possible.

The best protected candidate is reprieved first; among equals, the oldest. Nodes are compared by the protection of their
best protected victim, then by the number of broken gangs, the number of pods, the sum of priorities, and the age of the
oldest among the best protected victims. The lowest wins.

Semantics: Volcano's `enableTopologyAwarePreemption` and kube-scheduler's preemption, with these differences: disruption
budgets are never violated; the amount freed does not matter; every node is examined, not a sample. The cost of
a node is first estimated from all its candidates, and then computed from those that the plugins permit.

The default mode (`scheduler.preemption.victim_set`) evicts one older pod that alone makes room rather than two younger
ones, and compares nodes priority by priority: it evicts three pods of priority 1 rather than one of priority 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .victim_set import Amounts, VictimOption, VictimSet


def reprieved_cover(lacking: Amounts, options: Sequence[VictimOption]) -> list[VictimOption] | None:
    """Return the options to evict so that `lacking` is freed, in order; None if all options do not suffice.

    A gang that is reprieved as a whole may still lose tasks above its minimum.
    """
    ranked = sorted(options, key=_protection)
    chosen = VictimSet(lacking)
    for option in ranked:
        chosen.add(option)
    if not chosen.covers():
        return None
    for option in reversed(ranked):
        singles = [other for other in ranked if other.job == option.job and not other.whole] if option.whole else []
        chosen.reprieve(option, singles)
    return sorted(chosen.options, key=_protection)


def node_cost(chosen: Sequence[VictimOption]) -> tuple[Any, ...]:
    """Return the cost of a set of victims, by which nodes are compared."""
    if not chosen:
        return ()
    top = max(option.level for option in chosen)
    pods = sum(option.pods for option in chosen)
    priorities = sum(option.level[-1] * option.pods for option in chosen)
    oldest = max(option.age_key for option in chosen if option.level == top)
    return (
        (),
        (top, sum(option.gangs for option in chosen), pods, priorities, oldest),
    )


def _protection(option: VictimOption) -> tuple[Any, ...]:
    """Return the sort key of an option; smaller is evicted first: by level, single tasks before gangs, then by age."""
    return (option.level, option.gangs, option.age_key)
