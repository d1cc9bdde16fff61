"""proportion: queues deserve shares of the cluster by weight, at most what they request.

Semantics: Volcano's proportion plugin, v1.15. A queue never holds more than it deserves.

Deserved shares follow from weights, requests and the size of the cluster alone, by filling all queues at once (max-min
fairness).
"""

from __future__ import annotations

from collections.abc import Mapping

from ...model import resources
from ...model.queue import Queue
from ...model.resources import UNLIMITED, Limit, Resource
from ...policy.hooks import Overused
from ...reasons import NotEntitled, QueueWithinDeserved
from . import hierarchy
from .attributes import QueueAttributes, without_pods
from .plugin import over_limit
from .reclaim_rules import LendingPlugin, not_entitled, within_deserved

FINE = 2**64
"""The number of parts into which a unit is divided while shares are computed."""
CRUMB = 2**32
"""The largest sum of all rounding errors of one share, in these parts."""


class Proportion(LendingPlugin, Overused):
    """Quotas by weight."""

    name = "proportion"
    limit_name = "deserved"

    def arrange(self) -> None:
        guarantees = resources.total_of(attributes.guarantee for attributes in self.queue_attributes)
        hierarchy.set_flat_limits(self.queue_attributes, self.session.total, guarantees)

    def divide(self) -> None:
        busy = self.queue_attributes.busy
        for attributes in self.queue_attributes:
            attributes.deserved = {}
        fill(
            [attributes for attributes in self.queue_attributes if attributes.name in busy],
            without_pods(self.session.total),
        )

    def overused(self, queue: Queue) -> bool:
        return self.is_overused(self.queue_attributes.by_name[queue.name])

    def is_overused(self, attributes: QueueAttributes) -> bool:
        """Whether the queue holds all that it deserves, in every dimension."""
        return resources.less_equal(attributes.deserved, attributes.allocated)

    def ceilings(self, attributes: QueueAttributes) -> list[tuple[QueueAttributes, Resource]]:
        """Return the deserved share as the limit of a queue."""
        return [(attributes, attributes.deserved)]

    def entitled(self, attributes: QueueAttributes, amount: Mapping[str, int]) -> NotEntitled | None:
        broken = next(over_limit(attributes, amount, attributes.deserved, "deserved"), None)
        return None if broken is None else not_entitled(attributes, amount, broken.dimension)

    def kept(
        self,
        taker: QueueAttributes,  # noqa: ARG002
        giver: QueueAttributes,
        wanted: Mapping[str, int],  # noqa: ARG002
        amount: Resource,
    ) -> QueueWithinDeserved | None:
        """Return why the queue keeps the unit: it holds no more than it deserves in any dimension of the unit."""
        for name, value in amount.items():
            if value > 0 and giver.allocated.get(name, 0) > giver.deserved.get(name, 0):
                return None
        return within_deserved(giver, amount)


def fill(queue_attributes: list[QueueAttributes], total: Resource) -> None:
    """Compute `deserved` of every queue.

    In each round, the remaining amount is divided by weight among the queues that have not enough yet. Each queue gets
    at most its limit and its request, and at least its guarantee; the rest remains for the next round. Shares are
    computed in fractions of `FINE` and rounded down once, at the end: a queue that deserves 3333⅓ may hold 3333.
    """
    limits = {attributes.name: _finely(attributes.limit) for attributes in queue_attributes}
    requests = {attributes.name: _finely(attributes.request) for attributes in queue_attributes}
    guarantees = {attributes.name: _finely(attributes.guarantee) for attributes in queue_attributes}
    shares: dict[str, Resource] = {attributes.name: {} for attributes in queue_attributes}
    remaining, unmet = _finely(total), list(queue_attributes)
    while unmet and (weights := sum(attributes.queue.weight for attributes in unmet)) > 0:
        taken: Resource = {}
        still: list[QueueAttributes] = []
        for attributes in unmet:
            name, before = attributes.name, shares[attributes.name]
            part = {dimension: amount * attributes.queue.weight // weights for dimension, amount in remaining.items()}
            offered = resources.plus(before, part)
            offered = resources.smallest(offered, limits[name], missing_is_unlimited=True)
            offered = resources.smallest(offered, requests[name], missing_is_unlimited=False)
            shares[name] = hierarchy.raised_to(offered, guarantees[name])
            resources.add_to(taken, resources.minus(shares[name], before))
            if shares[name] != before and not resources.less_equal(requests[name], shares[name]):
                still.append(attributes)
        left = resources.exceeded_part(remaining, taken)
        if left == remaining or all(amount < CRUMB for amount in left.values()):
            break
        remaining, unmet = left, still
    for attributes in queue_attributes:
        attributes.deserved = {name: (amount + CRUMB) // FINE for name, amount in shares[attributes.name].items()}


def _finely(amounts: Mapping[str, Limit]) -> Resource:
    return {name: amount * FINE for name, amount in amounts.items() if amount is not UNLIMITED}
