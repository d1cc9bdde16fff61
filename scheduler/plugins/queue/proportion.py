"""proportion: queues deserve parts of the cluster by weight, never more than they ask for.

The one rule: what a queue deserves follows from weights, requests and the size of the cluster alone, by filling all
queues like vessels at once (semantics of Volcano's proportion plugin, v1.15). A queue never holds more than it
deserves.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...framework.session import Register, Session
from ...model import resources
from ...model.queue import Queue
from ...model.resources import EPSILON, Resource
from ...reasons import NotEntitled, QueueWithinDeserved
from . import hierarchy
from .attributes import QueueAttributes, without_pods
from .plugin import over_limit
from .reclaim_rules import LendingPlugin, not_entitled, within_deserved


class Proportion(LendingPlugin):
    """See the module."""

    name = "proportion"
    limit_name = "deserved"

    def open(self, session: Session, register: Register) -> None:
        super().open(session, register)
        register("overused", self.overused)

    def arrange(self) -> None:
        guarantees = resources.total_of(attributes.guarantee for attributes in self.queue_attributes)
        for attributes in self.queue_attributes:
            attributes.limit = hierarchy.flat_limit(attributes, self.session.total, guarantees)

    def settle(self) -> None:
        busy = {job.queue for job in self.session.jobs.values()}
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
        """A queue may not hold more than it deserves."""
        return [(attributes, attributes.deserved)]

    def entitled(self, attributes: QueueAttributes, amount: Mapping[str, float]) -> NotEntitled | None:
        broken = next(over_limit(attributes, amount, attributes.deserved, "deserved"), None)
        return None if broken is None else not_entitled(attributes, amount, broken.dimension)

    def kept(
        self,
        taker: QueueAttributes,  # noqa: ARG002
        giver: QueueAttributes,
        wanted: Mapping[str, float],  # noqa: ARG002
        amount: Resource,
    ) -> QueueWithinDeserved | None:
        """A queue gives while it is above what it deserves in a dimension that the unit holds."""
        for name, value in amount.items():
            if value > 0 and giver.allocated.get(name, 0.0) > giver.deserved.get(name, 0.0) + EPSILON:
                return None
        return within_deserved(giver, amount)


def fill(queue_attributes: list[QueueAttributes], total: Resource) -> None:
    """Give every account its ``deserved``.

    Round by round what remains is shared out by weight among those that have not enough yet; each takes at most its
    limit and what it asks for, and at least its guarantee; what is left over remains for the next round.
    """
    remaining, unmet = dict(total), list(queue_attributes)
    while unmet and (weights := sum(attributes.queue.weight for attributes in unmet)) > 0:
        taken: Resource = {}
        still: list[QueueAttributes] = []
        for attributes in unmet:
            before = attributes.deserved
            part = attributes.queue.weight / weights
            offered = resources.plus(before, {name: amount * part for name, amount in remaining.items()})
            offered = resources.smallest(offered, attributes.limit, missing_is_unlimited=True)
            offered = resources.smallest(offered, attributes.request, missing_is_unlimited=False)
            attributes.deserved = hierarchy.raised_to(offered, attributes.guarantee)
            resources.add_to(taken, resources.minus(attributes.deserved, before))
            if attributes.deserved != before and not resources.less_equal(attributes.request, attributes.deserved):
                still.append(attributes)
        left = {name: max(amount - taken.get(name, 0.0), 0.0) for name, amount in remaining.items()}
        if left == remaining or resources.is_empty(left):
            return
        remaining, unmet = left, still
