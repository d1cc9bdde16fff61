"""Decide which waiting jobs a cycle may skip.

A job is skipped only if all actions have refused it, no change has happened since on which its refusal depends, and it
will be notified of every such change. A cycle does not change the backlog: what is to be remembered leaves in the
cycle's decisions (`scheduler.backlog.cycle_end`) and returns as an input.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Set

from ..model import resources
from ..model.changes import CLAIMS, FREED
from ..model.cluster import Cluster
from ..model.job import Job
from ..model.resources import Resource
from ..policy.model import Policy
from ..policy.schema import EVICTING
from ..reasons import Refusal
from .backlog import EVERY, Backlog, backlog_of
from .entries import Waiting
from .helped import helped_by_lapse, helped_by_quota, helped_by_room
from .lines import LineRule
from .quotas import Excess


def fingerprint(policy: Policy) -> str:
    """Return the fingerprint that distinguishes policies in a record."""
    return hashlib.sha256(repr(policy).encode()).hexdigest()[:16]


class BacklogView:
    """The backlog as one cycle sees it, and its own attempts.

    Attributes:
        entries: What is remembered of each waiting job.
        awake: The waiting jobs that are not passed over.
        due: The waiting jobs that a change may have helped.
        late_jobs: Jobs that are tried after all others, because of what they cost before.
        too_costly: Jobs that exceeded the maximum of one job in this cycle.
        action: The action that runs.
        known: The backlog, or an empty one if it was written under another policy.
        by_quota_alone: The due jobs that wait for nothing but room in a quota, or that nothing else may have helped.
        kept: Those for which jobs before them left no room: what is remembered of them stands.

    Args:
        woken: Waiting jobs that evictions of this cycle may help.
        lines: Which jobs share a line, of which only the first is tried (`scheduler.backlog.lines`).
    """

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        now: float,
        woken: Set[str] = frozenset(),
        *,
        lines: LineRule = LineRule.NONE,
    ) -> None:
        self._cluster, self.now = cluster, now
        last = cluster.last_cycle
        same = last is not None and last.policy is policy
        self.policy: str = last.decisions.memory.policy if same else fingerprint(policy)
        self.actions = policy.actions
        first = next((number for number, name in enumerate(policy.actions) if name in EVICTING), 0)
        self._admits_late = "enqueue" not in policy.actions[:first] or "enqueue" in policy.actions[first:]
        backlog = backlog_of(cluster)
        counts = backlog.policy == self.policy
        self.known = known = backlog if counts else Backlog()
        self.entries: Mapping[str, Waiting] = known.entries
        self._unlisted = backlog.unlisted if counts else None
        grown = dict.fromkeys(backlog.freed, Resource())
        helped = helped_by_room(cluster, grown) if counts else set[str]()
        by_quota = helped_by_quota(cluster, known.moved) if counts else set[str]()
        others = known.due | helped | woken | helped_by_lapse(cluster, now) if counts else set[str]()
        if known.moved and any(task not in cluster.nominated for task in known.claims):
            others |= known.waiting_for(CLAIMS)  # by what jobs hold, others may be served first and get that room
        self.due = others | by_quota
        self.by_quota_alone = {key for key in by_quota - others if now < known.entries[key].retry_at}
        self.lines = lines
        if known.turns or cluster.nodes.minding:
            self.due.update(known.followers(self.entries))  # equal jobs may fare differently: they are all tried
        self._strayed = {key for key in self.due if self._is_elsewhere(key)}
        """Jobs that have changed, and are no longer equal to the jobs of the line in which they wait."""
        self.due.update([other for key in self._strayed if (other := self._heir(key))])
        self.lapses: Mapping[str, float] = known.lapses
        self.turns: Mapping[str, Mapping[str, int]] = known.turns
        may_be = known.entries if now >= known.first_retry() else known.tried | known.rest | self.due
        self.awake = {key for key in may_be if self.entries[key].tried or not self.rests(key, self.entries[key])}
        self.late_jobs: Set[str] = known.late | (cluster.costly - known.entries.keys())
        self.action = ""
        self.tried: dict[str, set[str]] = {name: set() for name in ("", *policy.actions)}
        """Action → jobs that it has tried."""
        self.kept: set[str] = set()
        self.reachable: set[str] = set()
        """Jobs that an evicting action did not refuse, because they could start without evictions."""
        self.cost: dict[str, int] = {}
        self.too_costly: set[str] = set()
        self.deadlines: dict[str, float] = {}
        self._trying = ""
        self.spent: dict[str, dict[str, int]] = {}
        self._called: set[str] = set()
        """Jobs of which the next in line was looked for."""
        self._followers: set[str] = set()
        """The jobs that the job before them in their line has called in this cycle."""
        self._skipped_too_early: set[str] = set()
        """Jobs of which the cycle learned too late that an earlier action should have tried them."""

    def rests(self, key: str, entry: Waiting) -> bool:
        """Whether a waiting job is not tried in this cycle: its attempts were expensive, or nothing could help it."""
        if entry.not_before > self.now:
            return True
        return key not in self.due and self.now < entry.retry_at

    # ------------------------------------------------------------------------------------------------------- attempts

    def not_tried(self, jobs: list[Job]) -> list[Job]:
        """Return the jobs that the running action has not tried in this state in an earlier cycle."""
        if not self.entries and not self.too_costly:
            return jobs
        return [job for job in jobs if job.key not in self.too_costly and not self._is_tried(job.key)]

    def _is_tried(self, key: str) -> bool:
        entry = self.entries.get(key)
        return entry is not None and self.action in entry.tried and self.rests(key, entry)

    def places(self) -> list[tuple[str, Mapping[str, str]]]:
        """Return what jobs keep (task → node) that only wait for capacity being freed since earlier, cut cycles."""
        tried = ((key, self.entries[key]) for key in sorted(self.known.tried))
        return [(key, entry.places) for key, entry in tried if entry.places and self.rests(key, entry)]

    def to_decide(self, undecided: Set[str]) -> Set[str]:
        """Return the jobs that are not passed over, of those for which an action may have work."""
        without_entry = undecided if self._unlisted is None else self._unlisted & undecided
        return without_entry | (self.awake & undecided)

    def passed_over(self, undecided: Set[str]) -> dict[str, Refusal]:
        """Return the refusals of the jobs that this cycle does not try."""
        refusals = dict(self.known.refusals)
        for key in self.awake | (self.due - undecided):  # a job that rests and is due may run by now
            refusals.pop(key, None)
        return refusals

    def wake_by_shares(self, excess: Excess) -> set[str]:
        """Try the jobs again whose queues may be entitled to enough now; return those that the cycle did not try yet.

        `excess` returns what a queue held beyond what it deserves when the cycle began.
        """
        if not self.known.moved:
            return set()
        helped = self.known.by_quota.within_deserved(excess) - self.due
        self.due |= helped
        woken = {key for key in helped - self.awake if not self.rests(key, self.entries[key])}
        self.by_quota_alone |= {key for key in woken if self.now < self.entries[key].retry_at}
        self.awake |= woken
        return woken

    def helped_by(
        self, victims: Iterable[str], placed: Mapping[str, str], excess: Callable[[str, str], float]
    ) -> Set[str]:
        """Return the jobs passed over that this cycle may have helped. The state is that before the cycle.

        Args:
            victims: The tasks that the cycle evicts.
            placed: Task → node, for tasks that the cycle bound or for which it keeps capacity.
            excess: Returns what a queue held beyond what it deserves before the cycle.
        """
        if not self.entries:
            return frozenset()
        cluster, freed, released = self._cluster, dict[str, Resource](), dict[str, Resource]()
        for key in victims:
            task = cluster.tasks[key]
            resources.add_to(freed.setdefault(task.node, {}), task.request)
            resources.add_to(released.setdefault(cluster.jobs[task.job].queue, {}), task.request)
        helped, moved = set[str](), set(released)
        if any(placed.get(task) != node for task, node in self.known.claims.items()):
            helped |= self.known.waiting_for(CLAIMS)
            moved = {EVERY}
        if freed:
            helped |= self.known.waiting_for(FREED) | helped_by_room(cluster, freed)
        helped |= helped_by_quota(cluster, moved, released)

        def excess_left(queue: str, name: str) -> float | None:
            has_moved = queue in moved or EVERY in moved
            return excess(queue, name) - released.get(queue, {}).get(name, 0) if has_moved else None

        helped |= self.known.by_quota.within_deserved(excess_left)
        helped = {key for key in helped if self._may_start(key)}
        if helped or freed:  # a first job may have been tried before the room came, and its followers would be after it
            tried = {key for key in self.awake if self._may_start(key)}
            helped.update(self.known.followers(helped | tried))
        helped = {key for key in helped - self.awake if self.entries[key].not_before <= self.now}
        return helped if freed else helped | self._skipped_too_early

    def _may_start(self, key: str) -> bool:
        """Whether an action that follows an eviction may try a job: `enqueue` may have been before, and refused it."""
        return self._admits_late or not self._cluster.jobs[key].is_pending

    def _is_elsewhere(self, key: str) -> bool:
        entry, job = self.entries[key], self._cluster.jobs[key]
        return bool(entry.line) and (self.lines.line_of(job) != entry.line or self.lines.rank_of(job) != entry.rank)

    def _heir(self, key: str) -> str:
        """Return the first job that a line is left with when the job that was the first has changed."""
        if not self.known.is_first(key):
            return ""
        return self._behind(key)

    def _behind(self, key: str) -> str:
        """Return the next job of the same line that is still equal to it; empty if there is none."""
        line, at = self.entries[key].line, key
        while (at := self.known.lines.after(line, self.entries[at].place(at))) in self._strayed:
            pass
        return at

    def next_in_line(self, key: str, *, refused: bool) -> str:
        """Return the job behind one that was tried, if it is to be tried in this cycle too; empty otherwise."""
        entry = self.entries.get(key)
        if entry is None or not entry.line or key in self._called or key in self._strayed:
            return ""
        if refused and key not in self.reachable:
            return ""
        self._called.add(key)
        follower = self._behind(key)
        if not follower or follower in self.awake or follower in self.due:
            return ""  # it is tried anyway: time alone may have woken it
        if any(key in tried for action, tried in self.tried.items() if action != self.action):
            self._skipped_too_early.add(follower)  # an action before this one would have tried it as well
            return ""
        self.due.add(follower)
        self._followers.add(follower)
        if self._waits_for_quota_alone(self.entries[follower]):
            self.by_quota_alone.add(follower)
        return follower

    def _waits_for_quota_alone(self, entry: Waiting) -> bool:
        return bool(entry.quotas) and not entry.topics and entry.least is None and self.now < entry.retry_at

    def is_called(self, key: str) -> bool:
        """Whether the job that stood before this one in its line has called it."""
        return key in self._followers

    def wake(self, key: str) -> None:
        """Try a job again that cannot keep the capacity for which it waits."""
        self.due.add(key)

    def begin(self, job: Job) -> None:
        """Record that the running action tries a job."""
        self._trying = job.key
        self.tried[self.action].add(job.key)

    def left_to_allocate(self, job: Job) -> None:
        """Record that the current action did not refuse the job: the job could start without evictions.

        Allocate may give that room to other jobs and refuse this one. Its refusal says nothing about what the action
        decides without that room, so the job is tried again after any change.
        """
        self.reachable.add(job.key)

    def end(self, job: Job, steps: int) -> None:
        """Record that the attempt is over, and its cost."""
        self._trying = ""
        self.cost[job.key] = self.cost.get(job.key, 0) + steps

    def exceeded_cap(self, job: Job) -> None:
        """Record that a job exceeded the maximum of one job."""
        self.too_costly.add(job.key)

    def deadline(self, time: float) -> None:
        """Record when time alone changes the outcome, for the job that is being tried or else for any job."""
        self.deadlines[self._trying] = min(time, self.deadlines.get(self._trying, time))

    def count_useless(self, queue: str, namespace: str, steps: int) -> None:
        """Count the steps of an attempt without success for its queue, and for the namespace in the queue."""
        spent = self.spent.setdefault(self.action, {})
        for who in (queue, f"{queue} {namespace}"):
            spent[who] = spent.get(who, 0) + steps

    @property
    def takes_turns(self) -> bool:
        """Whether a cycle that was cut left jobs of the running action, so that queues take turns."""
        return self.action in self.turns

    def useless_steps(self, *who: str) -> int:
        """Return the useless steps of a queue (or a namespace in it) since the action was first cut, else 0."""
        before = self.turns.get(self.action)
        if before is None:
            return 0
        name = " ".join(who)
        return before.get(name, 0) + self.spent.get(self.action, {}).get(name, 0)
