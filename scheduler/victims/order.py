"""In which order victims go.

The one rule: one order for all victims of an action, over all nodes: first what the tiers permit first; then the
nearest queue; the queue that is served last; the lowest job priority; and among equals the fewest gangs broken, the
fewest pods, the youngest. A set of victims is compared by its best protected ones first.
"""

from __future__ import annotations

from typing import Any

from scheduler.model.job import Job
from scheduler.model.queue import Queue
from scheduler.model.task import Task
from scheduler.session import Session

Key = tuple[Any, ...]
Level = tuple[Any, ...]
"""How well protected a victim is: tier, nearness of its queue, place of its queue, priority. Smaller goes first."""


class Last:
    """A key in reverse: what comes last comes first."""

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


class Order:
    """The order as seen by one claimant's queue.

    Queue keys follow the state, so they are asked anew whenever it has changed.
    """

    def __init__(self, session: Session, queue: Queue) -> None:
        self._session = session
        self._queue = queue
        self._near: dict[str, Key] = {}
        self._served: dict[str, Last] = {}
        self._served_at = -1
        self._young: dict[str, Last] = {}

    def level(self, job: Job, priority: int) -> Level:
        """How well protected a task of ``job`` is, tiers left out."""
        if job.queue == self._queue.name:
            return ((), 0, priority)
        near = self._near.get(job.queue)
        if near is None:
            victim = self._session.queues[job.queue]
            near = self._near[job.queue] = self._session.hooks.key("victim_queue_order", victim, self._queue)
        return (near, self._served_last(job.queue), priority)

    def _served_last(self, queue: str) -> Last:
        state = len(self._session.log)
        if self._served_at != state:
            self._served.clear()
            self._served_at = state
        served = self._served.get(queue)
        if served is None:
            served = self._served[queue] = Last(self._session.hooks.queue_key(self._session.queues[queue]))
        return served

    def youth(self, task: Task) -> Last:
        """Smaller for the younger job, within a job for the task that is served last."""
        young = self._young.get(task.key)
        if young is None:
            job = self._session.jobs[task.job]
            young = self._young[task.key] = Last((job.creation, job.key, *self._session.hooks.task_key(task)))
        return young
