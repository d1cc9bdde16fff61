"""Order victims: an action evicts from all nodes in one order.

These keys decide, in this order:

1. the tier that permits the eviction: the first tier comes first;
2. the distance of the victim's queue: the nearest queue comes first;
3. the serving order of that queue: the queue that is served last comes first;
4. the priority of the job: the lowest comes first;
5. the number of broken gangs, then of pods: the fewest come first;
6. victims whose eviction an earlier scheduler process had announced but not completed, then the youngest.

Sets of victims are compared by their best protected members first.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from ..framework.session import Session
from ..model.job import Job
from ..model.queue import Queue
from ..model.task import Task

Key = tuple[Any, ...]
Level = tuple[Any, ...]
"""The protection of a victim: tier, distance and serving order of its queue, priority. The lowest is evicted first."""


class Last:
    """Reverse the order of a key."""

    __slots__ = ("key",)

    def __init__(self, key: Key) -> None:
        self.key = key

    def __lt__(self, other: Last) -> bool:
        return other.key < self.key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Last) and self.key == other.key

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Last{self.key!r}"


class Ages:
    """Ages of jobs and tasks in one cycle: smaller is younger; within a job, the task served last is the youngest.

    Tasks whose eviction has already been announced come first.
    """

    def __init__(self, session: Session) -> None:
        self._session, self._task_key = session, session.hooks.task_key
        self._keys: dict[str, Key] = {}

    @cached_property
    def _job_ranks(self) -> dict[str, int]:
        """The rank of each job by age, the youngest first. Computed late: most cycles compare no victims."""
        by_age = sorted(self._session.jobs.values(), key=lambda job: (job.creation, job.key), reverse=True)
        return {job.key: number for number, job in enumerate(by_age)}

    def of(self, task: Task) -> Key:
        key = self._keys.get(task.key)
        if key is None:
            key = self._keys[task.key] = (
                not task.is_disruption_target,
                self._job_ranks[task.job],
                Last(self._task_key(task)),
            )
        return key


class QueueOrderReversed:
    """Key of a queue in reverse serving order, computed from the state at the time of the comparison."""

    __slots__ = ("_key", "_queue", "_session", "_state")

    def __init__(self, session: Session, queue: Queue) -> None:
        self._session = session
        self._queue = queue
        self._state = -1
        self._key: Key = ()

    @property
    def key(self) -> Key:
        if self._state != (state := len(self._session.nodes.touched)):  # grows with every change, undone or not
            self._key = self._session.hooks.queue_key(self._queue)
            self._state = state
        return self._key

    def __lt__(self, other: QueueOrderReversed) -> bool:
        return other.key < self.key

    # There is one object per queue, so equality is identity.

    def __repr__(self) -> str:
        return f"QueueOrderReversed({self._queue.name})"


class Order:
    """The order of victims for preemptors of one queue."""

    def __init__(self, session: Session, queue: Queue, ages: Ages) -> None:
        self._session = session
        self._queue = queue
        self.age_key = ages.of
        self._queue_levels: dict[str, tuple[Key, QueueOrderReversed | None]] = {queue.name: ((), None)}

    def level(self, job: Job, priority: int) -> Level:
        """Return how well a task of `job` is protected, without its tier."""
        queue_level = self._queue_levels.get(job.queue)
        if queue_level is None:
            victim = self._session.queues[job.queue]
            distance = self._session.hooks.victim_queue_order(victim, self._queue)
            queue_level = self._queue_levels[job.queue] = (distance, QueueOrderReversed(self._session, victim))
        return (*queue_level, priority)
