"""Decide which waiting jobs a cycle may skip, and what the next cycle has to remember of this one.

A job is skipped only if all actions have refused it, no change has happened since on which its refusal depends, and it
will be notified of every such change. A cycle does not change the backlog: what is to be remembered leaves in the
cycle's decisions (`scheduler.framework.decisions.Memory`) and returns as an input.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from ..model import resources
from ..model.backlog import FREED, VOLUMES, Backlog
from ..model.cluster import Cluster
from ..model.job import Job
from ..model.resources import Resource
from ..model.task import TaskStatus
from ..policy.model import Policy
from ..reasons import Refusal
from .decisions import Evict, Memory, Waiting
from .helped import helped_by_lapse, helped_by_room
from .hints import ANY, ROOM, fits_nowhere, hints_of, least_of
from .plugin import PLUGINS

if TYPE_CHECKING:
    from .session import Session

ROUNDS = 6
"""Cycles in which all jobs are tried again for which only time has passed, whenever each of them was refused."""
DOUBLED = 4
"""The number of times that the interval between two tries doubles if a job is tried because of time alone."""
CHEAP = 1 / 16
"""The part of a cycle's budget that a failed attempt may cost without consequences."""
REST = 5.0
"""Seconds for which a job is not tried after it used a whole budget without success; doubled each time in a row."""
MOST_REST, MOST_REST_LATE = 10.0, 60.0
"""The longest rest, and that of a job that costs more than a job may."""


def fingerprint(policy: Policy) -> str:
    """The fingerprint that distinguishes policies in a record."""
    return hashlib.sha256(repr(policy).encode()).hexdigest()[:16]


@dataclass(slots=True)
class _Ending:
    """The actions that are done and the jobs that got something, from which the end of a cycle is noted."""

    session: Session
    done: set[str]
    moved: set[str]
    memory: Memory
    due: set[str]


class BacklogView:
    """The backlog as one cycle sees it, and its own attempts.

    ``entries``: what is remembered of each job that waits; ``awake``: those of them that are not passed over.
    ``late_jobs`` are to be tried after all others, for what they cost before. ``action`` is the one that runs.
    """

    def __init__(self, cluster: Cluster, policy: Policy, now: float, woken: Set[str] = frozenset()) -> None:
        self._cluster, self._now = cluster, now
        last = cluster.last_cycle
        same = last is not None and last.policy is policy
        self._policy: str = last.decisions.memory.policy if same else fingerprint(policy)
        self._actions = policy.actions
        counts = cluster.backlog.policy == self._policy
        self._known = known = cluster.backlog if counts else Backlog()
        self.entries: Mapping[str, Waiting] = known.entries
        grown = dict.fromkeys(cluster.backlog.freed, Resource())
        helped = helped_by_room(cluster, grown) if counts else set[str]()
        self._due = known.due | helped | woken | helped_by_lapse(known, now) if counts else set()
        self._has_lines = all(PLUGINS[option.name].judges_equals_alike for tier in policy.tiers for option in tier)
        if known.turns or cluster.nodes.minding or _has_claims(cluster):
            self._due.update(known.followers())  # equal jobs may fare differently: they are all tried
        self._strayed = {key for key in self._due if self._is_elsewhere(key)}
        """Jobs that have changed, and are no longer equal to the jobs of the line in which they wait."""
        self._due.update([other for key in self._strayed if (other := self._heir(key))])
        self.lapses: Mapping[str, float] = known.lapses
        self.turns: Mapping[str, Mapping[str, int]] = known.turns
        may_be = known.entries if now >= known.first_retry else known.tried | known.rest | self._due
        self.awake = {key for key in may_be if self.entries[key].tried or not self._rests(key, self.entries[key])}
        self.late_jobs: Set[str] = known.late | (cluster.costly - known.entries.keys())
        self.action = ""
        self._tried: dict[str, set[str]] = {name: set() for name in ("", *policy.actions)}
        """Action → jobs that it has tried."""
        self._left_to_allocate: set[str] = set()
        """Jobs that an evicting action did not refuse, because they could start without evictions."""
        self._cost: dict[str, int] = {}
        self._late: set[str] = set()
        self._deadlines: dict[str, float] = {}
        self._trying = ""
        self._spent: dict[str, dict[str, int]] = {}
        self._called: set[str] = set()
        """Jobs of which the next in line was looked for."""
        self._passed_in_vain: set[str] = set()
        """Jobs that all actions should have tried, as was seen too late."""

    def _rests(self, key: str, entry: Waiting) -> bool:
        if entry.not_before > self._now:
            return True
        return key not in self._due and self._now < entry.retry_at

    # ------------------------------------------------------------------------------------------------------- attempts

    def not_tried(self, jobs: list[Job]) -> list[Job]:
        """Return the jobs that the running action has not tried in this state in an earlier cycle."""
        if not self.entries and not self._late:
            return jobs
        return [job for job in jobs if job.key not in self._late and not self._is_tried(job.key)]

    def _is_tried(self, key: str) -> bool:
        entry = self.entries.get(key)
        return entry is not None and self.action in entry.tried and self._rests(key, entry)

    def places(self) -> list[tuple[str, Mapping[str, str]]]:
        """Return what jobs keep (task → node) that only wait for capacity being freed since earlier, cut cycles."""
        tried = ((key, self.entries[key]) for key in sorted(self._known.tried))
        return [(key, entry.places) for key, entry in tried if entry.places and self._rests(key, entry)]

    def passed_over(self, undecided: Set[str]) -> dict[str, Refusal]:
        """The refusals that stand, as nobody tries these jobs now."""
        refusals = dict(self._known.refusals)
        for key in self.awake | (self._due - undecided):  # what rests and was told may run by now
            refusals.pop(key, None)
        return refusals

    def helped_by(self, evictions: Iterable[Evict]) -> Set[str]:
        """Return the jobs passed over that this cycle may have helped. The state is that before the cycle."""
        if not self.entries:
            return frozenset()
        cluster, freed = self._cluster, dict[str, Resource]()
        for evict in evictions:
            task = cluster.tasks[evict.task]
            resources.add_to(freed.setdefault(task.node, {}), task.request)
        if not freed:
            return self._passed_in_vain
        helped = self._known.waiting_for(FREED) | helped_by_room(cluster, freed) | set(self._known.followers())
        return {key for key in helped - self.awake if self.entries[key].not_before <= self._now}

    def _is_elsewhere(self, key: str) -> bool:
        line = self.entries[key].line
        return bool(line) and _line_of(self._cluster.jobs[key]) != line

    def _heir(self, key: str) -> str:
        """Return the first job that a line is left with when the job that was the first has changed."""
        if not self._known.is_first(key):
            return ""
        return self._behind(key)

    def _behind(self, key: str) -> str:
        """Return the next job of the same line that is still equal to it; empty if there is none."""
        line, at = self.entries[key].line, key
        while (at := self._known.lines.after(line, (self.entries[at].created, at))) in self._strayed:
            pass
        return at

    def next_in_line(self, key: str, *, refused: bool) -> str:
        """Return the job behind one that was tried, if it is to be tried in this cycle too; empty otherwise."""
        entry = self.entries.get(key)
        if entry is None or not entry.line or key in self._called or key in self._strayed:
            return ""
        if refused and key not in self._left_to_allocate:
            return ""
        self._called.add(key)
        follower = self._behind(key)
        if not follower or follower in self.awake or follower in self._due:
            return ""  # it is tried anyway: time alone may have woken it
        if any(key in tried for action, tried in self._tried.items() if action != self.action):
            self._passed_in_vain.add(follower)  # an action before this one would have tried it as well
            return ""
        self._due.add(follower)
        return follower

    def lost(self, key: str) -> None:
        """A job cannot keep what it waits for: it is tried again."""
        self._due.add(key)

    def begin(self, job: Job) -> None:
        self._trying = job.key
        self._tried[self.action].add(job.key)

    def left_to_allocate(self, job: Job) -> None:
        """Record that the action that runs did not refuse the job: it could start on room that nobody has to leave.

        Allocate may give that room to other jobs and refuse this one. Its refusal says nothing about what the action
        decides without that room, so the job is tried again after any change.
        """
        self._left_to_allocate.add(job.key)

    def end(self, job: Job, steps: int) -> None:
        self._trying = ""
        self._cost[job.key] = self._cost.get(job.key, 0) + steps

    def late(self, job: Job) -> None:
        """The job has cost more than a job may."""
        self._late.add(job.key)

    def deadline(self, time: float) -> None:
        """Time alone changes the outcome, for the job that is being tried or for any."""
        self._deadlines[self._trying] = min(time, self._deadlines.get(self._trying, time))

    def in_vain(self, queue: str, namespace: str, steps: int) -> None:
        """A queue's, and in it a namespace's, turn has come to nothing."""
        spent = self._spent.setdefault(self.action, {})
        for who in (queue, f"{queue} {namespace}"):
            spent[who] = spent.get(who, 0) + steps

    @property
    def takes_turns(self) -> bool:
        """Whether the action that runs goes on with what a cycle that was cut has left of it."""
        return self.action in self.turns

    def spent_in_vain(self, *who: str) -> int:
        """Return the useless steps of a queue (or a namespace in it) since the action was first cut, else 0."""
        before = self.turns.get(self.action)
        if before is None:
            return 0
        name = " ".join(who)
        return before.get(name, 0) + self._spent.get(self.action, {}).get(name, 0)

    # --------------------------------------------------------------------------------------------------- what remains

    def leave(self, session: Session) -> None:
        """Complete the decisions by what the next cycle is to know."""
        decisions, memory = session.decisions, self._memory(session)
        decisions.memory, decisions.steps, decisions.cut = memory, session.work.spent, session.work.cut
        memory.lapses = session.reservations.lapses
        times = [] if decisions.wake_at is None else [decisions.wake_at]
        if (lapse := session.reservations.next_lapse) is not None:
            times.append(lapse)
        gone = {*memory.waiting, *memory.forgotten}
        if gone:
            kept: Iterable[Waiting] = (entry for key, entry in self.entries.items() if key not in gone)
        else:  # as in nearly every cycle
            kept = (self.entries[key] for key in self._known.rest)
            times += [self._known.first_retry] if self._known.first_retry < math.inf else []
        for entry in (*kept, *memory.waiting.values()):
            if entry.retry_at > entry.not_before or entry.not_before > self._now:
                times.append(max(entry.retry_at, entry.not_before))
        for key in memory.due:  # a change could help the job, but it rests
            entry = memory.waiting.get(key) or self.entries[key]
            times += [entry.not_before] if entry.not_before > self._now else []
        decisions.wake_at = min(times, default=None)

    def _memory(self, session: Session) -> Memory:
        memory = Memory(self._policy)
        decisions, cut = session.decisions, set(session.work.cut)
        done = {name for name in self._actions if name not in cut}
        moved = {*(bind.job for bind in decisions.binds), *decisions.phases}
        due = set(self._due)
        ending = _Ending(session, done, moved, memory, due)
        for job in session.undecided:
            if cut or job.key in decisions.refusals or job.key in self.entries:  # else there is nothing to remember
                self._note(job, ending)
        known = {job.key for job in session.undecided}
        memory.forgotten += sorted(self.awake - known)
        memory.due = sorted((due & self.entries.keys()) - set(memory.forgotten))
        for name in session.work.cut:
            before, spent = self.turns.get(name, {}), self._spent.get(name, {})
            memory.turns[name] = {who: before.get(who, 0) + spent.get(who, 0) for who in sorted({*before, *spent})}
        return memory

    def _note(self, job: Job, ending: _Ending) -> None:
        """The entry of one job for the next cycles."""
        session, memory = ending.session, ending.memory
        key, refusals = job.key, session.decisions.refusals
        entry, refusal = self.entries.get(key), refusals.get(key)
        here = {action for action, jobs in self._tried.items() if key in jobs} if session.work.cut else ending.done
        tried = ending.done | here
        has_moved = key in ending.moved or session.nominations.stands(key)
        rests = entry is not None and self._rests(key, entry)
        only_waits = _holds_room(job)
        if has_moved or (not session.work.cut and (only_waits or (refusal is None and not rests))):
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
            waiting = self._waiting(session, job, refusal or Refusal(), tried, rests=rests)
            memory.waiting[key] = self._with_places(session, job, waiting, tried) if only_waits else waiting
            if not rests:
                ending.due.discard(key)

    def _with_places(self, session: Session, job: Job, waiting: Waiting, tried: set[str]) -> Waiting:
        """The same of a job that waits for room being freed: that costs it nothing, and any change may end it."""
        bound = {bind.task for bind in session.decisions.binds}
        return msgspec.structs.replace(
            waiting,
            topics=tuple(sorted({*ANY} - {ROOM})),
            least={},
            tried=tuple(sorted(tried)),
            line="",
            not_before=0.0,
            costly=0,
            places={
                task.key: task.node
                for task in job.having(TaskStatus.PIPELINED | TaskStatus.ALLOCATED)
                if task.key not in bound and not task.nominated
            },
        )

    def _waiting(self, session: Session, job: Job, refusal: Refusal, tried: set[str], *, rests: bool) -> Waiting:
        before = self.entries.get(job.key)
        goes_on = before if rests else None
        is_known = refusal.items and job.key not in self._left_to_allocate  # else an action had nothing to refuse
        topics = hints_of(job, refusal.items) if is_known else set(ANY)
        by_room = ROOM in topics
        topics.discard(ROOM)
        deadlines = [self._deadlines[who] for who in (job.key, "") if who in self._deadlines]
        budget = session.work.budget.full or session.work.budget.cycle
        part = self._cost.get(job.key, 0) / budget if budget else 0.0
        late = job.key in self._late
        if late:  # it may have been refused before anything was done
            part = max(part, 1.0)
        costly = (before.costly if before is not None else 0) + 1 if part > CHEAP or late else 0
        rest = min(REST * part * 2.0 ** min(costly - 1, 9), MOST_REST_LATE if late else MOST_REST) if costly else 0.0
        not_before = self._now + rest if costly else 0.0
        if goes_on is not None:
            topics.update(goes_on.topics)
            costly, late = max(costly, goes_on.costly), late or goes_on.late
            not_before = max(not_before, goes_on.not_before)
        if is_known and fits_nowhere(job, refusal.items, session.nodes, session.placement):
            topics.intersection_update((VOLUMES,))
            by_room = False
        retries = self._retries(job.key, refusal, rests=rests)
        again_after = session.work.budget.retry_after * 2.0 ** min(retries, DOUBLED)
        return Waiting(
            refusal,
            tuple(sorted(topics)),
            least_of(job) if by_room else None,
            () if self._actions_done(tried) else tuple(sorted(tried)),
            retry_at=min([not_before if late else _next_round(self._now, again_after), *deadlines]),
            not_before=not_before,
            costly=costly,
            late=late,
            retries=retries,
            line=self._line(session, job) if is_known and not costly and self._actions_done(tried) else "",
            created=job.creation,
        )

    def _line(self, session: Session, job: Job) -> str:
        """Return the line in which a refused job waits; empty if it waits alone."""
        return "" if not self._has_lines or session.reservations.is_uncovered(job) else _line_of(job)

    def _actions_done(self, tried: set[str]) -> bool:
        return set(self._actions) <= tried

    def _retries(self, key: str, refusal: Refusal, *, rests: bool) -> int:
        """Return how many times in a row a job was tried because of time alone and got the same refusal."""
        before = self.entries.get(key)
        if before is None or rests:
            return before.retries if before is not None else 0
        return before.retries + 1 if key not in self._due and before.refusal == refusal else 0


def _line_of(job: Job) -> str:
    """Return what the jobs of a line share; empty if the job is in none."""
    return f"{job.kind}.{job.priority}" if job.kind else ""


def _has_claims(cluster: Cluster) -> bool:
    """Whether room is kept for tasks, which may give it up in the course of a cycle."""
    return any(cluster.tasks[key].status is TaskStatus.PENDING for key in cluster.nominated)


def _holds_room(job: Job) -> bool:
    """Whether a job holds room in this cycle without starting on it, and so must hold it in the next one too."""
    return bool(job.count(TaskStatus.PIPELINED | TaskStatus.ALLOCATED))


def _next_round(now: float, retry_after: float) -> float:
    """When a job that was refused now is tried again: with others, as each cycle has a price of its own."""
    length = retry_after / ROUNDS
    if not 0 < length < math.inf:
        return now + retry_after
    return math.ceil((now + retry_after) / length) * length
