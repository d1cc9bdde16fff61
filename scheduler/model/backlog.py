"""Jobs that wait, and what could help them.

The one rule: whoever changes the state tells what changed, by topic, in the same breath; a job is due as soon as
something is told that its refusal came from, and is passed over until then. To tell too much costs a cycle, to tell
too little makes a job wait until its time is up. (As kube-scheduler's QueueingHints.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

FREED = "freed"
"""A pod that held or asked for something is gone, done or leaving: room and quota."""
PLACED = "placed"
"""A pod has got a node: neighbours, shares of queues. ``placed:Q``: one of queue Q."""
RUNNING = "running"
"""A pod runs that did not: it may be reclaimed from now on."""
GROUPS = "groups"
"""A PodGroup changed so that it asks for less, or is served in another place."""
VOLUMES = "volumes"
"""A volume, a claim, or what a storage driver says of a node."""
BUDGETS = "budgets"
"""A PodDisruptionBudget."""
CLAIMS = "claims"
"""A job that was to get room which is being freed gets other room, or none."""
TOPICS = (FREED, PLACED, RUNNING, GROUPS, VOLUMES, BUDGETS, CLAIMS)
"""All but the rest (nodes, queues, classes, namespaces), which every waiting job is told of."""


class Waits(Protocol):
    """What is remembered of a waiting job (:class:`scheduler.framework.decisions.Waiting`)."""

    @property
    def topics(self) -> tuple[str, ...]: ...

    @property
    def least(self) -> dict[str, int] | None: ...

    @property
    def retry_at(self) -> float: ...

    @property
    def not_before(self) -> float: ...

    @property
    def tried(self) -> tuple[str, ...]: ...

    @property
    def late(self) -> bool: ...

    @property
    def refusal(self) -> Any: ...


class Memory(Protocol):
    """What a cycle leaves behind (:class:`scheduler.framework.decisions.Memory`)."""

    policy: str
    waiting: dict[str, Any]
    forgotten: list[str]
    due: list[str]
    turns: dict[str, dict[str, int]]


Amounts = tuple[tuple[str, int], ...]


class Backlog:
    """What is remembered of waiting jobs, by job. Events change it, and what a cycle left behind; never a cycle itself.

    ``due``: jobs that are to be tried again; ``freed``: nodes that may have more room than when the last cycle ended.
    ``turns``: action that was cut → queue, or queue and namespace → steps spent in vain since. ``claims``: task → node
    with room being freed, as the last cycle had it. ``policy``: fingerprint of the policy that all of it follows from.

    There may be thousands of entries that a cycle has nothing to do for. It looks at ``refusals`` (job → why it waits)
    as a whole, and at the few jobs that are ``late``, were ``tried`` in part, or have to ``rest``.
    """

    def __init__(self) -> None:
        self.entries: dict[str, Any] = {}
        self.due: set[str] = set()
        self.freed: set[str] = set()
        self.turns: dict[str, dict[str, int]] = {}
        self.claims: dict[str, str] = {}
        self.policy = ""
        self.refusals: dict[str, Any] = {}
        self.late: set[str] = set()
        self.tried: set[str] = set()
        self.rest: set[str] = set()
        self._first_retry: float | None = None
        self._by_topic: dict[str, set[str]] = {}
        self._by_least: dict[Amounts, set[str]] = {}

    @property
    def listens(self) -> bool:
        """Whether anybody could be helped by what is told."""
        return bool(self.entries or self.claims)

    # --------------------------------------------------------------------------------------------------------- events

    def tell(self, topic: str) -> None:
        """Something of this topic changed."""
        self.due.update(self._by_topic.get(topic, ()))

    def tell_all(self) -> None:
        """Something changed that any refusal may come from."""
        self.due.update(self.entries)

    def tell_job(self, key: str) -> None:
        """Something about this very job changed."""
        if key in self.entries:
            self.due.add(key)

    def tell_room(self, node: str) -> None:
        """A node may have more room than before."""
        if node and self.entries:
            self.freed.add(node)

    def drop(self, key: str) -> None:
        """The job is gone."""
        entry = self.entries.pop(key, None)
        if entry is None:
            return
        self._first_retry = None
        self.refusals.pop(key, None)
        for some in (self.due, self.late, self.tried, self.rest):
            some.discard(key)
        for topic in entry.topics:
            self._by_topic[topic].discard(key)
        if entry.least is not None:
            amounts = _amounts(entry)
            alike = self._by_least[amounts]
            alike.discard(key)
            if not alike:
                del self._by_least[amounts]

    # ---------------------------------------------------------------------------------------------------------- cycles

    @property
    def first_retry(self) -> float:
        """When time alone has the first job tried of those that need not rest; infinity where there is none."""
        if self._first_retry is None:
            times = (entry.retry_at for key, entry in self.entries.items() if key not in self.rest)
            self._first_retry = min(times, default=math.inf)
        return self._first_retry

    def has_due(self, now: float) -> bool:
        """Whether a job is to be tried again at once."""
        return any(self.entries[key].not_before <= now for key in self.due)

    def apply(self, memory: Memory, claims: Mapping[str, str]) -> None:
        """Take over what a cycle left behind, right after it and before anything else."""
        if memory.policy != self.policy:
            self.clear()
            self.policy = memory.policy
        for key in memory.forgotten:
            self.drop(key)
        for key, entry in memory.waiting.items():
            self._put(key, entry)
        self.due = {key for key in memory.due if key in self.entries}
        self.freed.clear()
        self.turns = dict(memory.turns)
        if any(claims.get(task) != node for task, node in self.claims.items()):
            self.tell(CLAIMS)
        self.claims = dict(claims)

    def restore(
        self,
        policy: str,
        entries: Mapping[str, Any],
        *,
        due: Iterable[str],
        freed: Iterable[str],
        turns: dict[str, dict[str, int]],
        claims: dict[str, str],
    ) -> None:
        """Become what a checkpoint says."""
        self.clear()
        self.policy = policy
        for key, entry in entries.items():
            self._put(key, entry)
        self.due, self.freed, self.turns, self.claims = set(due), set(freed), turns, claims

    def clear(self) -> None:
        """Forget all."""
        self.__init__()  # type: ignore[misc]

    def with_least(self) -> Iterable[tuple[Amounts, set[str]]]:
        """What one task at least needs of a node → the jobs that such room could help."""
        return self._by_least.items()

    def _put(self, key: str, entry: Waits) -> None:
        self.drop(key)
        self.entries[key] = entry
        self._first_retry = None
        if entry.refusal.items:
            self.refusals[key] = entry.refusal
        for some, belongs in ((self.late, entry.late), (self.tried, entry.tried), (self.rest, entry.not_before > 0)):
            if belongs:
                some.add(key)
        for topic in entry.topics:
            self._by_topic.setdefault(topic, set()).add(key)
        if entry.least is not None:
            self._by_least.setdefault(_amounts(entry), set()).add(key)


def _amounts(entry: Waits) -> Amounts:
    return tuple(sorted((entry.least or {}).items()))
