"""Faults in the queue plugins: what a queue may hold, what it may reclaim, and what it has to return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from schedspec.scheduler.model.queue import Queue
from schedspec.scheduler.plugins.queue import capacity_card, hierarchy
from schedspec.scheduler.plugins.queue.admission import Admission
from schedspec.scheduler.plugins.queue.admission_backlog import WaitingReservations
from schedspec.scheduler.plugins.queue.capacity import Capacity
from schedspec.scheduler.plugins.queue.capacity_card import CapacityCard
from schedspec.scheduler.plugins.queue.guarantees import Guarantees
from schedspec.scheduler.plugins.queue.plugin import QueuePlugin
from schedspec.scheduler.plugins.queue.proportion import Proportion
from schedspec.scheduler.plugins.queue.reclaim_rules import LendingPlugin
from schedspec.scheduler.plugins.queue.service_type import OFFLINE, ONLINE
from schedspec.scheduler.policy.hooks import Vote
from tests.test_the_tests.faults.fault import CONDITIONS, RECLAIM, Fault, always, instead

_CARDS = f"{RECLAIM}online_reclaims_offline"

GIVES_ALL = (
    (Capacity, "kept", always(None)),
    (Proportion, "kept", always(None)),
    (LendingPlugin, "_ping_pong", always(None)),
)
CLAIMS_ALL = (
    (Capacity, "entitled", always(None)),
    (Proportion, "entitled", always(None)),
    (Capacity, "claims", always(True)),
    (LendingPlugin, "_ping_pong", always(None)),  # it checks whether the victim's queue is entitled
)


def _cuts_guarantees() -> None:
    known = LendingPlugin.denial

    def denial(self: Any, preemptor: Any, taker: Any, unit: Sequence[Any], giver: Any, amount: Any) -> Any:
        guarantees = {id(one): (one, one.guarantee) for one in giver.ancestors}
        for one, _ in guarantees.values():
            one.guarantee = {}
        try:
            return known(self, preemptor, taker, unit, giver, amount)
        finally:
            for one, guarantee in guarantees.values():
                one.guarantee = guarantee

    instead((LendingPlugin, "denial", denial), *GIVES_ALL)()


def _lends_guarantees() -> None:
    set_limits = hierarchy.set_flat_limits
    instead((hierarchy, "set_flat_limits", lambda queues, total, guarantees: set_limits(queues, total, {})))()


def _any_work_claims() -> None:
    """Let offline work reclaim as if it were online."""
    kind = CapacityCard._type
    preemptive = CapacityCard.preemptive

    def entitled_as_online(self: Any, queue: Any, task: Any) -> Any:
        self._type = always(ONLINE)
        try:
            return preemptive(self, queue, task)
        finally:
            self._type = kind.__get__(self)

    instead((CapacityCard, "preemptive", entitled_as_online))()


def _any_work_gives() -> None:
    """Let online services be reclaimed as if they were offline."""
    denial = CapacityCard.denial
    kind = CapacityCard._type

    def denied_as_offline(self: Any, *about: Any) -> Any:
        self._type = always(OFFLINE)
        try:
            return denial(self, *about)
        finally:
            self._type = kind.__get__(self)

    instead((CapacityCard, "denial", denied_as_offline))()


def _any_priority_gives() -> None:
    denial = CapacityCard.denial

    def denied_but_for_priority(self: Any, preemptor: Any, *about: Any) -> Any:
        rank = capacity_card.rank
        capacity_card.rank = lambda task, job: 1 if task is preemptor else 0
        try:
            return denial(self, preemptor, *about)
        finally:
            capacity_card.rank = rank

    instead((CapacityCard, "denial", denied_but_for_priority))()


def _equal_weights() -> None:
    known = Queue.__init__

    def weigh(self: Queue, queue: Any) -> None:
        known(self, queue)
        self.weight = 1

    instead((Queue, "__init__", weigh))()


def _no_limits(*_: Any) -> Iterator[Any]:
    return iter(())


FAULTS = (
    Fault(
        "ignore-deserved",
        "lets every queue reclaim from every queue",
        instead(*GIVES_ALL, *CLAIMS_ALL),
        ("hierarchy/rules: The", f"{CONDITIONS}: A queue at what", "queue_capacity/shares: A queue at"),
    ),
    Fault(
        "claims-beyond-deserved",
        "lets a queue reclaim more than it deserves",
        instead(*CLAIMS_ALL),
        ("hierarchy/rules: The", "queue_capacity/shares: A queue at"),
    ),
    Fault(
        "takes-from-the-poor",
        "reclaims from queues that hold no more than they deserve",
        instead(*GIVES_ALL),
        (f"{CONDITIONS}: A queue at what", "queue_capacity/shares: Reclaim", "queue_weights/four"),
    ),
    Fault(
        "over-capability",
        "ignores capabilities and quotas of queues",
        instead(
            (QueuePlugin, "ceilings", always([])),
            (CapacityCard, "limits", _no_limits),
            (Admission, "vote", always(Vote.PERMIT)),
        ),
        (
            "hierarchy/rules: A team",
            "queue_capacity/shares: The",
            "queue_admission/admission: A ",
            "card_quota/quota_by_model: Cards run",
        ),
    ),
    Fault(
        "weights-ignored",
        "ignores the weights of queues",
        _equal_weights,
        ("queue_weights/",),
    ),
    Fault(
        "lends-guarantees",
        "lends capacity that is guaranteed to another queue",
        _lends_guarantees,
        ("queue_capacity/shares: A queue cannot use",),
    ),
    Fault(
        "lends-guarantee-together",
        "lets two queues use up together what is guaranteed to a third",
        instead((Guarantees, "short", _no_limits)),
        ("queue_capacity/guarantees: The",),
    ),
    Fault(
        "reserves-for-ever",
        "counts reservations of jobs that no node can hold against other jobs",
        instead((WaitingReservations, "void", always({}))),
        ("queue_admission/reservations: A pod",),
    ),
    Fault(
        "take-guarantee",
        "reclaims capacity that is guaranteed to the victim's queue",
        _cuts_guarantees,
        ("queue_capacity/shares: Reclaim", "queue_capacity/shares: A pod"),
    ),
    Fault("offline-takes", "lets offline work reclaim", _any_work_claims, (f"{_CARDS}: A high-priority job",)),
    Fault(
        "online-gives",
        "evicts online services as victims",
        _any_work_gives,
        (f"{_CARDS}: A high-priority service w",),
    ),
    Fault(
        "low-takes-high", "reclaims from pods of higher priority", _any_priority_gives, (f"{_CARDS}: A low-priority",)
    ),
)
