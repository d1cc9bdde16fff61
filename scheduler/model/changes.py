"""Report the changes of the state to a listener, by topic.

The state knows no more of its listener than this. (The backlog of waiting jobs listens: `scheduler.backlog`.)
"""

from __future__ import annotations

FREED = "freed"
"""A pod that held or requested something was deleted, ended or terminates: capacity and quota."""
PLACED = "placed"
"""A pod got a node: neighbours, shares of queues. `placed:Q`: a pod of queue Q."""
RUNNING = "running"
"""A pod began to run, so that it may be reclaimed."""
GROUPS = "groups"
"""A PodGroup requests less than before, or is served at another position."""
VOLUMES = "volumes"
"""A volume, a claim, or a node's storage driver."""
BUDGETS = "budgets"
"""A PodDisruptionBudget."""
QUOTAS = "quotas"
"""A ResourceQuota of a namespace."""
CLAIMS = "claims"
"""A job for which capacity was kept, free or being freed, gets other capacity, or none."""
TOPICS = (FREED, PLACED, RUNNING, GROUPS, VOLUMES, BUDGETS, QUOTAS, CLAIMS)
"""All topics except the rest (nodes, queues, classes, namespaces), which concerns every waiting job."""
QUOTA_TOPICS = frozenset((FREED, PLACED, GROUPS, CLAIMS))
"""The changes that could make room in a queue's quota."""


class ChangeListener:
    """A listener that ignores every change."""

    @property
    def is_interested(self) -> bool:
        """Whether reports about pods matter now; preparing them costs time."""
        return False

    def report(self, topic: str, queue: str = "") -> None:
        """Report a change of this topic; `queue`: the only queue whose quota it concerns, if that is known."""

    def report_all(self) -> None:
        """Report a change that could alter any decision."""

    def report_job(self, key: str) -> None:
        """Report a change of this very job."""

    def report_undecided(self, key: str, is_undecided: bool) -> None:
        """Report whether an action may have work for a job that has changed (`scheduler.model.sums`)."""

    def report_task(self, key: str) -> None:
        """Report a change of this very task."""

    def report_capacity(self, node: str) -> None:
        """Report that a node may have more capacity than before."""

    def drop(self, key: str) -> None:
        """Report that a job was deleted."""
