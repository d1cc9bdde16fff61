"""Topics of changes of the state, and the interface of the listener to which the state reports them.

The backlog of waiting jobs implements the interface (`scheduler.backlog.backlog`); the state does not depend on it.
"""

from __future__ import annotations

FREED = "freed"
"""A pod was deleted, ended or terminates: capacity and quota became free."""
PLACED = "placed"
"""A pod got a node: neighbours and shares of queues changed. `placed:Q`: a pod of queue Q got a node."""
RUNNING = "running"
"""A pod began to run, so that it may be reclaimed."""
GROUPS = "groups"
"""A PodGroup requests less than before, or is served at another position."""
WORK = "work"
"""A queue got its first PodGroup, and there are guarantees: under proportion, shares of queues may grow by them."""
REQUESTS = "requests"
"""A job requests more than before. This concerns only policies under which other queues then deserve less."""
VOLUMES = "volumes"
"""A volume, a claim, or a node's storage driver changed."""
BUDGETS = "budgets"
"""A PodDisruptionBudget changed."""
QUOTAS = "quotas"
"""A ResourceQuota of a namespace changed."""
CLAIMS = "claims"
"""A job lost the capacity (free or being freed) that was kept for it, or got other capacity."""
TOPICS = (FREED, PLACED, RUNNING, GROUPS, WORK, VOLUMES, BUDGETS, QUOTAS, CLAIMS)
"""All topics but `REQUESTS`. Changes of nodes, queues, priority classes and namespaces have none: they concern every
waiting job.
"""
QUOTA_TOPICS = frozenset((FREED, PLACED, GROUPS, WORK, CLAIMS))
"""The changes that could make room in a queue's quota."""


class ChangeListener:
    """A listener that ignores every change."""

    @property
    def is_interested(self) -> bool:
        """Whether reports about pods matter now; preparing them costs time."""
        return False

    def report(self, topic: str, queue: str = "") -> None:
        """Report a change of a topic; `queue` is the only queue whose quota may have moved, if that is known."""

    def report_all(self) -> None:
        """Report a change that could alter any decision."""

    def report_job(self, key: str) -> None:
        """Report a change of the job itself."""

    def report_undecided(self, key: str, is_undecided: bool) -> None:
        """Report whether an action may have work for a job that has changed (`scheduler.model.sums`)."""

    def report_task(self, key: str) -> None:
        """Report a change of the task itself."""

    def report_capacity(self, node: str) -> None:
        """Report that a node may have more capacity than before."""

    def drop(self, key: str) -> None:
        """Report that a job was deleted."""
