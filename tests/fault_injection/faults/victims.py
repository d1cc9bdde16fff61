"""Faults in the choice of victims: whom, how many, in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduler.framework.nominations import Nominations
from scheduler.live.loop import CycleLoop
from scheduler.model.task import HOLDING
from scheduler.plugins.queue.capacity import Capacity
from scheduler.preemption import eligibility, order, request
from scheduler.preemption.eligibility import VictimFilter
from scheduler.preemption.reprieve import Reprieve
from scheduler.preemption.request import PreemptionRequest
from scheduler.preemption.units import GANG, Unit
from tests.fault_injection.faults.fault import CONDITIONS, ORDER, RECLAIM, Fault, always, instead


def _blind_to(*protections: str) -> Callable[[], None]:
    """Some of what protects a task before any plugin is asked protects it no more."""
    known = PreemptionRequest.protection

    def protection(self: PreemptionRequest, preemptor: Any, task: Any) -> str:
        said = known(self, preemptor, task)
        return "" if said in protections else said

    return instead((PreemptionRequest, "protection", protection))


def _takes_what_does_not_run() -> None:
    def statuses(_: PreemptionRequest) -> int:
        return HOLDING

    instead((request.PreemptionRequest, "statuses", property(statuses)))()


def _most_important_first() -> None:
    level = order.Order.level
    instead((order.Order, "level", lambda self, job, priority: level(self, job, -priority)))()


def _oldest_first() -> None:
    of = order.Ages.of
    instead((order.Ages, "of", lambda self, task: (order.Last(of(self, task)),)))()


def _farthest_first() -> None:
    near = Capacity.victim_queue_order
    instead((Capacity, "victim_queue_order", lambda self, queue, preemptor: -near(self, queue, preemptor)))()


def _told_in_reverse() -> None:
    waves = CycleLoop._by_priority
    instead((CycleLoop, "_by_priority", lambda self, evictions: waves(self, evictions)[::-1]))()


def _pod_by_pod(self: VictimFilter, candidates: Any) -> list[Unit]:
    return [Unit(self._session.jobs[task.job], (task,)) for task in candidates]


def _gang_has_no_veto() -> None:
    vote = eligibility.VictimFilter._vote

    def voted(self: VictimFilter, entry: Any, *more: Any) -> bool | None:
        return True if entry.plugin == GANG else vote(self, entry, *more)

    instead((eligibility.VictimFilter, "_vote", voted))()


FAULTS = (
    Fault("wrong-order-of-victims", "evicts the most important first", _most_important_first, (ORDER,)),
    Fault(
        "oldest-first",
        "evicts the oldest of equals",
        _oldest_first,
        ("queue_capacity/shares: Of equal jobs",),
    ),
    Fault("cousin-first", "takes from the farthest relative first", _farthest_first, ("hierarchy/",)),
    Fault("told-in-reverse", "tells the most important victims first", _told_in_reverse, (ORDER,)),
    Fault(
        "freed-room-lost",
        "forgets for whom room was freed",
        instead((Nominations, "claim", always(None))),
        ("queue_capacity/freed_room: A job with more",),
    ),
    Fault(
        "given-back-above-quota",
        "gives victims back without asking what their queue may hold",
        instead((Reprieve, "entitled", lambda *_: [])),
        ("queue_capacity/freed_room: A queue at",),
    ),
    Fault(
        "gang-evicted-to-the-last",
        "takes all of a gang where a part of it could stay",
        instead((Reprieve, "without_spare_members", lambda _, victims, *__: list(victims))),
        ("queue_capacity/freed_room: The third",),
    ),
    Fault(
        "gang-evicted-in-part",
        "takes single pods of a gang that needs them all",
        instead((VictimFilter, "units", _pod_by_pod)),
        (f"{CONDITIONS}: A gang", f"{CONDITIONS}: A job of four", "as a whole or not at all"),
    ),
    Fault(
        "gang-veto-ignored",
        "takes whole gangs that gang protects in its tier",
        _gang_has_no_veto,
        (f"{CONDITIONS}: A job of four",),
    ),
    Fault(
        "evict-protected-queue",
        "takes from queues that are not reclaimable",
        _blind_to("queue"),
        (f"{CONDITIONS}: A queue that",),
    ),
    Fault(
        "evict-protected-pod",
        "takes pods that say they are not preemptable",
        _blind_to("preemptable"),
        (f"{CONDITIONS}: A pod whose",),
    ),
    Fault(
        "evict-before-running",
        "takes pods that are bound and not yet running",
        _takes_what_does_not_run,
        (f"{CONDITIONS}: A pod that is bound", f"{RECLAIM}what_becomes"),
    ),
)
