"""What capacity, proportion and capacity-card have in common: the hooks of a plugin that decides what queues may have.

The one rule: a queue plugin answers from its :class:`~scheduler.plugins.queue.attributes.Accounts` alone, which are
live; what it refuses it can explain with the very numbers it refused by.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...framework.decisions import QueueNumbers
from ...framework.session import Register, Session
from ...model import resources
from ...model.job import Job
from ...model.queue import Queue
from ...model.resources import Resource
from ...model.task import Task
from ...policy.hooks import Vote
from ...policy.model import PluginOption
from ...reasons import Denial, Protected, QueueBroken, QueueClosed, QueueLimit, Why
from .admission import Admission
from .attributes import Account, Accounts, without_pods


class QueuePlugin:
    """Base of the queue plugins. A subclass says how limits and deserved come about, who may reclaim, and who is a
    victim.

    ``session.facts["queues"]`` is the plugin in force, for whoever wants to explain a refusal.
    """

    name = ""
    in_requests = True
    limit_name = "capability"
    """What a queue's ceiling is called."""
    admission_name = "capability"
    """What the ceiling at admission is called."""
    admission_factor = 1.0

    def __init__(self, option: PluginOption) -> None:
        self.option = option

    def open(self, session: Session, register: Register) -> None:
        """Open the accounts and register every hook that all queue plugins have."""
        self.session = session
        self.accounts = Accounts(session, self)
        self.arrange()
        self.accounts.open()
        self.settle()
        self.admission = Admission(
            session, self.accounts, self, factor=self.admission_factor, limit_name=self.admission_name
        )
        session.facts["queues"] = self
        self.publish()
        register("queue_order", self.queue_order)
        register("job_enqueueable", self.job_enqueueable)
        register("job_enqueued", self.admission.admit)
        register("allocatable", self.allocatable)
        register("preemptive", self.preemptive)
        register("reclaimable", self.reclaimable)
        register("reclaim_unit", self.reclaim_unit)
        register("why", self.why)

    # ------------------------------------------------------------------------------------------- for subclasses to say

    def arrange(self) -> None:
        """Put the accounts in order before they are filled (parents, limits)."""
        raise NotImplementedError

    def settle(self) -> None:
        """What depends on what queues hold and ask for (proportion's deserved)."""

    def measure(self, task: Task) -> Mapping[str, float]:
        """What a task counts in its queue: its request."""
        return without_pods(task.request)

    def varies(self, task: Task) -> bool:  # noqa: ARG002
        """Whether what a task counts depends on its node."""
        return False

    def minimum(self, job: Job) -> Mapping[str, float] | None:
        """What a job needs to start: the PodGroup's ``minResources``; None where it has none."""
        return None if job.min_resources is None else without_pods(job.min_resources)

    def is_overused(self, account: Account) -> bool:
        """Whether the queue holds more than it deserves, by its fullest dimension."""
        return account.share > 1

    def not_entitled(self, queue: Queue, task: Task) -> Why | None:
        """Why the queue may not claim room for this task from others; None if it may."""
        raise NotImplementedError

    def denial(
        self, claimant: Task, taker: Account, unit: Sequence[Task], giver: Account, amount: Resource
    ) -> Denial | None:
        """Why the queue ``giver`` keeps ``unit``, which counts ``amount``; None if it may go."""
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------------------------- hooks

    def queue_order(self, queue: Queue) -> Any:
        """The higher priority first, then the smaller share, then the one that deserves something at all."""
        account = self.accounts.by_name[queue.name]
        return (-queue.priority, account.share, resources.is_empty(account.deserved))

    def job_enqueueable(self, job: Job) -> Vote:
        """Whether the quotas let the job in."""
        if self.closed(self.accounts.by_name[job.queue]) is not None:
            return Vote.REJECT
        return self.admission.vote(job)

    def allocatable(self, queue: Queue, task: Task) -> bool:
        """Whether the queue and its ancestors may hold this task too."""
        account = self.accounts.by_name[queue.name]
        if account.problem or not account.queue.is_open:
            return False
        amount = self.accounts.amount(task)
        return all(fits(one, amount, limit) for one, limit in self.ceilings(account))

    def preemptive(self, queue: Queue, task: Task) -> bool:
        """Whether the queue may claim room for this task from others."""
        return self.not_entitled(queue, task) is None

    def reclaimable(self, claimant: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """The candidates that may go one after the other, in the order given.

        What one leaves behind counts for the next.
        """
        permitted: list[Task] = []
        try:
            for task in candidates:
                if self.reclaim_unit(claimant, (task,)) is None:
                    permitted.append(task)
                    self._lend(task, -1.0)
        finally:
            for task in permitted:
                self._lend(task, 1.0)
        return permitted, Vote.PERMIT if self.accounts.of_task(claimant) else Vote.REJECT

    def reclaim_unit(self, claimant: Task, unit: Sequence[Task]) -> Denial | None:
        """Why the unit, a task or a whole gang judged as one, may not go now; None if it may."""
        taker, giver = self.accounts.of_task(claimant), self.accounts.of_task(unit[0])
        for account in (taker, giver):
            if account is None or account.problem:
                return Protected("queue", account.problem if account else "")
        assert taker is not None
        assert giver is not None
        return self.denial(claimant, taker, unit, giver, self.amount(unit))

    def why(self, job: Job, task: Task | None) -> Iterator[Why]:
        """What of the queue stands in the way of placing ``task``, or of admitting ``job``."""
        account = self.accounts.by_name[job.queue]
        if (closed := self.closed(account)) is not None:
            yield closed
        elif task is None:
            yield from self.admission.limits(job)
        else:
            yield from self.limits(account, task)

    # -------------------------------------------------------------------------------------------------------- helpers

    def closed(self, account: Account) -> QueueClosed | QueueBroken | None:
        """Why nothing new of this queue is scheduled, whatever its numbers."""
        if account.problem:
            return QueueBroken(account.name, account.problem)
        if not account.queue.is_open:
            return QueueClosed(account.name, account.queue.object.status.state)
        return None

    def limits(self, account: Account, task: Task) -> Iterator[QueueLimit]:
        """The limits that the task would lift the queue or an ancestor above, nearest first."""
        amount = self.accounts.amount(task)
        for one, limit in self.ceilings(account):
            yield from over_limit(one, amount, limit, self.limit_name)

    def ceilings(self, account: Account) -> list[tuple[Account, Resource]]:
        """The accounts that a task of this queue counts in, nearest first, each with what it may hold at most."""
        return [(one, one.limit) for one in account.ancestors]

    def amount(self, unit: Sequence[Task]) -> Resource:
        """What a unit counts in its queue."""
        total: Resource = {}
        for task in unit:
            for name, value in self.accounts.amount(task).items():
                total[name] = total.get(name, 0.0) + value
        return total

    def publish(self) -> None:
        """Tell what the cycle knows of every queue."""
        for account in self.accounts:
            if account.name not in self.session.queues:
                continue  # a root that we made up
            self.session.decisions.queues[account.name] = QueueNumbers(
                allocated=dict(account.allocated),
                deserved=dict(account.deserved),
                request=dict(account.request),
                guarantee=dict(account.guarantee),
                capability={name: amount for name, amount in account.limit.items() if amount < math.inf},
                share=account.share,
                overused=self.is_overused(account),
            )

    def _lend(self, task: Task, sign: float) -> None:
        account = self.accounts.of_task(task)
        assert account is not None
        self.accounts.version += 1
        account.add(self.accounts.amount(task), sign)


def fits(account: Account, amount: Mapping[str, float], limit: Mapping[str, float]) -> bool:
    """Whether ``amount`` more leaves the queue within ``limit``, in every dimension of it."""
    held = account.allocated
    for dimension, wanted in amount.items():
        if wanted > 0 and held.get(dimension, 0.0) + wanted > limit.get(dimension, 0.0):
            return False
    return True


def over_limit(
    account: Account, amount: Mapping[str, float], limit: Mapping[str, float], name: str
) -> Iterator[QueueLimit]:
    """The dimensions in which ``amount`` more would lift the queue above ``limit``; what the limit lacks is none."""
    held = account.allocated
    for dimension, wanted in amount.items():
        if wanted > 0 and held.get(dimension, 0.0) + wanted > limit.get(dimension, 0.0):
            yield QueueLimit(account.name, dimension, held.get(dimension, 0.0), wanted, name, limit.get(dimension, 0.0))
