"""Queues that lend: what both capacity and proportion ask before a queue gives something back.

The one rule: a unit goes only from a queue that is above what it deserves before and keeps its guarantee after, and
never where its queue, with the unit pending again, could take the room back from whom it was given to: two queues
never play ping-pong with a pod.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from ...model import resources
from ...model.queue import Queue
from ...model.resources import Resource
from ...model.task import Task
from ...policy.model import PluginOption
from ...reasons import (
    NotEntitled,
    OfNoUse,
    PingPong,
    Protection,
    QueueGuarantee,
    QueueLimit,
    QueueWithinDeserved,
    UnschedulableReason,
)
from .attributes import QueueAttributes
from .plugin import QueuePlugin


class LendingPlugin(QueuePlugin):
    """Base of the plugins whose queues deserve something."""

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        self._known: dict[tuple[Hashable, ...], dict[tuple[str, bytes], Protection | None]] = {}
        """Who asks, and for how much → who is asked for what → the answer; as long as no queue's holdings change."""
        self._known_at = -1
        self._preemptor: Task | None = None
        self._answers: dict[tuple[str, bytes], Protection | None] = {}

    def entitled(self, attributes: QueueAttributes, amount: Mapping[str, int]) -> NotEntitled | QueueLimit | None:
        """None if the queue may reclaim ``amount`` more from others, or why not."""
        raise NotImplementedError

    def useless(self, taker: QueueAttributes, giver: QueueAttributes, wanted: Mapping[str, int]) -> bool:  # noqa: ARG002
        """Whether room from this giver cannot help the taker."""
        return False

    def claims(self, taker: QueueAttributes, wanted: Mapping[str, int], amount: Mapping[str, int]) -> bool:  # noqa: ARG002
        """Whether any of ``amount`` is what the taker, which wants ``wanted``, may reclaim."""
        return True

    def kept(
        self, taker: QueueAttributes, giver: QueueAttributes, wanted: Mapping[str, int], amount: Resource
    ) -> QueueWithinDeserved | None:
        """Why the giver keeps ``amount``: it is not above what it deserves. None if it is."""
        raise NotImplementedError

    def preemptive(self, queue: Queue, task: Task) -> UnschedulableReason | None:
        attributes = self.queue_attributes.by_name[queue.name]
        return self.closed(attributes) or self.entitled(attributes, self.queue_attributes.amount(task))

    def denial(
        self, preemptor: Task, taker: QueueAttributes, unit: Sequence[Task], giver: QueueAttributes, amount: Resource
    ) -> Protection | None:
        if len(unit) > 1:
            return self._denial(preemptor, taker, unit, giver, amount)
        # Thousands of pods of one shape in one queue are one question.
        if self._known_at != self.queue_attributes.version:
            self._known.clear()
            self._known_at, self._preemptor = self.queue_attributes.version, None
        if self._preemptor is not preemptor:
            self._preemptor = preemptor
            asks = (taker.name, preemptor.shape, self._lacking(preemptor), preemptor.preemptable)
            self._answers = self._known.setdefault(asks, {})
        key = (giver.name, unit[0].shape)
        if key not in self._answers:
            self._answers[key] = self._denial(preemptor, taker, unit, giver, amount)
        return self._answers[key]

    def _denial(
        self, preemptor: Task, taker: QueueAttributes, unit: Sequence[Task], giver: QueueAttributes, amount: Resource
    ) -> Protection | None:
        wanted = self.queue_attributes.amount(preemptor)
        of_use = resources.common(amount, preemptor.init_request) and not self.useless(taker, giver, wanted)
        if not of_use or not self.claims(taker, wanted, amount):
            return OfNoUse()
        for one in giver.ancestors:
            if one.guarantee and one not in taker.ancestors:
                after = resources.minus(one.allocated, amount)
                if not resources.less_equal(one.guarantee, after):
                    return _below_guarantee(one, after)
        return self.kept(taker, giver, wanted, amount) or self._ping_pong(preemptor, taker, unit, giver, amount)

    def _lacking(self, preemptor: Task) -> int:
        """How many tasks the preemptor's job needs yet to start, itself included; they are taken to be alike."""
        job = self.session.jobs[preemptor.job]
        return max(job.min_available - job.ready - job.waiting, 1)

    def _ping_pong(
        self, preemptor: Task, taker: QueueAttributes, unit: Sequence[Task], giver: QueueAttributes, amount: Resource
    ) -> PingPong | None:
        """Whether the giver, with the unit pending again, could take from the taker what the taker takes now, once all
        of the preemptor's gang has its place.
        """
        if not (preemptor.preemptable and taker.queue.reclaimable):
            return None
        count = self._lacking(preemptor)
        wanted = {name: value * count for name, value in self.queue_attributes.amount(preemptor).items()}
        job = self.session.jobs[unit[0].job]
        again = self.amount(unit[: max(1, min(job.min_available, len(unit)))])
        giver.add(amount, -1)
        taker.add(wanted, 1)
        try:
            if not resources.common(wanted, again) or self.entitled(giver, again) is not None:
                return None
            if not self.claims(giver, again, wanted):
                return None
            if self.kept(giver, taker, again, wanted) is not None:
                return None
            name = next((n for n in again if n in giver.deserved), next(iter(again), ""))
            return PingPong(giver.name, name, giver.allocated.get(name, 0), giver.deserved.get(name, 0))
        finally:
            taker.add(wanted, -1)
            giver.add(amount, 1)


def within_deserved(attributes: QueueAttributes, amount: Mapping[str, int]) -> QueueWithinDeserved:
    """The denial, with the numbers of the first dimension of ``amount`` that the queue deserves something of."""
    name = next((n for n in amount if n in attributes.deserved), next(iter(amount), ""))
    return QueueWithinDeserved(
        attributes.name, name, attributes.allocated.get(name, 0), attributes.deserved.get(name, 0)
    )


def not_entitled(attributes: QueueAttributes, amount: Mapping[str, int], dimension: str = "") -> NotEntitled:
    """Why a queue may not reclaim, with the numbers of ``dimension``, or of the first one asked for."""
    name = dimension or next((n for n, v in amount.items() if v > 0), "")
    held, deserved = attributes.allocated.get(name, 0), attributes.deserved.get(name, 0)
    return NotEntitled(attributes.name, name, held, amount.get(name, 0), deserved)


def _below_guarantee(attributes: QueueAttributes, after: Resource) -> QueueGuarantee:
    name, guaranteed = next((n, v) for n, v in attributes.guarantee.items() if after.get(n, 0) < v)
    return QueueGuarantee(attributes.name, name, attributes.allocated.get(name, 0), guaranteed)
