"""Track the waiting jobs, and the changes that could help them.

Every change of the state is reported to the backlog at once, by topic. A job becomes due when a topic is reported on
which its refusal depends, and is skipped until then. A superfluous report costs a cycle; a missing report makes a job
wait until its time is up. (Compare kube-scheduler's QueueingHints.)
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
"""Stands for every queue where queues are named whose quota has moved."""
Amounts = tuple[tuple[str, int], ...]
K = TypeVar("K")


class Backlog(ChangeListener):
    """The state of waiting jobs, by job. Events and the results of cycles change it, but no running cycle does.

    Thousands of entries may need no work in a cycle. A cycle reads `refusals` (job → why it waits) as a whole, and the
    few jobs that are `late`, were `tried` in part, or have to `rest`. Of a line of equal jobs only the first one waits
    for changes (`scheduler.backlog.lines`).

    Attributes:
        due: Jobs to try again.
        freed: Nodes that may have more capacity than at the end of the last cycle.
        moved: The queues whose quota may have more room than at the end of the last cycle; `EVERY` stands for all.
        turns: Action that was cut → queue, or queue and namespace → useless steps since.
        claims: Task → node with capacity that the last cycle kept for it: being freed, or free already.
        policy: Fingerprint of the policy that all of it depends on.
    """

    def __init__(self) -> None:
        self.entries: dict[str, Waiting] = {}
        self.unlisted: set[str] = set()
        """The jobs without an entry for which an action may have work, and jobs whose entry was removed."""
        self.clear()

    def clear(self) -> None:
        """Remove all entries and what belongs to them."""
        self.unlisted.update(self.entries)
        self.entries = {}
        self.due: set[str] = set()
        self.freed: set[str] = set()
        self.moved: set[str] = set()
        self.turns: dict[str, dict[str, int]] = {}
        self.claims: dict[str, str] = {}
        self.lapses: dict[str, float] = {}
        """Job → when its reservation lapses, for jobs without pods for it."""
        self.policy = ""
        self.refusals: dict[str, Refusal] = {}
        self.late: set[str] = set()
        self.tried: set[str] = set()
        self.rest: set[str] = set()
        self._retries: Counter[float] = Counter()
        """When jobs without a rest have to be tried because of time alone → how many; most share few times."""
        self.lines = Lines()
        self._by_topic: dict[str, set[str]] = {}
        """The jobs that wait for each topic; of each line only the first job, as in `_by_least` and `by_quota`."""
        self._by_least: dict[Amounts, set[str]] = {}
        self.by_quota = JobsByQuota()
        """The jobs that wait for room in a quota."""

    @property
    def is_interested(self) -> bool:
        """Whether any waiting job could be helped by a change."""
        return bool(self.entries or self.claims)

    # --------------------------------------------------------------------------------------------------------- events

    def report(self, topic: str, queue: str = EVERY) -> None:
        """Report a change of this topic; `queue`: the only queue whose quota it concerns, if that is known."""
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
        """Report a change of this very job."""
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
        """Remove the entry of a job; return the job that is the first of the line for it, if any."""
        entry = self.entries.pop(key, None)
        if entry is None:
            return ""
        self.unlisted.add(key)
        if key not in self.rest:
            self._retries[entry.retry_at] -= 1
            if not self._retries[entry.retry_at]:
                del self._retries[entry.retry_at]
        self.refusals.pop(key, None)
        for some in (self.due, self.late, self.tried, self.rest):
            some.discard(key)
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
        """Let a job wait for the changes that its entry names."""
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
        """Return when the first job without a rest has to be tried because of time alone; infinity if there is none.

        Jobs in `without` do not count.
        """
        gone = Counter(self.entries[key].retry_at for key in without if key in self.entries and key not in self.rest)
        return min(self._retries - gone if gone else self._retries, default=math.inf)

    def apply(self, memory: Memory, pipelined: Mapping[str, str]) -> None:
        """Apply what a cycle left behind, directly after the cycle.

        Args:
            memory: What the cycle has to say of the waiting jobs.
            pipelined: Task → node, for tasks that wait for capacity being freed.
        """
        if memory.policy != self.policy:
            self.clear()
            self.policy = memory.policy
        firsts = {self._take_out(key) for key in memory.forgotten}
        firsts.update([self._put(key, entry) for key, entry in memory.waiting.items()])
        self.lapses = dict(memory.lapses)
        self.due = {key for key in memory.due if key in self.entries}
        for key in firsts.difference(memory.waiting, memory.kept):
            if key in self.entries and self.is_first(key):
                self.due.add(key)  # nobody has tried it since it stands there
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
        """Yield the jobs that wait behind the first of the lines in which these jobs wait."""
        for line in {self.entries[key].line for key in jobs}:
            yield from self.lines.others(line)

    def with_least(self) -> Iterable[tuple[Amounts, set[str]]]:
        """Yield the minimum that one task needs of a node, with the jobs that such capacity could help."""
        return self._by_least.items()

    def is_first(self, key: str) -> bool:
        """Whether a waiting job is the first of its line, or stands in none."""
        line = self.entries[key].line
        return not line or self.lines.first(line) == key

    def _put(self, key: str, entry: Waiting) -> str:
        """Keep an entry; return the job that is the first of the line that the job has left, if any."""
        follower = self._take_out(key)
        self.entries[key] = entry
        self.unlisted.discard(key)
        if entry.refusal.items:
            self.refusals[key] = entry.refusal
        for some, belongs in ((self.late, entry.late), (self.tried, entry.tried), (self.rest, entry.not_before > 0)):
            if belongs:
                some.add(key)
        if key not in self.rest:
            self._retries[entry.retry_at] += 1
        first = self.lines.first(entry.line)
        if entry.line:
            self.lines.join(entry.line, entry.place(key))
        if self.is_first(key):
            if first:
                self._stop_waiting(first, self.entries[first])
            self._wait(key, entry)
        return follower


def backlog_of(cluster: Cluster) -> Backlog:
    """Return the backlog that listens to a state; from the first call on it learns of every change."""
    if not isinstance(cluster.listener, Backlog):
        made = Backlog()
        made.unlisted.update(cluster.sums().undecided)
        cluster.listener = made
    return cluster.listener


def _discard(jobs: dict[K, set[str]], of: K, key: str) -> None:
    """Remove a job from a set, and the last one with its set: topics name queues, and queues come and go."""
    jobs[of].discard(key)
    if not jobs[of]:
        del jobs[of]


def _amounts(entry: Waiting) -> Amounts:
    return tuple(sorted((entry.least or {}).items()))
