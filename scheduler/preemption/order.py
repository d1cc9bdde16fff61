"""In which order victims go.

The one rule: one order for all victims of an action, over all nodes: first what the tiers permit first; then the
nearest queue; the queue that is served last; the lowest job priority; and among equals the fewest gangs broken, the
fewest pods, those that have been told already (by a scheduler that ended before it deleted them), the youngest. A set
of victims is compared by its best protected ones first.
"""

from __future__ import annotations

from typing import Any

from ..framework.session import Session
from ..model.job import Job
from ..model.queue import Queue
from ..model.task import Task

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


class Ages:
    """How young jobs and tasks are, for one cycle: smaller is younger, within a job the task that is served last.

    Who has been told to go comes before all others.
    """

    def __init__(self, session: Session) -> None:
        self._task_key = session.hooks.task_key
        by_age = sorted(session.jobs.values(), key=lambda job: (job.creation, job.key), reverse=True)
        self._job = {job.key: number for number, job in enumerate(by_age)}
        self._young: dict[str, Key] = {}

    def of(self, task: Task) -> Key:
        young = self._young.get(task.key)
        if young is None:
            young = self._young[task.key] = (
                not task.is_disruption_target,
                self._job[task.job],
                Last(self._task_key(task)),
            )
        return young


class QueueOrderReversed:
    """A queue's place among the queues, the one that is served last first, as the state is when two are compared."""

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

    # One object a queue, so that equality is identity.

    def __repr__(self) -> str:
        return f"QueueOrderReversed({self._queue.name})"


class Order:
    """The order as seen by one preemptor's queue."""

    def __init__(self, session: Session, queue: Queue, ages: Ages) -> None:
        self._session = session
        self._queue = queue
        self.age_key = ages.of
        self._places: dict[str, tuple[Key, QueueOrderReversed | None]] = {queue.name: ((), None)}

    def level(self, job: Job, priority: int) -> Level:
        """How well protected a task of ``job`` is, tiers left out."""
        place = self._places.get(job.queue)
        if place is None:
            victim = self._session.queues[job.queue]
            near = self._session.hooks.victim_queue_order(victim, self._queue)
            place = self._places[job.queue] = (near, QueueOrderReversed(self._session, victim))
        return (*place, priority)
