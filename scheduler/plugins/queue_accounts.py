"""What queues hold, ask for and have reserved, live throughout a cycle: the arithmetic that all queue plugins share.

The one rule: an account's ``allocated`` follows every change that a statement makes or takes back, in the queue and
in all its ancestors alike, so that a rule never has to add up a history of its own. ``pods`` is no quota and is in no
amount here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from scheduler.model import resources
from scheduler.model.job import INQUEUE, RUNNING, Job
from scheduler.model.queue import Queue
from scheduler.model.resources import PODS, Resource
from scheduler.model.task import HOLDING, Task, TaskStatus
from scheduler.session import Session

Measure = Callable[[Task], Mapping[str, float]]
"""What a task counts in its queue: its request, or its cards."""


def without_pods(resource: Mapping[str, float]) -> Resource:
    """The amounts that quotas speak of."""
    return {name: amount for name, amount in resource.items() if name != PODS}


class Account:
    """One queue's numbers, in the units of :mod:`scheduler.model.resources`.

    ``limit`` is the real capability: what the queue may hold at most, the guarantees of others left alone.
    ``elastic`` is what its jobs hold beyond their minima; ``request`` all they hold or ask for. ``problem`` says why
    nothing of the queue is scheduled.
    """

    __slots__ = (
        *("allocated", "ancestors", "children", "deserved", "elastic", "guarantee", "inqueue", "limit", "parent"),
        *("problem", "queue", "request", "share_known"),
    )

    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.allocated: Resource = {}
        self.request: Resource = {}
        self.inqueue: Resource = {}
        self.elastic: Resource = {}
        self.deserved = without_pods(queue.deserved)
        self.guarantee = without_pods(queue.guarantee)
        self.limit: Resource = {}
        self.parent: Account | None = None
        self.children: list[Account] = []
        self.ancestors: tuple[Account, ...] = (self,)
        """The queue itself, its parent, and so on; the root comes last."""
        self.problem = ""
        self.share_known: float | None = None

    @property
    def name(self) -> str:
        return self.queue.name

    @property
    def share(self) -> float:
        """How much of what it deserves the queue holds, by its fullest dimension.

        A queue that deserves nothing is full.
        """
        if self.share_known is None:
            if resources.is_empty(self.deserved):
                self.share_known = 1.0
            else:
                held = self.allocated
                self.share_known = max(held.get(n, 0.0) / d for n, d in self.deserved.items() if d >= resources.EPSILON)
        return self.share_known

    def add(self, amount: Mapping[str, float], sign: float) -> None:
        """Let the queue and its ancestors hold more, or less."""
        for account in self.ancestors:
            account.share_known = None
            held = account.allocated
            for name, value in amount.items():
                held[name] = held.get(name, 0.0) + sign * value

    def __repr__(self) -> str:
        return f"<Account {self.name} {self.allocated} of {self.deserved}>"


class Accounts:
    """The accounts of all queues, opened with what jobs hold and kept up to date by the session's shifts.

    ``measure`` says what a task counts; equal shapes count equal. Ancestors are linked by :func:`link` before
    :meth:`open`.
    """

    def __init__(self, session: Session, measure: Measure | None = None) -> None:
        self.session = session
        self.by_name = {name: Account(queue) for name, queue in session.queues.items()}
        self._measure = measure or (lambda task: without_pods(task.request))
        self._plain = measure is None
        self._amounts: dict[bytes, Mapping[str, float]] = {}

    def __iter__(self) -> Iterator[Account]:
        return iter(self.by_name.values())

    def of_task(self, task: Task) -> Account | None:
        """The account that the task counts in; None for a pod of no job, or of a job without a queue."""
        job = self.session.jobs.get(task.job)
        return None if job is None else self.by_name.get(job.queue)

    def amount(self, task: Task) -> Mapping[str, float]:
        """What the task counts in its queue."""
        known = self._amounts.get(task.shape)
        if known is None:
            known = self._amounts[task.shape] = self._measure(task)
        return known

    def open(self) -> None:
        """Take in what jobs hold, ask for and have reserved, and follow the session from now on."""
        for job in self.session.jobs.values():
            account = self.by_name[job.queue]
            held = without_pods(job.allocated) if self._plain else self._sum(job, HOLDING)
            elastic = resources.exceeded_part(held, job.min_resources or {})
            asked = resources.plus(held, self._sum(job, TaskStatus.PENDING))
            for one in account.ancestors:
                resources.add_to(one.allocated, held)
                resources.add_to(one.elastic, elastic)
                resources.add_to(one.request, asked)
        self.session.on_shift(self._shift)

    def _sum(self, job: Job, statuses: TaskStatus) -> Resource:
        total: Resource = {}
        for status, tasks in job.by_status.items():
            if status & statuses:
                for task in tasks.values():
                    resources.add_to(total, self.amount(task))
        return total

    def _shift(self, task: Task, sign: float) -> None:
        account = self.of_task(task)
        if account is not None:
            account.add(self.amount(task), sign)


def reservation_of(job: Job, session: Session, minimum: Mapping[str, float], held: Mapping[str, float]) -> Resource:
    """What an admitted job has reserved and does not hold yet, nothing where it is not admitted.

    ``minimum`` is what the job needs to start, ``held`` what it holds. Gated pods reserve nothing.
    """
    phase = session.phase(job)
    started = phase == RUNNING and job.count(HOLDING) >= job.min_available
    if not (started or phase == INQUEUE):
        return {}
    rest = {name: max(amount - held.get(name, 0.0), 0.0) for name, amount in minimum.items() if name != PODS}
    return ungated(job, rest)


def ungated(job: Job, amount: Resource) -> Resource:
    """An amount less what the job's gated pods ask for, never below nothing."""
    if not job.gated:
        return amount
    gated: Resource = {}
    for task in job.by_status.get(TaskStatus.PENDING, {}).values():
        if task.gated:
            resources.add_to(gated, task.request)
    return {name: max(value - gated.get(name, 0.0), 0.0) for name, value in amount.items()}
