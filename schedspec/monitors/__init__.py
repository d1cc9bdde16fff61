"""Monitors check rules that hold in every scenario, whatever its sentences are.

A monitor judges acts (a bind, an eviction) by the policy and the objects at the time of the act. Its only source is the
ledger, which the history of a cluster (`reading`) or a run in virtual time feeds. A monitor is a class with its rule.

The ledger (`ledger`) consists of `lives` (jobs, pods, acts, holdings and changes) and `limits`. The quotas of Kueue are
read by `quotas`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..api.kinds import Kind
from ..observe.history import Version
from .evictions.disproportionate import DisproportionateMonitor
from .evictions.needless import NeedlessMonitor
from .evictions.needless_workload import NeedlessWorkloadMonitor
from .evictions.repeated import RepeatedMonitor
from .gangs import GangMonitor
from .ledger import Ledger, Monitor
from .lives import Violation
from .nodes import NodeMonitor
from .protection import ProtectionMonitor
from .queues.capability import CapabilityMonitor
from .queues.guarantee import GuaranteeMonitor
from .reading import feed
from .rules import Rules
from .shared_cards import SharedCardsMonitor
from .topology import TopologyMonitor

__all__ = ["MONITORS", "Ledger", "Rules", "Violation", "judge", "judged"]

MONITORS: dict[str, type[Monitor]] = {
    monitor.NAME: monitor
    for monitor in (
        NodeMonitor,
        CapabilityMonitor,
        GuaranteeMonitor,
        GangMonitor,
        TopologyMonitor,
        SharedCardsMonitor,
        ProtectionMonitor,
        NeedlessMonitor,
        NeedlessWorkloadMonitor,
        DisproportionateMonitor,
        RepeatedMonitor,
    )
}
"""The monitors by name. The tag `@without-monitor-NAME` turns one off."""


def judged(ledger: Ledger, off: Sequence[str] = ()) -> Ledger:
    """Attach all monitors to a ledger, except those named in `off`; return the ledger."""
    for name, monitor in MONITORS.items():
        if name not in off:
            ledger.attach(monitor(ledger, ledger.rules))
    return ledger


def judge(
    versions: Sequence[Version],
    rules: Rules,
    off: Sequence[str] = (),
    *,
    since: float = -math.inf,
    until: float = math.inf,
) -> list[Violation]:
    """Return the violations in a history, in the order in which they happened.

    Args:
        versions: Every version of every object in the history.
        rules: The plugins, switches and arguments of the policy in force.
        off: Names of monitors to skip.
        since: The time from which on this policy was in force. Earlier acts are known, and not judged.
        until: The time at which another policy replaced it.
    """
    if not any(seen.ref.kind == Kind.POD and since <= seen.at < until for seen in versions):
        return []
    found = feed(judged(Ledger(rules), off), versions).close()
    return [violation for violation in found if since <= violation.time < until]
