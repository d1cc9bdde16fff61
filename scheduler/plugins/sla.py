"""sla: admit jobs that have waited too long, and reserve room for them (semantics: Volcano's `plugins/sla`).

A job's deadline is its creation plus its waiting time. Before the deadline the plugin only orders jobs; after the
deadline it votes for admitting and pipelining the job.
"""

from __future__ import annotations

import math
from typing import ClassVar

from ..framework.plugin import Covers, OrderedBy, Plugin
from ..framework.session import Session
from ..model.job import Job
from ..model.times import duration
from ..policy.hooks import JobEnqueueable, JobOrder, JobPipelined, Vote
from ..policy.model import PluginOption
from ..policy.schema import DURATION, Argument

WAITING_TIME = "sla-waiting-time"


class Sla(Plugin, JobOrder, JobEnqueueable, JobPipelined):
    """Admit jobs that have waited too long."""

    name = "sla"
    refusal_covers = Covers.LATER_JOBS
    job_order_depends_on = OrderedBy.JOB
    arguments: ClassVar = {
        WAITING_TIME: Argument(
            DURATION,
            means="how long a job waits before it is admitted in any case; "
            "the annotation of that name on its PodGroup takes precedence",
        )
    }

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        self._default = duration(self.argument(WAITING_TIME) or "") or None

    def open(self, session: Session) -> None:
        self._session = session

    def job_order(self, job: Job) -> float:
        annotations = (job.group.metadata.annotations if job.group else None) or {}
        waiting = duration(annotations.get(WAITING_TIME, "")) or self._default
        return math.inf if waiting is None else job.creation + waiting

    def job_enqueueable(self, job: Job) -> Vote:
        deadline = self.job_order(job)
        if deadline <= self._session.now:
            return Vote.PERMIT
        if deadline < math.inf:
            self._session.wake_at(deadline)
        return Vote.ABSTAIN

    job_pipelined = job_enqueueable
