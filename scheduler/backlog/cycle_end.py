"""Write what the next cycles have to know of one that ends: which jobs wait, for what, and since when.

A job is remembered with the changes that could help it (`scheduler.backlog.hints`), and with the time when it is tried
again in any case. A job is forgotten if it got something, or if no action had a reason to refuse it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass

import msgspec

from ..model.changes import VOLUMES
from ..model.job import Job
from ..model.nodes import Nodes
from ..model.task import TaskStatus
from ..placement import Placement
from ..reasons import ClusterLimit, GangShort, NoNode, QueueLimit, Refusal, UnschedulableReason
from .entries import HoldingsBound, Memory, Waiting
from .hints import ANY, ROOM, fits_nowhere, hints_of, least_of
from .reservations import Reservations
from .view import BacklogView

ROUNDS = 6
"""Cycles in which all jobs are tried again for which only time has passed, whenever each of them was refused."""
DOUBLED = 4
"""The number of times that the interval between two tries doubles if a job is tried because of time alone.

Jobs that fit nowhere begin with the longest interval: the changes that can help them are few and known for certain.
"""
_OF_ROOM = (QueueLimit, ClusterLimit, NoNode, GangShort)
"""The reasons against a job that hold against an equal job of lower priority too, whenever that was created."""
CHEAP = 1 / 16
"""The part of a cycle's budget that a failed attempt may cost without consequences."""
REST = 5.0
"""Seconds for which a job is not tried after it used a whole budget without success; doubled each time in a row."""
MOST_REST, MOST_REST_LATE = 10.0, 60.0
"""The longest rest, and that of a job that costs more than a job may."""


@dataclass(frozen=True, slots=True)
class CycleOutcome:
    """The part of a cycle's outcome that the next cycles depend on.

    Attributes:
        undecided: The jobs that an action may have had work for.
        refusals: Job → why it waits. The reasons of earlier cycles that still stand are added.
        moved: Jobs that got nodes or another phase.
        bound: Tasks that got nodes.
        held: Task → node, for tasks without a bind that keep capacity although their jobs cannot start yet.
        cut: Actions that left jobs for the next cycle.
        full_budget: Steps of a full cycle, with which the cost of a job is compared; 0 means no limit.
        retry_after: Seconds after which a job is tried again even if no change could help it.
        stands: Whether tasks were evicted for a job.
        quota_bounds: The bounds of quotas that a refused job waits for.
    """

    undecided: Sequence[Job]
    refusals: dict[str, Refusal]
    moved: Set[str]
    bound: Set[str]
    held: Mapping[str, str]
    cut: Sequence[str]
    full_budget: int
    retry_after: float
    stands: Callable[[str], bool]
    quota_bounds: Callable[[Job, UnschedulableReason], Sequence[HoldingsBound]]
    nodes: Nodes
    placement: Placement
    reservations: Reservations


class CycleEnd:
    """The end of one cycle.

    Args:
        view: The backlog as the cycle saw it, with its attempts.
        outcome: What became of the jobs.
    """

    def __init__(self, view: BacklogView, outcome: CycleOutcome) -> None:
        self._view, self._outcome = view, outcome
        self._done = {name for name in view.actions if name not in outcome.cut}
        self._due = set(view.due)
        self._memory = Memory(view.policy)

    def memory(self) -> Memory:
        """Return what the next cycle has to know."""
        self._fill()
        self._memory.held = dict(self._outcome.held)
        self._memory.lapses = self._outcome.reservations.lapses
        return self._memory

    def wake_at(self, known: float | None) -> float | None:
        """Return when time alone could change the outcome; `known` is the first deadline of the cycle's attempts."""
        memory, times = self._memory, [] if known is None else [known]
        if (lapse := self._outcome.reservations.next_lapse) is not None:
            times.append(lapse)
        known_jobs, gone = self._view.known, {*memory.waiting, *memory.forgotten}
        if (retry := known_jobs.first_retry(gone)) < math.inf:
            times.append(retry)
        kept = (self._view.entries[key] for key in known_jobs.rest - gone)
        times += [
            max(entry.retry_at, entry.not_before)
            for entry in (*kept, *memory.waiting.values())
            if entry.retry_at > entry.not_before or entry.not_before > self._view.now
        ]
        for key in memory.due:  # a change could help the job, but it rests
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
            memory.turns[name] = {who: before.get(who, 0) + spent.get(who, 0) for who in sorted({*before, *spent})}

    def _note(self, job: Job) -> None:
        """Write the entry of one job for the next cycles."""
        outcome, memory = self._outcome, self._memory
        key, refusals = job.key, outcome.refusals
        entry, refusal = self._view.entries.get(key), refusals.get(key)
        here = {action for action, jobs in self._view.tried.items() if key in jobs} if outcome.cut else self._done
        tried = self._done | here
        has_moved = key in outcome.moved or outcome.stands(key)
        if entry is not None and key in self._view.kept and not has_moved:
            refusals[key] = entry.refusal
            self._due.discard(key)
            if self._view.is_called(key):
                memory.kept.append(key)
            return
        rests = entry is not None and self._view.rests(key, entry)
        only_waits = _holds_room(job)
        if has_moved or (not outcome.cut and (only_waits or (refusal is None and not rests))):
            if entry is not None:
                memory.forgotten.append(key)
            return
        if entry is not None and rests:  # tried in part by cycles before, which were cut, and nothing has changed
            refusal = entry.refusal.also(*(refusal.items if refusal is not None else ()))
            tried |= set(entry.tried)
        elif refusal is None and not here:  # this cycle has not come to it
            if entry is not None and entry.refusal.items:
                refusals[key] = entry.refusal
            return
        if refusal is not None and refusal.items:
            refusals[key] = refusal
        if tried:
            waiting = self._waiting(job, refusal or Refusal(), tried, rests=rests)
            memory.waiting[key] = self._with_places(job, waiting, tried) if only_waits else waiting
            if not rests:
                self._due.discard(key)

    def _with_places(self, job: Job, waiting: Waiting, tried: set[str]) -> Waiting:
        """Return the entry of a job that waits for room being freed: that costs it nothing; any change may end it."""
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

    def _waiting(self, job: Job, refusal: Refusal, tried: set[str], *, rests: bool) -> Waiting:
        outcome = self._outcome
        before = self._view.entries.get(job.key)
        goes_on = before if rests else None
        is_known = refusal.items and job.key not in self._view.reachable  # else an action had nothing to refuse
        topics, quotas = self._hints(job, refusal) if is_known else (set(ANY), set[HoldingsBound]())
        by_room = ROOM in topics
        topics.discard(ROOM)
        deadlines = [self._view.deadlines[who] for who in (job.key, "") if who in self._view.deadlines]
        budget = outcome.full_budget
        part = self._view.cost.get(job.key, 0) / budget if budget else 0.0
        late = job.key in self._view.too_costly
        if late:  # it may have been refused before anything was done
            part = max(part, 1.0)
        costly = (before.costly if before is not None else 0) + 1 if part > CHEAP or late else 0
        rest = min(REST * part * 2.0 ** min(costly - 1, 9), MOST_REST_LATE if late else MOST_REST) if costly else 0.0
        not_before = self._view.now + rest if costly else 0.0
        if goes_on is not None:
            topics.update(goes_on.topics)
            quotas.update(goes_on.quotas)
            costly, late = max(costly, goes_on.costly), late or goes_on.late
            not_before = max(not_before, goes_on.not_before)
        is_nowhere = is_known and fits_nowhere(job, refusal.items, outcome.nodes, outcome.placement)
        if is_nowhere:
            topics.intersection_update((VOLUMES,))
            by_room = False
            quotas.clear()
        retries = self._retries(job.key, refusal, tried, rests=rests)
        again_after = outcome.retry_after * 2.0 ** (DOUBLED if is_nowhere else min(retries, DOUBLED))
        return Waiting(
            refusal,
            tuple(sorted(topics)),
            least_of(job) if by_room else None,
            tuple(sorted(quotas)),
            () if self._actions_done(tried) else tuple(sorted(tried)),
            retry_at=min([not_before if late else _next_round(self._view.now, again_after), *deadlines]),
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
        if rule.joins_priorities and any(type(why) not in _OF_ROOM for why in refusal.items):
            return ""  # a queue that drains refuses the jobs that were created last
        return rule.line_of(job)

    def _actions_done(self, tried: set[str]) -> bool:
        return set(self._view.actions) <= tried

    def _retries(self, key: str, refusal: Refusal, tried: set[str], *, rests: bool) -> int:
        """Return how many times in a row a job was tried because of time alone and got the same refusal.

        After a cycle that was cut, the reasons of the actions that have tried the job must be among the earlier ones.
        """
        before = self._view.entries.get(key)
        if before is None or rests:
            return before.retries if before is not None else 0
        earlier = before.refusal.items
        is_part = not self._actions_done(tried) and set(refusal.items) <= set(earlier)
        is_same = is_part or refusal.items == earlier
        return before.retries + 1 if is_same and key not in self._view.due else 0

    def _hints(self, job: Job, refusal: Refusal) -> tuple[set[str], set[HoldingsBound]]:
        """Return the topics whose changes could help a job, and the bounds of quotas that it waits for."""
        others, quotas, is_full = [], set[HoldingsBound](), False
        for why in refusal.items:
            bounds = self._outcome.quota_bounds(job, why)
            quotas.update(bounds)
            is_full = is_full or (bool(bounds) and isinstance(why, QueueLimit))
            if not bounds:
                others.append(why)
        if is_full and all(isinstance(why, GangShort) for why in others):
            others.clear()  # the quota has cut the gang short: room on nodes is no help without room in the quota
        return hints_of(job, others), quotas


def _holds_room(job: Job) -> bool:
    """Whether a job holds room in this cycle without starting on it, and so must hold it in the next one too."""
    return bool(job.count(TaskStatus.PIPELINED | TaskStatus.ALLOCATED))


def _next_round(now: float, retry_after: float) -> float:
    """When a job that was refused now is tried again: with others, as each cycle has a price of its own."""
    length = retry_after / ROUNDS
    if not 0 < length < math.inf:
        return now + retry_after
    return math.ceil((now + retry_after) / length) * length
