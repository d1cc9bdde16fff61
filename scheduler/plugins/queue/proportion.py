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
from .attributes import Account, without_pods
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
        guarantees = resources.total_of(account.guarantee for account in self.accounts)
        for account in self.accounts:
            account.limit = hierarchy.flat_limit(account, self.session.total, guarantees)

    def settle(self) -> None:
        busy = {job.queue for job in self.session.jobs.values()}
        for account in self.accounts:
            account.deserved = {}
        fill([account for account in self.accounts if account.name in busy], without_pods(self.session.total))

    def overused(self, queue: Queue) -> bool:
        return self.is_overused(self.accounts.by_name[queue.name])

    def is_overused(self, account: Account) -> bool:
        """Whether the queue holds all that it deserves, in every dimension."""
        return resources.less_equal(account.deserved, account.allocated)

    def ceilings(self, account: Account) -> list[tuple[Account, Resource]]:
        """A queue may not hold more than it deserves."""
        return [(account, account.deserved)]

    def entitled(self, account: Account, amount: Mapping[str, float]) -> NotEntitled | None:
        broken = next(over_limit(account, amount, account.deserved, "deserved"), None)
        return None if broken is None else not_entitled(account, amount, broken.dimension)

    def kept(
        self,
        taker: Account,  # noqa: ARG002
        giver: Account,
        wanted: Mapping[str, float],  # noqa: ARG002
        amount: Resource,
    ) -> QueueWithinDeserved | None:
        """A queue gives while it is above what it deserves in a dimension that the unit holds."""
        for name, value in amount.items():
            if value > 0 and giver.allocated.get(name, 0.0) > giver.deserved.get(name, 0.0) + EPSILON:
                return None
        return within_deserved(giver, amount)


def fill(accounts: list[Account], total: Resource) -> None:
    """Give every account its ``deserved``.

    Round by round what remains is shared out by weight among those that have not enough yet; each takes at most its
    limit and what it asks for, and at least its guarantee; what is left over remains for the next round.
    """
    remaining, unmet = dict(total), list(accounts)
    while unmet and (weights := sum(account.queue.weight for account in unmet)) > 0:
        taken: Resource = {}
        still: list[Account] = []
        for account in unmet:
            before = account.deserved
            part = account.queue.weight / weights
            offered = resources.plus(before, {name: amount * part for name, amount in remaining.items()})
            offered = resources.smallest(offered, account.limit, missing_is_unlimited=True)
            offered = resources.smallest(offered, account.request, missing_is_unlimited=False)
            account.deserved = hierarchy.raised_to(offered, account.guarantee)
            resources.add_to(taken, resources.minus(account.deserved, before))
            if account.deserved != before and not resources.less_equal(account.request, account.deserved):
                still.append(account)
        left = {name: max(amount - taken.get(name, 0.0), 0.0) for name, amount in remaining.items()}
        if left == remaining or resources.is_empty(left):
            return
        remaining, unmet = left, still
