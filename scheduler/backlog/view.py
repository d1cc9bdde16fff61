"""Decide which waiting jobs a cycle may skip.

A job is skipped only if all actions have refused it, no change on which its refusal depends was reported since, and
every such change will be reported. A cycle does not change the backlog: the changes of entries are a part of the
cycle's decisions (`scheduler.backlog.cycle_end`), are applied after the cycle, and are an input of the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set

from ..model import resources
from ..model.changes import CLAIMS, FREED, GROUPS
from ..model.cluster import Cluster
from ..model.job import Job
from ..model.resources import Resource
from ..policy.model import Policy
from ..policy.schema import EVICTING
from ..reasons import Refusal, Unplaceable
from .backlog import EVERY, Backlog
from .entries import Waiting
from .helped import helped_by_lapse, helped_by_quota, helped_by_room
from .lines import LineRule
from .quotas import Excess


class BacklogView:
    """The backlog as one cycle sees it, and the cycle's own attempts.

    Attributes:
        entries: The entry of each waiting job.
        awake: The waiting jobs that this cycle does not skip.
        due: The waiting jobs that a change may have helped.
        late_jobs: Jobs that are tried after all others, because earlier attempts were too expensive, or because the
            API refused their last bind: it may refuse the next one, and the room would stay unused (KAI#2074).
        too_costly: Jobs that exceeded the maximum steps of one job in this cycle.
        action: The action that runs.
        known: The backlog, or an empty one if it was written under another policy.

    Args:
        backlog: The waiting jobs.
        woken: Waiting jobs that evictions of this cycle may help.
        fingerprint: Distinguishes the policy: a backlog of another policy is ignored.
        lines: Which jobs share a line, of which only the first is tried (`scheduler.backlog.lines`).
    """

    def __init__(
        self,
        cluster: Cluster,
        backlog: Backlog,
        policy: Policy,
        now: float,
        woken: Set[str] = frozenset(),
        *,
        fingerprint: str,
        lines: LineRule,
    ) -> None:
        self._cluster, self.now = cluster, now
        self.policy = fingerprint
        self.actions = policy.actions
        first = next((number for number, name in enumerate(policy.actions) if name in EVICTING), 0)
        self._admits_late = "enqueue" not in policy.actions[:first] or "enqueue" in policy.actions[first:]
        self.known = known = backlog if backlog.policy == fingerprint else Backlog.of(cluster)
        self.entries: Mapping[str, Waiting] = known.entries
        self.due = known.due | woken
        if known.entries:
            self.due |= helped_by_room(cluster.nodes, known, dict.fromkeys(known.freed, Resource()))
            self.due |= helped_by_quota(cluster, known, known.moved) | helped_by_lapse(cluster, known, now)
        if known.moved and any(task not in cluster.nominated for task in known.claims):
            # in a new order of service, other jobs may get the kept capacity first
            self.due |= known.waiting_for(CLAIMS)
        self.lines = lines
        if known.turns or cluster.nodes.with_pod_terms:
            self.due.update(known.followers(self.entries))  # outcomes of equal jobs may differ, so all are tried
        self._misplaced = {key for key in self.due if self._is_misplaced(key)}
        """Jobs that have changed, and are no longer equal to the jobs of the line in which they wait."""
        self.due.update([other for key in self._misplaced if (other := self._new_first(key))])
        self.lapses: Mapping[str, float] = known.lapses
        self.turns: Mapping[str, Mapping[str, int]] = known.turns
        some = known.entries if now >= known.first_retry() else known.partly_tried | known.backoff | self.due
        self.awake = {key for key in some if self.entries[key].tried or not self.is_skipped(key, self.entries[key])}
        refused = {cluster.tasks[key].job for key in cluster.refused_binds & cluster.tasks.keys()}
        self.late_jobs: Set[str] = known.late | refused | {key for key in cluster.costly if key not in known.entries}
        self.action = ""
        self.tried: dict[str, set[str]] = {name: set() for name in ("", *policy.actions)}
        """Action → jobs that it has tried."""
        self.reachable: set[str] = set()
        """Jobs that an evicting action did not refuse, because they could start without evictions."""
        self.cost: dict[str, int] = {}
        self.too_costly: set[str] = set()
        self.deadlines: dict[str, float] = {}
        self._trying = ""
        self.spent: dict[str, dict[str, int]] = {}
        self._looked_behind: set[str] = set()
        """Jobs for which `next_in_line` has looked for the next job."""
        self._skipped_too_early: set[str] = set()
        """Jobs that an earlier action of this cycle should have tried too, as a later action found."""

    def is_skipped(self, key: str, entry: Waiting) -> bool:
        """Whether this cycle does not try a waiting job: the job is in backoff, or no change could have helped it."""
        if entry.not_before > self.now:
            return True
        return key not in self.due and self.now < entry.retry_at

    def was_unplaceable(self, key: str) -> bool:
        """Whether no node could hold a job when it was refused."""
        return key in self.entries and any(type(why) is Unplaceable for why in self.entries[key].refusal.items)

    # ------------------------------------------------------------------------------------------------------- attempts

    def not_tried(self, jobs: list[Job]) -> list[Job]:
        """Return the jobs that the running action has not tried in this state in an earlier cycle."""
        if not self.entries and not self.too_costly:
            return jobs
        return [job for job in jobs if job.key not in self.too_costly and not self._is_tried(job.key)]

    def _is_tried(self, key: str) -> bool:
        entry = self.entries.get(key)
        return entry is not None and self.action in entry.tried and self.is_skipped(key, entry)

    def places(self) -> list[tuple[str, Mapping[str, str]]]:
        """Return the jobs that only wait for capacity being freed, each with that capacity (task → node).

        Earlier cycles, which were cut, tried these jobs.
        """
        tried = ((key, self.entries[key]) for key in sorted(self.known.partly_tried))
        return [(key, entry.places) for key, entry in tried if entry.places and self.is_skipped(key, entry)]

    def to_decide(self, undecided: Set[str]) -> Set[str]:
        """Return the jobs of `undecided` that this cycle does not skip."""
        return (self.known.unlisted | self.awake) & undecided

    def passed_over(self, undecided: Set[str]) -> dict[str, Refusal]:
        """Return the refusals of the jobs that this cycle does not try."""
        refusals = dict(self.known.refusals)
        for key in self.awake | (self.due - undecided):  # a due job in backoff may run by now
            refusals.pop(key, None)
        return refusals

    def wake_by_shares(self, excess: Excess) -> set[str]:
        """Wake the jobs whose queues may be entitled to enough now; return the jobs that were not awake before.

        `excess` returns what a queue held beyond what it deserves when the cycle began.
        """
        if not self.known.moved:
            return set()
        helped = self.known.by_quota.within_deserved(excess) - self.due
        self.due |= helped
        woken = {key for key in helped - self.awake if not self.is_skipped(key, self.entries[key])}
        self.awake |= woken
        return woken

    def wake_by_reservations(self, queues: Iterable[str]) -> set[str]:
        """Wake the jobs for which less may be reserved in some queues; return the jobs that were not awake before."""
        helped = helped_by_quota(self._cluster, self.known, set(queues)) | self.known.waiting_for(GROUPS)
        self.due |= helped
        woken = {key for key in helped - self.awake if not self.is_skipped(key, self.entries[key])}
        self.awake |= woken
        return woken

    def helped_by(
        self, victims: Iterable[str], placed: Mapping[str, str], excess: Callable[[str, str], float]
    ) -> Set[str]:
        """Return the skipped jobs that this cycle may have helped. The cluster is in the state before the cycle.

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
            helped |= self.known.waiting_for(FREED) | helped_by_room(cluster.nodes, self.known, freed)
        helped |= helped_by_quota(cluster, self.known, moved, released)

        def excess_left(queue: str, name: str) -> float | None:
            has_moved = queue in moved or EVERY in moved
            return excess(queue, name) - released.get(queue, {}).get(name, 0) if has_moved else None

        helped |= self.known.by_quota.within_deserved(excess_left)
        helped = {key for key in helped if self._may_start(key)}
        if helped or freed:  # the first of a line may have been tried before room was freed, its followers only after
            tried = {key for key in self.awake if self._may_start(key)}
            helped.update(self.known.followers(helped | tried))
        helped = {key for key in helped - self.awake if self.entries[key].not_before <= self.now}
        return helped if freed else helped | self._skipped_too_early

    def _may_start(self, key: str) -> bool:
        """Whether an action after the evictions may try a job: not if only an earlier `enqueue` could admit it."""
        return self._admits_late or not self._cluster.jobs[key].is_pending

    def _is_misplaced(self, key: str) -> bool:
        entry, job = self.entries[key], self._cluster.jobs[key]
        return bool(entry.line) and (self.lines.line_of(job) != entry.line or self.lines.rank_of(job) != entry.rank)

    def _new_first(self, key: str) -> str:
        """Return the job that becomes the first of a line because the first one has changed; empty if there is none."""
        if not self.known.is_first(key):
            return ""
        return self._behind(key)

    def _behind(self, key: str) -> str:
        """Return the next job of the same line that is not misplaced; empty if there is none."""
        line, at = self.entries[key].line, key
        while (at := self.known.lines.after(line, self.entries[at].place(at))) in self._misplaced:
            pass
        return at

    def next_in_line(self, key: str, *, refused: bool) -> str:
        """Return the job behind a tried one if this cycle must try it because of that; empty otherwise."""
        entry = self.entries.get(key)
        if entry is None or not entry.line or key in self._looked_behind or key in self._misplaced:
            return ""
        if refused and key not in self.reachable:
            return ""
        self._looked_behind.add(key)
        follower = self._behind(key)
        if not follower or follower in self.awake or follower in self.due:
            return ""  # it is tried anyway: time alone may have woken it
        if any(key in tried for action, tried in self.tried.items() if action != self.action):
            self._skipped_too_early.add(follower)  # an earlier action should have tried it too
            return ""
        self.due.add(follower)
        return follower

    def wake(self, key: str) -> None:
        """Mark a job as due because it cannot keep the capacity for which it waits."""
        self.due.add(key)

    def begin(self, job: Job) -> None:
        """Record that the running action tries a job."""
        self._trying = job.key
        self.tried[self.action].add(job.key)

    def left_to_allocate(self, job: Job) -> None:
        """Record that the current action did not refuse the job: the job could start without evictions.

        Allocate may use that room for other jobs and refuse this one. That refusal does not show what this action would
        decide without the room, so the job is tried again after any change.
        """
        self.reachable.add(job.key)

    def end(self, job: Job, steps: int) -> None:
        """Record that the attempt is over, and its cost."""
        self._trying = ""
        self.cost[job.key] = self.cost.get(job.key, 0) + steps

    def exceeded_cap(self, job: Job) -> None:
        """Record that a job exceeded the maximum steps of one job."""
        self.too_costly.add(job.key)

    def deadline(self, time: float) -> None:
        """Record that time alone changes the outcome at `time`, for the job being tried, or else for any job."""
        self.deadlines[self._trying] = min(time, self.deadlines.get(self._trying, time))

    def count_steps(self, queue: str, namespace: str, steps: int) -> None:
        """Count the steps of an attempt for the job's queue, and for its namespace in that queue."""
        spent = self.spent.setdefault(self.action, {})
        for scope in (queue, f"{queue} {namespace}"):
            spent[scope] = spent.get(scope, 0) + steps

    @property
    def takes_turns(self) -> bool:
        """Whether an earlier cycle was cut and left jobs of the running action, so that queues take turns."""
        return self.action in self.turns

    @property
    def round(self) -> int:
        """Return a number that differs from cycle to cycle while queues take turns."""
        return sum(self.turns.get(self.action, {}).values())

    def steps_spent(self, *scope: str) -> int:
        """Return the steps that were spent lately on a queue, or on a namespace in it (`Backlog.turns`)."""
        before = self.turns.get(self.action)
        if before is None:
            return 0
        name = " ".join(scope)
        return before.get(name, 0) + self.spent.get(self.action, {}).get(name, 0)
