"""Compute what the next cycles need from a cycle that ends: which jobs wait, and what could help each of them.

The entry of a job names the changes that could help the job (`scheduler.backlog.hints`), and the time when it is tried
again in any case. The entry is removed if the job got something, or if no action had a reason to refuse the job.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

import msgspec

from ..model.changes import GROUPS, PLACED, REQUESTS, VOLUMES
from ..model.job import Job
from ..model.nodes import Nodes
from ..model.task import TaskStatus
from ..placement import Placement
from ..reasons import (
    ClusterLimit,
    GangShort,
    GuaranteeKept,
    NoNode,
    NotEntitled,
    NotStarving,
    NoVictims,
    QueueLimit,
    QueueOverused,
    Refusal,
    Unplaceable,
    UnschedulableReason,
)
from .entries import HoldingsBound, Memory, Waiting
from .hints import ANY, ROOM, fits_nowhere, hints_of, least_of
from .reservations import Reservations
from .view import BacklogView

RETRY_SLOTS = 6
"""Retry times per retry interval. Retries by time alone are rounded up to these times, so that jobs share cycles."""
MAX_DOUBLINGS = 4
"""How often the retry interval doubles, at most, for a job that is tried again and again because of time alone.

Jobs that fit nowhere begin with the longest interval: the changes that can help them are few and known for certain.
"""
MEMORY = 1 / 2
"""The part of the steps of earlier cycles that still counts when queues and namespaces take turns."""
_CAPACITY_REASONS = (
    QueueLimit, GuaranteeKept, ClusterLimit, NoNode, Unplaceable, GangShort, NotStarving, NotEntitled, NoVictims,
    QueueOverused,
)  # fmt: skip
"""Reasons that also refuse every equal job of lower priority, whenever that job was created."""
CHEAP = 1 / 16
"""The share of a cycle's budget that a failed attempt may cost without a backoff."""
BACKOFF = 5.0
"""Seconds of backoff after a failed attempt that used a whole budget; doubled after each expensive attempt in a row."""
MAX_BACKOFF, MAX_BACKOFF_LATE = 10.0, 60.0
"""The longest backoff in seconds, and the longest one of a job that exceeded the maximum steps of one job."""


@dataclass(frozen=True, slots=True)
class CycleOutcome:
    """The part of a cycle's outcome that the next cycles depend on.

    Attributes:
        undecided: The jobs that an action may have had work for.
        refusals: Job → why it waits. `CycleEnd` adds the reasons of earlier cycles that still hold.
        moved: Jobs that got nodes or another phase.
        bound: Tasks that got nodes.
        held: Task → node, for tasks without a bind that keep capacity although their jobs cannot start yet.
        cut: Actions that left jobs for the next cycle.
        full_budget: Steps of a full cycle, with which the cost of a job is compared; 0 means no limit.
        retry_after: Seconds after which a job is tried again even if no change could help it.
        evicted_for: Whether tasks were evicted for a job.
        quota_bounds: Returns the bounds of quotas that a refused job waits for.
        shares_follow_requests: Whether what queues deserve follows from what all of them request.
    """

    undecided: Sequence[Job]
    refusals: dict[str, Refusal]
    moved: Set[str]
    bound: Set[str]
    held: Mapping[str, str]
    cut: Sequence[str]
    full_budget: int
    retry_after: float
    evicted_for: Callable[[str], bool]
    quota_bounds: Callable[[Job, UnschedulableReason], Sequence[HoldingsBound]]
    shares_follow_requests: bool
    nodes: Nodes
    placement: Placement
    reservations: Reservations


class CycleEnd:
    """The end of one cycle.

    Args:
        view: The backlog as the cycle saw it, with the cycle's attempts.
        outcome: What the cycle decided about the jobs.
    """

    def __init__(self, view: BacklogView, outcome: CycleOutcome) -> None:
        self._view, self._outcome = view, outcome
        self._done = {name for name in view.actions if name not in outcome.cut}
        self._due = set(view.due)
        self._memory = Memory(view.policy)

    def memory(self) -> Memory:
        """Return the changes of the backlog that the cycle leads to."""
        self._fill()
        self._memory.held = dict(self._outcome.held)
        self._memory.lapses = self._outcome.reservations.lapses
        return self._memory

    def wake_at(self, known: float | None) -> float | None:
        """Return when time alone could change the outcome; `known` is the first deadline of the cycle's attempts."""
        memory, times = self._memory, [] if known is None else [known]
        if (lapse := self._outcome.reservations.next_lapse) is not None:
            times.append(lapse)
        backlog, changed = self._view.known, {*memory.waiting, *memory.forgotten}
        if (retry := backlog.first_retry(changed)) < math.inf:
            times.append(retry)
        unchanged = (self._view.entries[key] for key in backlog.backoff - changed)
        times += [
            max(entry.retry_at, entry.not_before)
            for entry in (*unchanged, *memory.waiting.values())
            if entry.retry_at > entry.not_before or entry.not_before > self._view.now
        ]
        for key in memory.due:  # a change could help the job, but it may be in backoff
            entry = memory.waiting.get(key) or self._view.entries[key]
            times += [entry.not_before] if entry.not_before > self._view.now else []
        return min(times, default=None)

    def _fill(self) -> None:
        outcome, memory = self._outcome, self._memory
        cut = set(outcome.cut)
        for job in outcome.undecided:
            if cut or job.key in outcome.refusals or job.key in self._view.entries:  # else there is nothing to remember
                self._note(job)
        known = {job.key for job in outcome.undecided}
        memory.forgotten += sorted(self._view.awake - known)
        memory.due = sorted((self._due & self._view.entries.keys()) - set(memory.forgotten))
        for name in outcome.cut:
            before, spent = self._view.turns.get(name, {}), self._view.spent.get(name, {})
            scopes = sorted({*before, *spent})
            totals = {scope: int(before.get(scope, 0) * MEMORY) + spent.get(scope, 0) for scope in scopes}
            memory.turns[name] = {scope: total for scope, total in totals.items() if total}

    def _note(self, job: Job) -> None:
        """Write the entry of one job for the next cycles."""
        outcome, memory = self._outcome, self._memory
        key, refusals = job.key, outcome.refusals
        entry, refusal = self._view.entries.get(key), refusals.get(key)
        tried_now = {action for action, jobs in self._view.tried.items() if key in jobs} if outcome.cut else self._done
        tried = self._done | tried_now
        has_moved = key in outcome.moved or outcome.evicted_for(key)
        is_skipped = entry is not None and self._view.is_skipped(key, entry)
        only_waits = _holds_capacity(job)
        if has_moved or (not outcome.cut and (only_waits or (refusal is None and not is_skipped))):
            if entry is not None:
                memory.forgotten.append(key)
            return
        if entry is not None and is_skipped:  # earlier, cut cycles tried it in part, and nothing has changed
            refusal = entry.refusal.also(*(refusal.items if refusal is not None else ()))
            tried |= set(entry.tried)
        elif refusal is None and not tried_now:  # this cycle was cut before the job's turn
            if entry is not None and entry.refusal.items:
                refusals[key] = entry.refusal
            return
        if refusal is not None and refusal.items:
            refusals[key] = refusal
        if tried:
            waiting = self._waiting(job, refusal or Refusal(), tried, is_skipped=is_skipped)
            memory.waiting[key] = self._with_places(job, waiting, tried) if only_waits else waiting
            if not is_skipped:
                self._due.discard(key)

    def _with_places(self, job: Job, waiting: Waiting, tried: set[str]) -> Waiting:
        """Return the entry of a job that waits for capacity being freed: without a backoff, and due at any change."""
        return msgspec.structs.replace(
            waiting,
            topics=tuple(sorted({*ANY} - {ROOM})),
            least={},
            quotas=(),
            tried=tuple(sorted(tried)),
            line="",
            not_before=0.0,
            costly=0,
            places={
                task.key: task.node
                for task in job.having(TaskStatus.PIPELINED | TaskStatus.ALLOCATED)
                if task.key not in self._outcome.bound and not task.nominated
            },
        )

    def _waiting(self, job: Job, refusal: Refusal, tried: set[str], *, is_skipped: bool) -> Waiting:
        outcome = self._outcome
        before = self._view.entries.get(job.key)
        is_known = refusal.items and job.key not in self._view.reachable  # else an action had no reason to refuse it
        topics, quotas = self._hints(job, refusal) if is_known else (set(ANY), set[HoldingsBound]())
        if topics.issuperset(ANY) and outcome.shares_follow_requests:
            topics.add(REQUESTS)  # the queues of victims may deserve less, so that they may lose pods
        by_room = ROOM in topics
        topics.discard(ROOM)
        deadlines = [self._view.deadlines[key] for key in (job.key, "") if key in self._view.deadlines]
        budget = outcome.full_budget
        share = self._view.cost.get(job.key, 0) / budget if budget else 0.0
        late = job.key in self._view.too_costly
        if late:  # its first steps may have exceeded the maximum, and such steps are not counted
            share = max(share, 1.0)
        costly = (before.costly if before is not None else 0) + 1 if share > CHEAP or late else 0
        backoff = min(BACKOFF * share * 2.0 ** min(costly - 1, 9), MAX_BACKOFF_LATE if late else MAX_BACKOFF)
        not_before = self._view.now + backoff if costly else 0.0
        if before is not None and is_skipped:  # what it waited for still holds
            topics.update(before.topics)
            quotas.update(before.quotas)
            costly, late = max(costly, before.costly), late or before.late
            not_before = max(not_before, before.not_before)
        is_nowhere = is_known and fits_nowhere(job, refusal.items, outcome.nodes, outcome.placement)
        if is_nowhere:
            topics.intersection_update((VOLUMES,))
            by_room = False
            quotas.clear()
        retries = self._retries(job.key, refusal, tried, is_skipped=is_skipped)
        interval = outcome.retry_after * 2.0 ** (MAX_DOUBLINGS if is_nowhere else min(retries, MAX_DOUBLINGS))
        return Waiting(
            refusal,
            tuple(sorted(topics)),
            least_of(job) if by_room else None,
            tuple(sorted(quotas)),
            () if self._actions_done(tried) else tuple(sorted(tried)),
            retry_at=min([not_before if late else _retry_at(self._view.now, interval), *deadlines]),
            not_before=not_before,
            costly=costly,
            late=late,
            retries=retries,
            line=self._line(job, refusal) if is_known and not costly and self._actions_done(tried) else "",
            created=job.creation,
            rank=self._view.lines.rank_of(job),
        )

    def _line(self, job: Job, refusal: Refusal) -> str:
        """Return the line in which a refused job waits; empty if it waits alone."""
        rule = self._view.lines
        if self._outcome.reservations.is_uncovered(job):
            return ""
        if rule.joins_priorities and any(type(why) not in _CAPACITY_REASONS for why in refusal.items):
            return ""  # a draining queue refuses the jobs that were created last, whatever their priority
        return rule.line_of(job)

    def _actions_done(self, tried: set[str]) -> bool:
        return set(self._view.actions) <= tried

    def _retries(self, key: str, refusal: Refusal, tried: set[str], *, is_skipped: bool) -> int:
        """Return how many times in a row a job was tried because of time alone and got the same refusal.

        After a cycle that was cut, the reasons of the actions that have tried the job must be among the earlier ones.
        """
        before = self._view.entries.get(key)
        if before is None or is_skipped:
            return before.retries if before is not None else 0
        earlier = before.refusal.items
        is_part = not self._actions_done(tried) and set(refusal.items) <= set(earlier)
        is_same = is_part or refusal.items == earlier
        return before.retries + 1 if is_same and key not in self._view.due else 0

    def _hints(self, job: Job, refusal: Refusal) -> tuple[set[str], set[HoldingsBound]]:
        """Return the topics whose changes could help a job, and the bounds of quotas that the job waits for."""
        others, quotas = [], set[HoldingsBound]()
        for why in refusal.items:
            bounds = self._outcome.quota_bounds(job, why)
            quotas.update(bounds)
            if not bounds:
                others.append(why)
        topics = hints_of(job, others)
        if job.is_pending and "preempt" in self._view.actions:
            topics |= {f"{PLACED}:{job.queue}", GROUPS}  # preempt may evict for the job's admission, then or now
        return topics, quotas


def _holds_capacity(job: Job) -> bool:
    """Whether a job holds capacity in this cycle without starting, so that it must keep the capacity in the next."""
    return bool(job.count(TaskStatus.PIPELINED | TaskStatus.ALLOCATED))


def _retry_at(now: float, interval: float) -> float:
    """Return when a job refused now is tried again: at the same time as other jobs, as each cycle has a fixed cost."""
    slot = interval / RETRY_SLOTS
    if not 0 < slot < math.inf:
        return now + interval
    return math.ceil((now + interval) / slot) * slot
