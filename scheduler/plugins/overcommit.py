"""overcommit: admit jobs up to a multiple of the cluster's capacity (semantics: Volcano's `plugins/overcommit`).

An unused reservation of an admitted job counts against jobs that are served after it, but not against jobs of its own
queue that are served before it: those get the free room first in any case.
"""

from __future__ import annotations

from typing import ClassVar

from ..framework.plugin import Covers, Plugin
from ..framework.session import Session
from ..model import resources
from ..model.job import Job, PodGroupPhase
from ..model.resources import Resource
from ..model.sums import request_of, ungated
from ..model.task import Task
from ..policy.hooks import JobEnqueueable, JobEnqueued, Reasons, Vote
from ..policy.schema import FLOAT, Argument
from ..reasons import ClusterLimit, UnschedulableReason
from .queue.admission_backlog import Uncovered, WaitingReservations
from .queue.attributes import reservation_of

_CLUSTER = "cluster"
"""The one pool that all queues share in this plugin."""


class Overcommit(Plugin, JobEnqueueable, JobEnqueued, Reasons):
    """Limit admission to a multiple of the cluster."""

    name = "overcommit"
    refusal_covers = Covers.LOWER_PRIORITIES
    arguments: ClassVar = {
        "overcommit-factor": Argument(
            FLOAT, 1.0, default=1.2, means="factor of the cluster's capacity up to which jobs are admitted"
        )
    }

    def open(self, session: Session) -> None:
        factor = resources.factor_of(self.argument("overcommit-factor"))
        self._session = session
        nodes = session.nodes
        used = nodes.sum_of(nodes.used[nodes.ready])
        limit = {name: resources.times(amount, factor) for name, amount in session.total.items()}
        self._limit = limit
        self._left = resources.minus(limit, used)
        by_queue = session.selection.sums_by_queue()
        self._reserved = resources.total_of(by_queue[name].reserved for name in session.queues if name in by_queue)
        self._waiting = WaitingReservations(session, session.sums.waiting)
        self._uncovered = Uncovered(session, lambda _: (_CLUSTER,))
        for job in session.selection.uncovered:
            self._reserve(job)

    def job_enqueueable(self, job: Job) -> Vote:
        return Vote.REJECT if self._missing(job) else Vote.PERMIT

    def job_enqueued(self, job: Job) -> None:
        self._reserve(job)

    def _reserve(self, job: Job) -> None:
        if job.min_resources is None:
            return
        if self._session.is_pending(job):  # the job is being admitted
            amount = ungated(job, dict(job.min_resources))
        else:
            amount = reservation_of(job, self._session, job.min_resources, job.allocated)
            self._uncovered.add(job, amount, request_of)
            if job.phase == PodGroupPhase.INQUEUE and any(amount.values()):
                self._waiting.add(job, amount)
        resources.add_to(self._reserved, amount)

    def _ahead_of(self, job: Job) -> Resource:
        """Return what counts as reserved against `job`.

        Reservations of jobs of its queue that are served after it do not count. Reservations without pods count only
        up to an equal share of the limit for each other namespace.
        """
        ahead = resources.minus(self._reserved, self._waiting.behind(job))
        ahead = resources.minus(ahead, self._waiting.void(job, self._waiting.queues))
        surplus = self._uncovered.surplus
        return {name: value - surplus(job, _CLUSTER, name, self._limit.get(name, 0)) for name, value in ahead.items()}

    def _missing(self, job: Job) -> list[str]:
        if job.min_resources is None:
            return []
        wanted = resources.plus(self._ahead_of(job), job.min_resources)
        taken = resources.total_of(task.request for task in self._session.taken)
        return resources.exceeding(wanted, resources.plus(self._left, taken), job.min_resources)

    def reasons(self, job: Job, task: Task | None) -> list[UnschedulableReason]:
        if task is not None or job.min_resources is None:
            return []
        ahead = self._ahead_of(job)
        return [
            ClusterLimit(name, job.min_resources[name], max(self._left.get(name, 0) - ahead.get(name, 0), 0))
            for name in self._missing(job)
        ]
