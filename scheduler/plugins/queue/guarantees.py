"""Keep free what other queues are guaranteed and do not use yet.

The one rule: no start lowers what is free below the sum of the other queues' unused guarantees. Two queues that are
within their own limits could otherwise use up together what is guaranteed to a third.

1. The cluster is a pool, and so is each ancestor with a limit. What is free in the cluster is idle on its nodes or
   being freed there; what is free in an ancestor is its limit less what it holds.
2. A branch is guaranteed the larger of its own guarantee and the sum of its children's. Unused is the larger of what
   the branch lacks of its own guarantee and of the sum of what its children lack.
3. A queue may always use what is guaranteed to itself. A branch may use what is guaranteed to it and not to queues
   below it.
4. Capacity that evictions for a job free was not free before: the job may use it even if a guarantee is not free.
   What the job leaves of it is free for every job. A nominated task may use what it was nominated for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...framework.session import Session
from ...model.resources import UNLIMITED, Resource
from ...model.task import Task
from ...reasons import GuaranteeKept
from .attributes import QueueAttributes, QueueAttributesTable

CLUSTER = ""
"""The name of the pool that contains all queues."""


class Guarantees:
    """The unused guarantees of one cycle."""

    def __init__(self, session: Session, table: QueueAttributesTable) -> None:
        self._session, self._table = session, table
        self.total = table.guaranteed
        """The sum of all guarantees: the most that can be unused."""
        self._taken: dict[str, Resource] = {}
        """Pool → what the changes of this cycle took from it, less what they freed."""
        self._taken_for: dict[str, dict[str, Resource]] = {}
        """Job → pool → what the job took, less what was freed for the job."""
        self._evicted_for: dict[str, str] = {}
        """Task → the job for which it was evicted last."""
        self._unused: dict[tuple[str, str], int] = {}
        self._unused_at = -1
        if self.total:
            nodes = session.nodes
            self._free = nodes.sum_of(nodes.future_idle(nodes.ready))
            """What was free in the cluster when the cycle began."""
            session.on_allocation_change(self._on_allocation_change)

    def _on_allocation_change(self, task: Task, sign: int) -> None:
        if sign < 0 and (trying := self._session.attempts.trying):
            self._evicted_for[task.key] = trying
        job = self._evicted_for.get(task.key, task.job)
        attributes = self._table.of_task(task)
        pools = (CLUSTER,) if attributes is None else (CLUSTER, *(one.name for one in attributes.ancestors[1:]))
        for pool in pools:
            for taken in (self._taken, self._taken_for.setdefault(job, {})):
                of_pool = taken.setdefault(pool, {})
                for name in self.total.keys() & task.request.keys():
                    of_pool[name] = of_pool.get(name, 0) + sign * task.request[name]

    # -------------------------------------------------------------------------------------------------------- refusals

    def short(self, attributes: QueueAttributes, task: Task, amount: Mapping[str, int]) -> Iterator[GuaranteeKept]:
        """Yield for each dimension the nearest pool with too little left for others if the queue held `amount` more."""
        names = [name for name in self.total if amount.get(name, 0) > 0]
        if not names or (task.nominated and not self._session.attempts.trying):
            return  # outside of attempts, only the nominations of earlier cycles are restored
        for name in names:
            for branch, free in self._pools(attributes, name):
                left = free - amount[name]
                most = self.total if branch is None else branch.guarantee
                pool = CLUSTER if branch is None else branch.name
                if left >= most.get(name, 0) or not self._takes(task.job, attributes.name, pool, name, amount[name]):
                    continue
                unused = self._unused_by_others(attributes, branch, name, amount[name])
                if left < (kept := sum(unused.values())):
                    largest = sorted(unused, key=lambda queue: (-unused[queue], queue))[:2]
                    yield GuaranteeKept(attributes.name, name, amount[name], free, kept, tuple(largest), pool)
                    break

    def is_short_below(self, branch: QueueAttributes, attributes: QueueAttributes, amount: Mapping[str, int]) -> bool:
        """Whether the queue cannot start `amount` unless pods below its ancestor `branch` are evicted."""
        for name in self.total.keys() & amount.keys():
            limit, wanted = branch.limit.get(name, 0), amount[name]
            if limit is not UNLIMITED and wanted > 0:
                unused = self._unused_by_others(attributes, branch, name, wanted)
                if unused and limit - branch.allocated.get(name, 0) - wanted < sum(unused.values()):
                    return True
        return False

    def _takes(self, job: str, queue: str, pool: str, name: str, amount: int) -> bool:
        """Whether a job would take more of a pool than was freed for it, if it held `amount` more.

        Between attempts, victims are reprieved that several jobs may need: then one such job of the queue suffices.
        """

        def taken(key: str) -> int:
            return self._taken_for.get(key, {}).get(pool, {}).get(name, 0)

        if taken(job) + amount > 0:
            return True
        if self._session.attempts.trying:
            return False
        jobs = self._session.jobs
        return any(taken(key) > 0 for key in self._taken_for if key in jobs and jobs[key].queue == queue)

    def _pools(self, attributes: QueueAttributes, name: str) -> Iterator[tuple[QueueAttributes | None, int]]:
        """Yield the pools of a queue, None for the cluster, with what is free now."""
        for branch in attributes.ancestors[1:]:
            limit = branch.limit.get(name, 0)
            if limit is not UNLIMITED:
                yield branch, limit - branch.allocated.get(name, 0)
        yield None, self._free.get(name, 0) - self._taken.get(CLUSTER, {}).get(name, 0)

    # --------------------------------------------------------------------------------------------------------- amounts

    def _unused_by_others(
        self, attributes: QueueAttributes, pool: QueueAttributes | None, name: str, wanted: int
    ) -> dict[str, int]:
        """Return the unused guarantees that the queue must leave free in a pool, by queue or branch."""
        found: dict[str, int] = {}
        for one in attributes.ancestors:
            used = one.allocated.get(name, 0) + wanted + sum(found.values())
            if one is pool or used <= one.guarantee.get(name, 0):
                break
            siblings: Iterable[QueueAttributes] = one.parent.children if one.parent is not None else ()
            if one.parent is None and not one.children:
                siblings = self._table.top
            for other in siblings:
                if other is not one and (unused := self._unused_of(other, name)):
                    found[other.name] = unused
        return found

    def _unused_of(self, attributes: QueueAttributes, name: str) -> int:
        """Return what is guaranteed to a queue or branch and not used."""
        guaranteed = attributes.guarantee.get(name, 0)
        if guaranteed <= 0:
            return 0  # the guarantee of a branch is at least the sum of its children's
        if self._unused_at != self._table.version:
            self._unused_at = self._table.version
            self._unused.clear()
        key = (attributes.name, name)
        if key not in self._unused:
            below = sum(self._unused_of(child, name) for child in attributes.children)
            self._unused[key] = max(guaranteed - attributes.allocated.get(name, 0), below)
        return self._unused[key]
