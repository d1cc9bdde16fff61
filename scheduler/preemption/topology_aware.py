"""The topology-aware mode of preempt: all of a node's candidates go, then as many as possible are reprieved.

The one rule: the best protected is reprieved first, among equals the oldest; the node is the one whose best protected
victim is the least so, then the one with the fewest gangs broken, the fewest pods, the lowest sum of priorities, the
youngest among its best protected. (Semantics: Volcano's ``enableTopologyAwarePreemption``, the kube-scheduler's
preemption. Disruption budgets are kept here, not counted; how much is freed is not asked; every node is looked at, not
a sample. A node is priced by all its candidates, and by what they voted when its turn comes.)

Otherwise (:mod:`scheduler.preemption.victim_set`) an older pod that alone makes room goes rather than two younger
ones, and nodes are compared priority by priority: three pods of priority 1 go rather than one of priority 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .victim_set import Amounts, VictimOption, VictimSet


def reprieved_cover(lacking: Amounts, options: Sequence[VictimOption]) -> list[VictimOption] | None:
    """Those of ``options`` that go so that ``lacking`` is freed, the first to go first; None if all together do not.

    A gang that is reprieved may still give its spare tasks.
    """
    ranked = sorted(options, key=_protection)
    chosen = VictimSet(lacking)
    for option in ranked:
        chosen.add(option)
    if not chosen.covers():
        return None
    for option in reversed(ranked):
        spare = [other for other in ranked if other.job == option.job and not other.whole] if option.whole else []
        chosen.spare(option, spare)
    return sorted(chosen.options, key=_protection)


def node_cost(chosen: Sequence[VictimOption]) -> tuple[Any, ...]:
    """What a set costs, comparable, as nodes are compared by it."""
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
    """Smaller goes first: by level, spare tasks before gangs, the youngest."""
    return (option.level, option.gangs, option.age_key)
