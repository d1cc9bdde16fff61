"""What must never happen, judged in every scenario and unasked.

The one rule: a monitor judges acts (a bind, an eviction) by what the policy and the objects said when the act was
made, and knows of the scheduler nothing but what the cluster showed. A monitor is a module with ``NAME`` and
``judge(ledger, rules)``; who reads one can write the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..observe.history import Version
from . import gangs, nodes, protection
from .evictions import needless, repeated
from .ledger import Ledger, Violation
from .queues import capability, guarantee
from .rules import Rules

__all__ = ["MONITORS", "Ledger", "Rules", "Violation", "judge"]

MONITORS = {
    monitor.NAME: monitor
    for monitor in (
        nodes,
        capability,
        guarantee,
        gangs,
        protection,
        needless,
        repeated,
    )
}
"""The monitors by the name that a tag ``@without-monitor-NAME`` turns one off with."""


def judge(versions: Iterable[Version], rules: Rules, off: Sequence[str] = ()) -> list[Violation]:
    """What the monitors find in a history, but those in ``off``, in the order in which it happened.

    :param versions: every version of every object that the cluster showed.
    :param rules: what the policy in force lets each plugin say.
    """
    ledger = Ledger(versions)
    found = [
        finding for name, monitor in MONITORS.items() if name not in off for finding in monitor.judge(ledger, rules)
    ]
    return sorted(found, key=lambda finding: finding.time)
