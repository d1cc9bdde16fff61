"""What a cycle knows of the waiting jobs of earlier ones, and what it leaves for the next.

The one rule: a job is passed over only if all actions have refused it, nothing has changed since that its refusal came
from, and it is to be told of every such change. The cycle itself changes nothing in the backlog: what is to be
remembered leaves in its decisions (:class:`scheduler.framework.decisions.Memory`) and comes back as an input.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ..model.backlog import Backlog
from ..model.cluster import Cluster
from ..model.job import Job
from ..model.nodes import Nodes
from ..model.task import TaskStatus
from ..policy.model import Policy
from ..reasons import Refusal
from .decisions import Memory, Waiting
from .hints import ANY, ROOM, hints_of, least_of

if TYPE_CHECKING:
    from .session import Session

TRY_AGAIN = 60.0
"""Seconds after which a waiting job is tried again though nothing has happened that could help it."""
CHEAP = 1 / 16
"""The part of a cycle's budget that an attempt in vain may cost without consequences."""
REST = 5.0
"""Seconds that a job rests for a whole budget spent in vain; twice as long each time in a row."""
MOST_REST, MOST_REST_LATE = 10.0, 60.0
"""The longest rest, and that of a job that costs more than a job may."""


def fingerprint(policy: Policy) -> str:
    """What tells two policies apart in a record."""
    return hashlib.sha256(repr(policy).encode()).hexdigest()[:16]


@dataclass(slots=True)
class _Ending:
    """What the end of a cycle is noted from: actions that are done, jobs that got something."""

    session: Session
    done: set[str]
    moved: set[str]
    memory: Memory
    due: set[str]


class Recall:
    """The backlog as one cycle sees it, and its own attempts.

    ``entries``: what is remembered of each job that waits; ``awake``: those of them that are not passed over.
    ``late_jobs`` are to be tried after all others, for what they cost before. ``action`` is the one that runs.
    """

    def __init__(self, cluster: Cluster, policy: Policy, now: float) -> None:
        self._now = now
        self._policy = fingerprint(policy)
        self._actions = policy.actions
        counts = cluster.backlog.policy == self._policy
        self._known = known = cluster.backlog if counts else Backlog()
        self.entries: Mapping[str, Waiting] = known.entries
        self._due = known.due | _helped_by_room(cluster) if counts else set()
        self.turns: Mapping[str, Mapping[str, int]] = known.turns
        may_be = known.entries if now >= known.first_retry else known.tried | known.rest | self._due
        self.awake = {key for key in may_be if self.entries[key].tried or not self._rests(key, self.entries[key])}
        self.late_jobs: Set[str] = known.late
        self.action = ""
        self._tried: dict[str, set[str]] = {name: set() for name in ("", *policy.actions)}
        """Action → jobs that it has tried."""
        self._cost: dict[str, int] = {}
        self._late: set[str] = set()
        self._deadlines: dict[str, float] = {}
        self._trying = ""
        self._spent: dict[str, dict[str, int]] = {}

    def _rests(self, key: str, entry: Waiting) -> bool:
        if entry.not_before > self._now:
            return True
        return key not in self._due and self._now < entry.retry_at

    # ------------------------------------------------------------------------------------------------------- attempts

    def not_tried(self, jobs: list[Job]) -> list[Job]:
        """Those that have not been tried by the action that runs, in this state, by an earlier cycle."""
        if not self.entries and not self._late:
            return jobs
        return [job for job in jobs if job.key not in self._late and not self._is_tried(job.key)]

    def _is_tried(self, key: str) -> bool:
        entry = self.entries.get(key)
        return entry is not None and self.action in entry.tried and self._rests(key, entry)

    def places(self) -> list[tuple[str, Mapping[str, str]]]:
        """Jobs that only wait for room being freed, as cycles before, which were cut, have left them: what they keep
        (task → node).
        """
        tried = ((key, self.entries[key]) for key in sorted(self._known.tried))
        return [(key, entry.places) for key, entry in tried if entry.places and self._rests(key, entry)]

    def passed_over(self, undecided: Set[str]) -> dict[str, Refusal]:
        """The refusals that stand, as nobody tries these jobs now."""
        refusals = dict(self._known.refusals)
        for key in self.awake | (self._due - undecided):  # what rests and was told may run by now
            refusals.pop(key, None)
        return refusals

    def lost(self, key: str) -> None:
        """A job cannot keep what it waits for: it is tried again."""
        self._due.add(key)

    def begin(self, job: Job) -> None:
        self._trying = job.key
        self._tried[self.action].add(job.key)

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
        """What a queue (or a namespace in it) has spent in vain since the action was first cut; nothing where the
        last cycle was not.
        """
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
        times = [] if decisions.wake_at is None else [decisions.wake_at]
        gone = {*memory.waiting, *memory.forgotten}
        if gone:
            kept: Iterable[Waiting] = (entry for key, entry in self.entries.items() if key not in gone)
        else:  # as in nearly every cycle
            kept = (self.entries[key] for key in self._known.rest)
            times += [self._known.first_retry] if self._known.first_retry < math.inf else []
        for entry in (*kept, *memory.waiting.values()):
            times += [entry.retry_at] if entry.retry_at > entry.not_before else []
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
        """What is to be remembered of one job."""
        session, memory = ending.session, ending.memory
        key, refusals = job.key, session.decisions.refusals
        entry, refusal = self.entries.get(key), refusals.get(key)
        here = {action for action, jobs in self._tried.items() if key in jobs} if session.work.cut else ending.done
        tried = ending.done | here
        has_moved = key in ending.moved or session.nominations.stands(key)
        rests = entry is not None and self._rests(key, entry)
        only_waits = bool(job.by_status.get(TaskStatus.PIPELINED))  # for what is being freed: not to be passed over
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
        topics = (
            hints_of(job, refusal.items) if refusal.items else set(ANY)
        )  # nothing found to do for it by some action
        by_room = ROOM in topics
        topics.discard(ROOM)
        deadlines = [self._deadlines[who] for who in (job.key, "") if who in self._deadlines]
        budget = session.work.budget.cycle
        part = self._cost.get(job.key, 0) / budget if budget else 0.0
        late = job.key in self._late
        costly = (before.costly if before is not None else 0) + 1 if part > CHEAP or late else 0
        rest = min(REST * part * 2.0 ** min(costly - 1, 9), MOST_REST_LATE if late else MOST_REST) if costly else 0.0
        not_before = self._now + rest if costly else 0.0
        if goes_on is not None:
            costly, late = max(costly, goes_on.costly), late or goes_on.late
            not_before = max(not_before, goes_on.not_before)
        return Waiting(
            refusal,
            tuple(sorted(topics)),
            least_of(job) if by_room else None,
            () if set(self._actions) <= tried else tuple(sorted(tried)),
            retry_at=min([not_before if late else self._now + TRY_AGAIN, *deadlines]),
            not_before=not_before,
            costly=costly,
            late=late,
        )


def _helped_by_room(cluster: Cluster) -> set[str]:
    """The waiting jobs of which some task fits on a node that has been given room."""
    nodes: Nodes = cluster.nodes
    rows = [info.row for name in sorted(cluster.backlog.freed) if (info := nodes.by_name.get(name)) is not None]
    helped: set[str] = set()
    if not rows:
        return helped
    available = nodes.future_idle()[rows]
    for amounts, jobs in cluster.backlog.with_least():
        columns = [nodes.dimensions[name] for name, amount in amounts if amount > 0]
        least = [amount for _, amount in amounts if amount > 0]
        if bool(np.any(np.all(available[:, columns] >= least, axis=1))):
            helped |= jobs
    return helped
