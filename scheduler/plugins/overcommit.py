"""overcommit: admit no more than the cluster, times a factor, can hold (semantics: Volcano's ``plugins/overcommit``).

The one rule: what an admitted job has reserved but not yet taken counts against those that are served after it, not
against a job of its own queue that is served before it: that one would only wait for room that it is going to get
first.
"""

from __future__ import annotations

from typing import ClassVar

from ..framework.plugin import Plugin
from ..framework.session import Session
from ..model import resources
from ..model.job import Job, PodGroupPhase
from ..model.resources import Resource
from ..model.task import Task
from ..policy.hooks import JobEnqueueable, JobEnqueued, Reasons, Vote
from ..policy.schema import FLOAT, Argument
from ..reasons import ClusterLimit, UnschedulableReason
from .queue.admission_backlog import WaitingLine
from .queue.attributes import reservation_of, ungated


class Overcommit(Plugin, JobEnqueueable, JobEnqueued, Reasons):
    """See the module."""

    name = "overcommit"
    arguments: ClassVar = {
        "overcommit-factor": Argument(FLOAT, 1.0, default=1.2, means="how many times the cluster is admitted in all")
    }

    def open(self, session: Session) -> None:
        factor = resources.factor_of(self.argument("overcommit-factor"))
        self._session = session
        nodes = session.nodes
        used = nodes.sum_of(nodes.used[nodes.ready])
        lent = {name: resources.times(amount, factor) for name, amount in session.total.items()}
        self._left = resources.minus(lent, used)
        self._reserved: Resource = {}
        self._line = WaitingLine(session)
        for job in session.reserving:
            self._reserve(job)

    def job_enqueueable(self, job: Job) -> Vote:
        return Vote.REJECT if self._missing(job) else Vote.PERMIT

    def job_enqueued(self, job: Job) -> None:
        self._reserve(job)

    def _reserve(self, job: Job) -> None:
        if job.min_resources is None:
            return
        if self._session.is_pending(job):  # being admitted
            amount = ungated(job, dict(job.min_resources))
        else:
            amount = reservation_of(job, self._session, job.min_resources, job.allocated)
            if job.phase == PodGroupPhase.INQUEUE and any(amount.values()):
                self._line.add(job, amount)
        resources.add_to(self._reserved, amount)

    def _ahead_of(self, job: Job) -> Resource:
        """What is reserved by those that are not served after ``job`` in its own queue."""
        return resources.minus(self._reserved, self._line.behind(job))

    def _missing(self, job: Job) -> list[str]:
        if job.min_resources is None:
            return []
        wanted = resources.plus(self._ahead_of(job), job.min_resources)
        return resources.exceeding(wanted, self._left, job.min_resources)

    def reasons(self, job: Job, task: Task | None) -> list[UnschedulableReason]:
        if task is not None or job.min_resources is None:
            return []
        ahead = self._ahead_of(job)
        return [
            ClusterLimit(name, job.min_resources[name], max(self._left.get(name, 0) - ahead.get(name, 0), 0))
            for name in self._missing(job)
        ]
