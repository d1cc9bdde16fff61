"""capacity: queues deserve the amounts in their specs, may borrow up to their capability, and return what they borrow.

Semantics: Volcano's capacity plugin, flat and hierarchical, v1.15.

A reclaiming queue must remain within its deserved share, and a queue that loses tasks must exceed its deserved share.
Both rules also apply to the ancestors, up to the level that the policy sets (`ancestorReclaimLevel`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from ...backlog.entries import HoldingsBound
from ...framework.session import Session
from ...model import resources
from ...model.job import Job
from ...model.queue import ROOT, Queue
from ...model.resources import MAX_AMOUNT, Resource
from ...model.task import Task
from ...policy.hooks import PreemptiveInstead, VictimQueueOrder
from ...policy.schema import BOOL, INT, Argument
from ...reasons import NotEntitled, QueueLimit, QueueWithinDeserved, UnschedulableReason
from . import hierarchy
from .attributes import QueueAttributes
from .plugin import fits, over_limit
from .reclaim_rules import LendingPlugin, not_entitled, within_deserved


class Capacity(LendingPlugin, VictimQueueOrder, PreemptiveInstead):
    """Queue quotas from the queues' specs."""

    name = "capacity"
    switches = frozenset({"enableHierarchy"})
    limits_are_fixed = True
    arguments: ClassVar = {
        "ancestorReclaimLevel": Argument(
            INT,
            0,
            default=0,
            means="how many ancestors' deserved amounts count beside the queue's own, when it reclaims or loses pods",
        ),
        "DynamicResourceAllocation": Argument(BOOL, ignored="pods with resource claims wait here"),
    }

    def open(self, session: Session) -> None:
        self.tree = self.option.enabled("enableHierarchy")
        self.level = self.argument("ancestorReclaimLevel") if self.tree else 0
        if self.tree:  # ancestors of the preemptor's queue may be too full for its amounts, which is another reason
            self.lasting = ()
        super().open(session)

    def arrange(self) -> None:
        total = self.session.total
        if self.tree:
            hierarchy.link(self.queue_attributes)
            hierarchy.set_tree_limits(self.queue_attributes.by_name[ROOT], total)
            return
        guarantees = resources.total_of(attributes.guarantee for attributes in self.queue_attributes)
        hierarchy.set_flat_limits(self.queue_attributes, total, guarantees)
        for attributes in self.queue_attributes:
            cut = resources.smallest(attributes.deserved, attributes.limit, missing_is_unlimited=True)
            attributes.deserved = hierarchy.raised_to(cut, attributes.guarantee)

    # ---------------------------------------------------------------------------------------------------------- order

    def queue_order(self, queue: Queue) -> Any:
        """Order flat queues as the base class does; in a tree, compare branches before leaves."""
        if not self.tree:
            return super().queue_order(queue)
        attributes = self.queue_attributes.by_name[queue.name]
        branch = [
            (one.share, resources.is_empty(one.deserved), one.queue.creation, one.name)
            for one in attributes.ancestors[-2::-1]
        ]
        return (-queue.priority, branch)

    def victim_queue_order(self, queue: Queue, preemptor: Queue) -> int:
        """Prefer victims in the nearest relatives of the preemptor's queue."""
        if not self.tree:
            return 0
        by_name = self.queue_attributes.by_name
        return -hierarchy.common_ancestors(by_name[queue.name], by_name[preemptor.name])

    # ----------------------------------------------------------------------------------------- which queues may reclaim

    def entitled(self, attributes: QueueAttributes, amount: Mapping[str, int]) -> NotEntitled | QueueLimit | None:
        """Return None if the queue remains within its capability, and it or a near ancestor within what it deserves."""
        broken = next(over_limit(attributes, amount, attributes.limit, self.limit_name), None)
        if broken is not None:
            return broken
        if any(_within(one, amount) for one in (attributes, *self._near(attributes))):
            return None
        return not_entitled(attributes, amount)

    def never_entitled(self, attributes: QueueAttributes, amount: Mapping[str, int]) -> NotEntitled | QueueLimit | None:
        """Return None if near ancestors count: evictions below one of them can bring it below its deserved share."""
        return None if any(True for _ in self._near(attributes)) else self.entitled(attributes, amount)

    def preemptive_instead(
        self, queue: Queue, tasks: Sequence[Task], others: Sequence[Task]
    ) -> UnschedulableReason | None:
        """Return the share that the queue, or a near ancestor, would exceed with `tasks` and not with `others`.

        Only resources count that `others` request: reclaim gave the queue no others.
        """
        attributes, wanted = self.queue_attributes.by_name[queue.name], self.amount(tasks)
        for name, value in self.amount(others).items():
            for one in (attributes, *self._near(attributes)):
                free = one.deserved.get(name, 0) - one.allocated.get(name, 0)
                if name in one.deserved and value <= free < wanted.get(name, 0):
                    return not_entitled(one, wanted, name)
        return None

    def quota_bounds(self, job: Job, why: UnschedulableReason) -> tuple[HoldingsBound, ...]:
        if not isinstance(why, NotEntitled):
            return super().quota_bounds(job, why)
        attributes = self.queue_attributes.by_name[why.queue]
        bounds = [HoldingsBound(one.name) for one in self._near(attributes)]
        wanted = self.minimum(job) or {} if self.session.is_pending(job) else self._least(job)
        for name, least in wanted.items():
            bounds.append(HoldingsBound(why.queue, name, attributes.deserved.get(name, 0) - least))
        return tuple(bounds)

    def _near(self, attributes: QueueAttributes) -> Iterable[QueueAttributes]:
        """Return the ancestors whose deserved share also entitles the queue.

        They are the nearest `ancestorReclaimLevel` ancestors, without the root.
        """
        return (one for one in attributes.ancestors[1 : self.level + 1] if one.parent is not None)

    # -------------------------------------------------------------------------------------- which queues may lose tasks

    def useless(self, taker: QueueAttributes, giver: QueueAttributes, wanted: Mapping[str, int]) -> bool:
        """Whether an ancestor of `taker` is full, or keeps its rest for guarantees, and `giver` is not below it."""
        givers = set(map(id, giver.ancestors))
        return any(
            id(one) not in givers
            and (not fits(one, wanted, one.limit) or self.guarantees.is_short_below(one, taker, wanted))
            for one in taker.ancestors[1:]
        )

    def claims(self, taker: QueueAttributes, giver: QueueAttributes, gang: Resource, amount: Resource) -> bool:
        """Whether `amount` has a dimension in which `taker` may hold more and `giver` exceeds its deserved share.

        A queue above its share of cards and below its share of cpus does not reclaim cards because of its cpus:
        otherwise the losing queue could reclaim them back through a third queue, without end. The taker's gang counts
        as a whole. A queue that deserves nothing has no claim; the deserved share of a common ancestor is no claim of
        either queue.
        """
        names = list(resources.common(amount, gang))
        if not names:
            return True
        shared = set(map(id, giver.ancestors)).intersection(map(id, taker.ancestors))
        for one in (giver, *self._near(giver)):
            if id(one) not in shared and not _names_none_of(one, amount):
                names = [name for name in names if one.allocated.get(name, 0) > one.deserved.get(name, MAX_AMOUNT)]
        return any(
            any(name not in one.deserved or held <= one.deserved[name] for name, held in _with(one, gang, names))
            for one in (taker, *self._near(taker))
            if id(one) not in shared and not _names_none_of(one, gang)
        )

    def progresses(
        self, taker: QueueAttributes, giver: QueueAttributes, gang: Resource, amount: Resource, *, breaks: bool
    ) -> bool:
        """Whether the eviction takes only surplus of `giver`, or leaves the queues no farther from their shares.

        The queue `giver` loses at most what the gang takes: the rest falls idle, and allocate gives it back. The
        eviction takes only surplus if `giver` and its near ancestors exceed their deserved shares in each resource
        that they lose. Otherwise `giver` could reclaim a part, and each resource is judged that the gang does not take
        within the share of `taker`: the two queues and their near ancestors must not lack more of it in sum. For a
        whole gang, which cannot come back in part, they must also lack less of one resource.

        If the gang takes more of a resource than `taker` deserves, `giver` must keep its share of each resource even
        without the whole amount: beside such a gang, what falls idle may be of no use to `giver`, which could then
        reclaim what the gang took beyond the share of `taker`, without end. For a victim of several pods, this also
        holds for a resource that `taker` does not name: a pod of `giver` that was evicted before, and came back, would
        make the whole victim look like surplus.
        """
        loss = {name: min(value, gang[name]) for name, value in amount.items() if value and gang.get(name, 0) > 0}
        losing = [one for one in (giver, *self._near(giver)) if one not in taker.ancestors]
        if self._exceeds_share(taker, gang, losing if breaks else ()):
            return all(_keeps_share(one, name, value) for one in losing for name, value in amount.items())
        if all(one.allocated.get(name, 0) > one.deserved.get(name, -1) for one in losing for name in loss):
            return True
        queues = list({id(one): one for one in (*losing, taker, *self._near(taker))}.values())
        has_gain = not breaks
        for name, value in gang.items():
            taken = loss.get(name, 0)
            changes = [
                _change_of_lack(one, name, value * (one in taker.ancestors) - taken * (one in giver.ancestors))
                for one in queues
            ]
            is_within = -value in changes
            if sum(changes) > 0 and not is_within:
                return False
            has_gain = has_gain or sum(changes) < 0 or (is_within and max(changes) < taken)
        return has_gain

    def _exceeds_share(self, taker: QueueAttributes, gang: Resource, losing: Iterable[QueueAttributes]) -> bool:
        """Whether `gang` takes more of a resource than `taker` deserves.

        If neither `taker` nor a near ancestor names a resource that a queue of `losing` deserves, it deserves none.
        """
        for name, held in _with(taker, gang, (name for name, value in gang.items() if value > 0)):
            if name in taker.deserved:
                exceeds = held > taker.deserved[name]
            else:
                exceeds = any(one.deserved.get(name, 0) > 0 for one in losing) and not any(
                    name in one.deserved for one in self._near(taker)
                )
            if exceeds:
                return True
        return False

    def kept(
        self, taker: QueueAttributes, giver: QueueAttributes, wanted: Mapping[str, int], amount: Resource
    ) -> QueueWithinDeserved | None:
        """Return why the queue `giver` keeps `amount`; None if it may lose the amount.

        `giver` and its near ancestors must all exceed their deserved shares, except for an ancestor that is also that
        of `taker` at the same height.
        """
        if _names_none_of(giver, amount) and self._both_without(taker, giver, wanted):
            return within_deserved(giver, amount)
        if not _above(giver, amount):
            return within_deserved(giver, amount)
        for height, one in enumerate(giver.ancestors[1 : self.level + 1], start=1):
            same = height < len(taker.ancestors) and taker.ancestors[height] is one
            if one.parent is not None and not same and not _above(one, amount):
                return within_deserved(one, amount)
        return None

    def _both_without(self, taker: QueueAttributes, giver: QueueAttributes, wanted: Mapping[str, int]) -> bool:
        """Whether two near relatives both deserve nothing: then neither reclaims from the other."""
        if self.level == 0 or not _names_none_of(taker, wanted):
            return False
        mine = {id(one) for one in self._near(taker)}
        return any(id(one) in mine for one in self._near(giver))


def _keeps_share(attributes: QueueAttributes, name: str, less: int) -> bool:
    """Whether the queue holds what it deserves of a resource, if it deserves any, after it has lost `less` of it."""
    return name not in attributes.deserved or attributes.allocated.get(name, 0) - less >= attributes.deserved[name]


def _change_of_lack(attributes: QueueAttributes, name: str, more: int) -> int:
    """Return by how much the queue's lack of a resource grows if it holds `more`; 0 without a deserved share of it."""
    lack = attributes.deserved.get(name, 0) - attributes.allocated.get(name, 0)
    return max(lack - more, 0) - max(lack, 0) if name in attributes.deserved else 0


def _with(attributes: QueueAttributes, wanted: Mapping[str, int], names: Iterable[str]) -> Iterable[tuple[str, int]]:
    """Return what the queue would hold with `wanted` more, in the given dimensions."""
    return ((name, attributes.allocated.get(name, 0) + wanted.get(name, 0)) for name in names)


def _within(attributes: QueueAttributes, amount: Mapping[str, int]) -> bool:
    """Whether the queue would be within its deserved share in some requested dimension with `amount` more."""
    return resources.any_within(resources.plus(attributes.allocated, amount), attributes.deserved, amount)


def _names_none_of(attributes: QueueAttributes, amount: Mapping[str, int]) -> bool:
    """Whether the queue deserves nothing in any dimension of `amount`."""
    return not resources.overlap(amount, attributes.deserved)


def _above(attributes: QueueAttributes, amount: Resource) -> bool:
    """Whether the queue exceeds its deserved share in a dimension of `amount`.

    A queue that deserves nothing in these dimensions always does.
    """
    return _names_none_of(attributes, amount) or resources.any_above(attributes.allocated, attributes.deserved, amount)
