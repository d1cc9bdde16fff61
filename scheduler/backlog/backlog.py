"""Track the waiting jobs and the changes that could help them (compare kube-scheduler's QueueingHints).

Every change of the state is reported to the backlog at once, by topic. A waiting job becomes due when a topic on which
its refusal depends is reported; until then, cycles skip the job. A superfluous report costs a cycle; a missing report
delays a job until its retry time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from typing import TypeVar

from ..model.changes import CLAIMS, QUOTA_TOPICS, ChangeListener
from ..model.cluster import Cluster
from ..reasons import Refusal
from .entries import Memory, Waiting
from .lines import Lines
from .quotas import JobsByQuota

EVERY = ""
"""Placeholder for all queues, in a set of queues whose quota may have more room."""
Amounts = tuple[tuple[str, int], ...]
K = TypeVar("K")


class Backlog(ChangeListener):
    """The waiting jobs. Events and the results of cycles change the backlog; a running cycle only reads it.

    Thousands of entries may need no work in a cycle. A cycle reads `refusals` (job → why it waits) as a whole, and
    otherwise only the few jobs that are `late`, `partly_tried` or in `backoff`. In a line of equal jobs, only the first
    one waits for changes (`scheduler.backlog.lines`).

    Attributes:
        due: Jobs to try again.
        freed: Nodes that may have more capacity than at the end of the last cycle.
        moved: The queues whose quota may have more room than at the end of the last cycle; `EVERY` stands for all.
        turns: Action that a cycle cut → queue, or queue and namespace → steps spent on it in this and the cut cycles
            before, of which each cycle forgets a half.
        claims: Task → node on which the last cycle kept capacity (free, or being freed) for the task.
        policy: Fingerprint of the policy under which the entries were written.
    """

    def __init__(self) -> None:
        self.entries: dict[str, Waiting] = {}
        self.unlisted: set[str] = set()
        """Jobs without an entry for which an action may have work, and jobs whose entry was removed."""
        self.clear()

    @classmethod
    def of(cls, cluster: Cluster) -> Backlog:
        """Return the backlog of a cluster in which no job has been refused yet."""
        backlog = cls()
        backlog.unlisted.update(cluster.sums().undecided)
        return backlog

    def clear(self) -> None:
        """Remove all entries and reset everything that depends on the policy."""
        self.unlisted.update(self.entries)
        self.entries = {}
        self.due: set[str] = set()
        self.freed: set[str] = set()
        self.moved: set[str] = set()
        self.turns: dict[str, dict[str, int]] = {}
        self.claims: dict[str, str] = {}
        self.lapses: dict[str, float] = {}
        """Job → when its reservation lapses, for jobs whose pods request less than the jobs reserve."""
        self.policy = ""
        self.refusals: dict[str, Refusal] = {}
        self.late: set[str] = set()
        self.partly_tried: set[str] = set()
        self.backoff: set[str] = set()
        self._retries: Counter[float] = Counter()
        """Retry time → number of jobs not in backoff that are retried then; most jobs share few times."""
        self.lines = Lines()
        self._by_topic: dict[str, set[str]] = {}
        """Topic → jobs that wait for it: of a line, only the first job. The same holds for `_by_least`, `by_quota`."""
        self._by_least: dict[Amounts, set[str]] = {}
        self.by_quota = JobsByQuota()
        """The jobs that wait for room in a quota."""

    @property
    def is_interested(self) -> bool:
        """Whether any waiting job could be helped by a change."""
        return bool(self.entries or self.claims)

    # --------------------------------------------------------------------------------------------------------- events

    def report(self, topic: str, queue: str = EVERY) -> None:
        """Report a change of a topic; `queue` is the only queue whose quota may have moved, if that is known."""
        if topic == CLAIMS and not self.claims:
            return
        if topic in QUOTA_TOPICS:
            self.moved.add(queue)
        self.due.update(self._by_topic.get(topic, ()))

    def waiting_for(self, topic: str) -> Set[str]:
        """Return the jobs that a change of this topic could help."""
        return self._by_topic.get(topic, set())

    def report_all(self) -> None:
        """Report a change on which any refusal may depend."""
        self.due.update(self.entries)

    def report_job(self, key: str) -> None:
        """Report a change of the job itself."""
        if key in self.entries:
            self.due.add(key)

    def report_undecided(self, key: str, is_undecided: bool) -> None:
        """Report whether an action may have work for a job that has changed."""
        if is_undecided and key not in self.entries:
            self.unlisted.add(key)
        else:
            self.unlisted.discard(key)

    def report_task(self, key: str) -> None:
        """Report a change of a task, for which capacity may have been kept."""
        if key in self.claims:
            self.report(CLAIMS)

    def report_capacity(self, node: str) -> None:
        """Report that a node may have more capacity than before."""
        if node and self.entries:
            self.freed.add(node)

    def drop(self, key: str) -> None:
        """Remove a job that was deleted."""
        self.lapses.pop(key, None)
        if next_in_line := self._take_out(key):
            self.due.add(next_in_line)
        self.unlisted.discard(key)

    def _take_out(self, key: str) -> str:
        """Remove the entry of a job; return the job that becomes the first of its line instead, if any."""
        entry = self.entries.pop(key, None)
        if entry is None:
            return ""
        self.unlisted.add(key)
        if key not in self.backoff:
            self._retries[entry.retry_at] -= 1
            if not self._retries[entry.retry_at]:
                del self._retries[entry.retry_at]
        self.refusals.pop(key, None)
        for jobs in (self.due, self.late, self.partly_tried, self.backoff):
            jobs.discard(key)
        if not entry.line:
            self._stop_waiting(key, entry)
            return ""
        was_first = self.lines.first(entry.line) == key
        self.lines.leave(entry.line, entry.place(key))
        if not was_first:
            return ""
        self._stop_waiting(key, entry)
        if follower := self.lines.first(entry.line):
            self._wait(follower, self.entries[follower])
        return follower

    def _wait(self, key: str, entry: Waiting) -> None:
        """Register a job for the changes that its entry names."""
        for topic in entry.topics:
            self._by_topic.setdefault(topic, set()).add(key)
        if entry.least is not None:
            self._by_least.setdefault(_amounts(entry), set()).add(key)
        self.by_quota.add(key, entry.quotas)

    def _stop_waiting(self, key: str, entry: Waiting) -> None:
        for topic in entry.topics:
            _discard(self._by_topic, topic, key)
        if entry.least is not None:
            _discard(self._by_least, _amounts(entry), key)
        self.by_quota.remove(key, entry.quotas)

    # ---------------------------------------------------------------------------------------------------------- cycles

    def first_retry(self, without: Iterable[str] = ()) -> float:
        """Return the earliest retry time of the jobs that are not in backoff; infinity if there is none.

        Jobs in `without` do not count.
        """
        left_out = [self.entries[key] for key in without if key in self.entries and key not in self.backoff]
        retries = self._retries - Counter(entry.retry_at for entry in left_out) if left_out else self._retries
        return min(retries, default=math.inf)

    def apply(self, memory: Memory, pipelined: Mapping[str, str]) -> None:
        """Apply the results of a cycle, directly after the cycle.

        Args:
            memory: The changed and removed entries, and the other state for the next cycle.
            pipelined: Task → node, for tasks that wait for capacity being freed.
        """
        if memory.policy != self.policy:
            self.clear()
            self.policy = memory.policy
        firsts = {self._take_out(key) for key in memory.forgotten}
        firsts.update([self._put(key, entry) for key, entry in memory.waiting.items()])
        self.lapses = dict(memory.lapses)
        self.due = {key for key in memory.due if key in self.entries}
        for key in firsts.difference(memory.waiting):
            if key in self.entries and self.is_first(key):
                self.due.add(key)  # it was not tried since it became the first
        self.freed.clear()
        self.moved.clear()
        self.turns = dict(memory.turns)
        claims = {**pipelined, **memory.held}
        if any(claims.get(task) != node for task, node in self.claims.items()):
            self.report(CLAIMS)
        self.claims = claims

    def restore(
        self,
        policy: str,
        entries: Mapping[str, Waiting],
        *,
        due: Iterable[str],
        freed: Iterable[str],
        moved: Iterable[str],
        turns: dict[str, dict[str, int]],
        claims: dict[str, str],
        lapses: dict[str, float],
    ) -> None:
        """Restore the state from a checkpoint."""
        self.clear()
        self.policy = policy
        for key, entry in entries.items():
            self._put(key, entry)
        self.due, self.freed, self.turns, self.claims = set(due), set(freed), turns, claims
        self.lapses, self.moved = lapses, set(moved)

    def followers(self, jobs: Iterable[str]) -> Iterable[str]:
        """Yield the jobs behind the first one in every line that contains one of these jobs."""
        for line in {self.entries[key].line for key in jobs}:
            yield from self.lines.followers(line)

    def with_least(self) -> Iterable[tuple[Amounts, set[str]]]:
        """Return pairs: the least capacity on one node that could help jobs, and these jobs."""
        return self._by_least.items()

    def is_first(self, key: str) -> bool:
        """Whether a waiting job is the first of its line, or is in no line."""
        line = self.entries[key].line
        return not line or self.lines.first(line) == key

    def _put(self, key: str, entry: Waiting) -> str:
        """Store an entry; return the job that becomes the first of the line that the job has left, if any."""
        follower = self._take_out(key)
        self.entries[key] = entry
        self.unlisted.discard(key)
        if entry.refusal.items:
            self.refusals[key] = entry.refusal
        if entry.late:
            self.late.add(key)
        if entry.tried:
            self.partly_tried.add(key)
        if entry.not_before > 0:
            self.backoff.add(key)
        else:
            self._retries[entry.retry_at] += 1
        first = self.lines.first(entry.line)
        if entry.line:
            self.lines.join(entry.line, entry.place(key))
        if self.is_first(key):
            if first:
                self._stop_waiting(first, self.entries[first])
            self._wait(key, entry)
        return follower


def _discard(jobs: dict[K, set[str]], value: K, key: str) -> None:
    """Remove a job from a set. An empty set is removed too: topics name queues, so old ones would pile up."""
    jobs[value].discard(key)
    if not jobs[value]:
        del jobs[value]


def _amounts(entry: Waiting) -> Amounts:
    return tuple(sorted((entry.least or {}).items()))
