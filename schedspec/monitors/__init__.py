"""Monitors check rules that hold in every scenario, whatever its sentences are.

A monitor judges acts (a bind, an eviction) by the policy and the objects at the time of the act. Its only source is the
history of the cluster. A monitor is a module with `NAME` and `judge(ledger, rules)`. What breaks its rule is decided by
a function of sums, which also judges a run in virtual time, act by act (`schedspec.lab.simulate.monitored`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..observe.history import Version
from . import gangs, nodes, protection, shared_cards, topology
from .evictions import disproportionate, needless, needless_workload, repeated
from .ledger import Ledger, Violation
from .queues import capability, guarantee
from .rules import Rules

__all__ = ["MONITORS", "Ledger", "Rules", "Violation", "judge", "judge_ledger"]

MONITORS = {
    monitor.NAME: monitor
    for monitor in (
        nodes,
        capability,
        guarantee,
        gangs,
        topology,
        shared_cards,
        protection,
        needless,
        needless_workload,
        disproportionate,
        repeated,
    )
}
"""The monitors by name. The tag `@without-monitor-NAME` turns one off."""


def judge(versions: Iterable[Version], rules: Rules, off: Sequence[str] = ()) -> list[Violation]:
    """Return the violations in a history, in the order in which they happened.

    Args:
        versions: Every version of every object in the history.
        rules: The plugins, switches and arguments of the policy in force.
        off: Names of monitors to skip.
    """
    return judge_ledger(Ledger(versions), rules, off)


def judge_ledger(ledger: Ledger, rules: Rules, off: Sequence[str] = ()) -> list[Violation]:
    """Return the violations in a ledger; otherwise like `judge`."""
    found = [
        finding for name, monitor in MONITORS.items() if name not in off for finding in monitor.judge(ledger, rules)
    ]
    return sorted(found, key=lambda finding: finding.time)
