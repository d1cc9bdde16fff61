"""Faults in the choice of victims: which pods are evicted, how many, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from schedspec.scheduler.backlog import cycle_end
from schedspec.scheduler.backlog.cycle_end import CycleEnd
from schedspec.scheduler.backlog.entries import Memory
from schedspec.scheduler.backlog.view import BacklogView
from schedspec.scheduler.framework.nominations import Nominations
from schedspec.scheduler.live.loop import CycleLoop
from schedspec.scheduler.model.job import Job
from schedspec.scheduler.model.task import HOLDING, Task, TaskStatus
from schedspec.scheduler.plugins.queue.capacity import Capacity
from schedspec.scheduler.preemption import eligibility, order, outranked, preemptor
from schedspec.scheduler.preemption.eligibility import VictimFilter
from schedspec.scheduler.preemption.quota_bound import QuotaBound
from schedspec.scheduler.preemption.reprieve import Reprieve
from schedspec.scheduler.preemption.request import PreemptionRequest
from schedspec.scheduler.preemption.units import Unit
from schedspec.scheduler.reasons import ProtectedBy
from tests.test_the_tests.faults.fault import CONDITIONS, ORDER, RECLAIM, Fault, always, instead


def _ignore_protection(ignored: ProtectedBy) -> Callable[[], None]:
    """Return an injection that ignores one protection that applies before any plugin votes."""
    known = PreemptionRequest.protection

    def protection(self: PreemptionRequest, preemptor: Any, task: Any) -> ProtectedBy | None:
        found = known(self, preemptor, task)
        return None if found is ignored else found

    return instead((PreemptionRequest, "protection", protection))


def _evict_before_running() -> None:
    known = PreemptionRequest.__post_init__

    def concerns_all_that_hold(self: PreemptionRequest) -> None:
        known(self)
        self.statuses = HOLDING

    instead((PreemptionRequest, "__post_init__", concerns_all_that_hold))()


def _most_important_first() -> None:
    level = order.Order.level
    instead((order.Order, "level", lambda self, job, priority: level(self, job, -priority)))()


def _oldest_first() -> None:
    of = order.Ages.of
    instead((order.Ages, "of", lambda self, task: (order.Last(of(self, task)),)))()


def _farthest_first() -> None:
    near = Capacity.victim_queue_order
    instead((Capacity, "victim_queue_order", lambda self, queue, preemptor: -near(self, queue, preemptor)))()


def _written_in_reverse() -> None:
    waves = CycleLoop._by_priority
    instead((CycleLoop, "_by_priority", lambda self, evictions: waves(self, evictions)[::-1]))()


def _pod_by_pod(self: VictimFilter, candidates: Any) -> list[Unit]:
    return [Unit(self._session.jobs[task.job], (task,)) for task in candidates]


def _gang_has_no_veto() -> None:
    vote = eligibility.VictimFilter._vote

    def voted(self: VictimFilter, entry: Any, *more: Any) -> bool | None:
        return True if entry.plugin == "gang" else vote(self, entry, *more)

    instead((eligibility.VictimFilter, "_vote", voted))()


def _judges_gangs_last() -> None:
    objected = Reprieve._objected

    def as_if_last(gang: Any, back: Any, later: Any, statement: Any) -> bool:
        return objected(gang, back, (), statement)

    instead((Reprieve, "_objected", staticmethod(as_if_last)))()


def _forgets_holds() -> None:
    memory = CycleEnd.memory

    def without_holds(self: CycleEnd) -> Memory:
        found = memory(self)
        found.held = {}
        return found

    instead((cycle_end, "_holds_capacity", lambda job: job.waiting > 0), (CycleEnd, "memory", without_holds))()


def _in_order_of_names(_: Any, job: Job) -> list[Task]:
    return sorted(job.by_status.get(TaskStatus.PENDING, {}).values(), key=lambda task: task.key)


def _loses_what_falls_idle(_: Capacity, taker: Any, giver: Any, gang: Any, amount: Any, **__: bool) -> bool:
    """Count as lost all that the victim holds, not only what the preemptor takes of it."""
    lacks = lambda queue, name, more: max(queue.deserved.get(name, 0) - queue.allocated.get(name, 0) - more, 0)  # noqa: E731
    names = giver.deserved.keys() | taker.deserved.keys()
    lost = {name: lacks(giver, name, -amount.get(name, 0)) - lacks(giver, name, 0) for name in names}
    gained = {name: lacks(taker, name, 0) - lacks(taker, name, gang.get(name, 0)) for name in names}
    return not any(lost.values()) or all(lost[name] <= gained[name] for name in names)


FAULTS = (
    Fault("wrong-order-of-victims", "evicts the most important pods first", _most_important_first, (ORDER,)),
    Fault(
        "oldest-first",
        "evicts the oldest of equal jobs first",
        _oldest_first,
        ("queue_capacity/shares: Of equal jobs",),
    ),
    Fault("cousin-first", "evicts from the farthest queue of the hierarchy first", _farthest_first, ("hierarchy/",)),
    Fault("told-in-reverse", "writes the evictions of the most important victims first", _written_in_reverse, (ORDER,)),
    Fault(
        "freed-room-lost",
        "forgets for which job capacity was freed",
        instead((Nominations, "claim", always(None))),
        ("queue_capacity/freed_room: A job with spare",),
    ),
    Fault(
        "given-back-above-quota",
        "spares victims without checking the quota of their queue",
        instead((Reprieve, "entitled", lambda *_: [])),
        ("queue_capacity/freed_room: A queue at",),
    ),
    Fault(
        "gang-evicted-to-the-last",
        "evicts a whole gang although a part of it could keep running",
        instead((Reprieve, "without_spare_members", lambda _, victims, *__: list(victims))),
        ("queue_capacity/freed_room: The third",),
    ),
    Fault(
        "gang-judged-last",
        "judges the rest of a gang as if it were evicted after all others",
        _judges_gangs_last,
        ("queue_capacity/freed_room: A spare",),
    ),
    Fault(
        "whole-excess",
        "evicts the whole excess of a queue for one pod",
        instead((QuotaBound, "permits", always(True)), (QuotaBound, "keeps", always(True))),
        ("queue_capacity/freed_room: A queue far",),
    ),
    Fault(
        "bound-within-limits",
        "bounds evictions also in resources of which the queue holds no more than its limit",
        instead((QuotaBound, "_exceeded", property(lambda self: list(self._limits.values())))),
        ("queue_capacity/shapes: A pod of 16 cpus",),
        acts=False,
    ),
    Fault(
        "idle-counts-as-lost",
        "reclaims no pod that holds more of what its queue deserves than the claimant requests",
        instead((Capacity, "progresses", _loses_what_falls_idle)),
        ("queue_capacity/shapes: A pod of 4 cpus", "queue_capacity/shapes: A pod without a card"),
        acts=False,
    ),
    Fault(
        "reclaimed-next",
        "preempts for a job that another queue reclaims next",
        instead((outranked, "_reclaimed_next", always(None))),
        ("queue_capacity/shapes: Nobody is preempted",),
    ),
    Fault(
        "launcher-first",
        "never places a gang whose first pod has no requests",
        instead((preemptor, "waiting_tasks", _in_order_of_names)),
        ("queue_capacity/waiting: A job with a launcher",),
        acts=False,
    ),
    Fault(
        "left-to-allocate",
        "skips a job whose idle capacity another job has received",
        instead((BacklogView, "left_to_allocate", always(None))),
        ("queue_capacity/waiting: A job whose idle",),
        acts=False,
    ),
    Fault(
        "hold-forgotten",
        "forgets the capacity that a waiting job holds",
        _forgets_holds,
        ("queue_capacity/waiting: A job that waited",),
    ),
    Fault(
        "gang-evicted-in-part",
        "evicts single pods of a gang that needs all of them",
        instead((VictimFilter, "units", _pod_by_pod)),
        (f"{CONDITIONS}: A gang", f"{CONDITIONS}: A job that needs", "as a whole or not at all"),
    ),
    Fault(
        "gang-veto-ignored",
        "evicts whole gangs that the plugin gang protects in its tier",
        _gang_has_no_veto,
        (f"{CONDITIONS}: A job that needs",),
    ),
    Fault(
        "evict-protected-queue",
        "evicts from queues that are not reclaimable",
        _ignore_protection(ProtectedBy.QUEUE),
        (f"{CONDITIONS}: With reclaimable",),
    ),
    Fault(
        "evict-protected-pod",
        "evicts pods that are marked as not preemptable",
        _ignore_protection(ProtectedBy.PREEMPTABLE),
        (f"{CONDITIONS}: A job whose",),
    ),
    Fault(
        "evict-before-running",
        "evicts pods that are bound but do not run yet",
        _evict_before_running,
        (f"{CONDITIONS}: A pod that is bound", f"{RECLAIM}what_becomes"),
    ),
)
