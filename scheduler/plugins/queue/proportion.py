"""proportion: queues deserve shares of the cluster by weight, at most what they request.

Semantics: Volcano's proportion plugin, v1.15. A queue never holds more than it deserves.

Deserved shares depend only on weights, requests, limits, guarantees and the size of the cluster; all queues are filled
at once (max-min fairness).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...backlog.entries import HoldingsBound
from ...model import resources
from ...model.job import Job
from ...model.queue import Queue
from ...model.resources import Resource
from ...policy.hooks import Overused
from ...reasons import NotEntitled, QueueLimit, QueueWithinDeserved, UnschedulableReason
from . import hierarchy
from .attributes import QueueAttributes, without_pods
from .plugin import over_limit
from .reclaim_rules import LendingPlugin, not_entitled, within_deserved

FINE = 2**64
"""The number of parts into which a unit is divided while shares are computed."""
CRUMB = 2**32
"""Upper bound of the sum of rounding errors of one share, in parts of a unit (`FINE`)."""


class Proportion(LendingPlugin, Overused):
    """Queue quotas by weight."""

    name = "proportion"
    limit_name = "deserved"
    shares_follow_requests = True
    queue_fields = frozenset({"capability", "guarantee", "weight"})
    _divided: object = None
    """The table and the requests from which the shares were computed."""

    def arrange(self) -> None:
        guarantees = resources.total_of(attributes.guarantee for attributes in self.queue_attributes)
        hierarchy.set_flat_limits(self.queue_attributes, self.session.total, guarantees)

    def divide(self) -> None:
        table = self.queue_attributes
        busy = [attributes for attributes in table if attributes.counted is not None]
        basis = (table, {attributes.name: attributes.request for attributes in busy})
        if basis == self._divided:
            return
        self._divided, before = basis, {attributes.name: attributes.deserved for attributes in table}
        for attributes in table:
            attributes.deserved = {}
        idle = resources.total_of(attributes.guarantee for attributes in table if attributes.counted is None)
        fill(busy, resources.exceeded_part(without_pods(self.session.total), idle))
        for attributes in table:
            if attributes.deserved != before[attributes.name]:
                attributes.drop_cached()

    def overused(self, queue: Queue) -> bool:
        return self.is_overused(self.queue_attributes.by_name[queue.name])

    def is_overused(self, attributes: QueueAttributes) -> bool:
        """Whether the queue holds at least its deserved share in every dimension."""
        return resources.less_equal(attributes.deserved, attributes.allocated)

    def ceilings(self, attributes: QueueAttributes) -> list[tuple[QueueAttributes, Resource]]:
        """Return the deserved share as the limit of a queue."""
        return [(attributes, attributes.deserved)]

    def entitled(self, attributes: QueueAttributes, amount: Mapping[str, int]) -> NotEntitled | None:
        broken = next(over_limit(attributes, amount, attributes.deserved, "deserved"), None)
        return None if broken is None else not_entitled(attributes, amount, broken.dimension)

    def quota_bounds(self, job: Job, why: UnschedulableReason) -> tuple[HoldingsBound, ...]:
        if not isinstance(why, NotEntitled | QueueLimit):
            return ()
        is_pending = self.session.is_pending(job)
        if is_pending and isinstance(why, QueueLimit):
            return super().quota_bounds(job, why)
        wanted = why.requested if is_pending else self.least_wanted(job, why.dimension)
        return (HoldingsBound(why.queue, why.dimension, -wanted, of_deserved=True),)

    def excess(self, queue: str, dimension: str) -> float:
        attributes = self.queue_attributes.by_name.get(queue)
        return -math.inf if attributes is None else _excess(attributes, attributes.own.held, dimension)

    def kept(
        self,
        taker: QueueAttributes,  # noqa: ARG002
        giver: QueueAttributes,
        wanted: Mapping[str, int],  # noqa: ARG002
        amount: Resource,
    ) -> QueueWithinDeserved | None:
        """Return why `giver` keeps `amount`; None if it exceeds its deserved share in a dimension of `amount`."""
        for name, value in amount.items():
            if value > 0 and giver.allocated.get(name, 0) > giver.deserved.get(name, 0):
                return None
        return within_deserved(giver, amount)


def _excess(attributes: QueueAttributes, held: Resource, dimension: str) -> int:
    return held.get(dimension, 0) - attributes.deserved.get(dimension, 0)


def fill(queue_attributes: list[QueueAttributes], total: Resource) -> None:
    """Compute `deserved` of every queue.

    In each round, the remaining amount is divided by weight among the queues that do not have enough yet. Each queue
    gets at most its limit and its request, and at least its guarantee; the rest remains for the next round. Shares are
    computed in fractions of `FINE` and rounded down once, at the end: a queue that deserves 3333⅓ may hold 3333.
    No rounds are needed if the total suffices for all queues.
    """
    most = {attributes.name: _most(attributes, total) for attributes in queue_attributes}
    shares = {one.name: hierarchy.raised_to(most[one.name], one.guarantee) for one in queue_attributes}
    wanted = resources.total_of(shares.values())
    have_weight = all(attributes.queue.weight > 0 for attributes in queue_attributes)
    if not have_weight or any(wanted.get(name, 0) > amount for name, amount in total.items()):
        shares = _in_rounds(queue_attributes, most, total)
    for attributes in queue_attributes:
        attributes.deserved = shares[attributes.name]


def _most(attributes: QueueAttributes, total: Resource) -> Resource:
    """Return what a queue requests of the total, at most its limit."""
    requested = {name: attributes.request.get(name, 0) for name in total}
    return resources.smallest(requested, attributes.limit, missing_is_unlimited=True)


def _in_rounds(
    queue_attributes: list[QueueAttributes], most: Mapping[str, Resource], total: Resource
) -> dict[str, Resource]:
    limits = {name: _finely(amounts) for name, amounts in most.items()}
    requests = {attributes.name: _finely(attributes.request) for attributes in queue_attributes}
    guarantees = {attributes.name: _finely(attributes.guarantee) for attributes in queue_attributes}
    shares: dict[str, Resource] = {attributes.name: {} for attributes in queue_attributes}
    remaining, unmet = _finely(total), list(queue_attributes)
    while unmet and (weights := sum(attributes.queue.weight for attributes in unmet)) > 0:
        left, still = dict(remaining), list[QueueAttributes]()
        for attributes in unmet:
            name, weight = attributes.name, attributes.queue.weight
            before, limit = shares[name], limits[name]
            share = {}
            for dimension, amount in remaining.items():
                offered = before.get(dimension, 0) + amount * weight // weights
                share[dimension] = min(offered, limit[dimension])
            shares[name] = share = hierarchy.raised_to(share, guarantees[name])
            for dimension in left:
                left[dimension] += before.get(dimension, 0) - share[dimension]
            if share != before and not resources.less_equal(requests[name], share):
                still.append(attributes)
        left = {dimension: max(amount, 0) for dimension, amount in left.items()}
        if left == remaining or all(amount < CRUMB for amount in left.values()):
            break
        remaining, unmet = left, still
    return {
        queue: {name: (amount + CRUMB) // FINE for name, amount in share.items()} for queue, share in shares.items()
    }


def _finely(amounts: Mapping[str, int]) -> Resource:
    return {name: amount * FINE for name, amount in amounts.items()}
