"""sla: a job that has waited too long is let in, and keeps what it is given (semantics: Volcano's ``plugins/sla``).

The one rule: the deadline is the job's creation plus its waiting time; before it the plugin only orders, after it it
permits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..model.job import Job
from ..model.times import duration
from ..policy.hooks import Vote

if TYPE_CHECKING:
    from ..framework.session import Register, Session
    from ..policy.model import PluginOption

WAITING_TIME = "sla-waiting-time"


class Sla:
    """The plugin. Argument ``sla-waiting-time``; a PodGroup's annotation of that name goes before it."""

    name = "sla"

    def __init__(self, option: PluginOption) -> None:
        self._default = duration(str(option.arguments.get(WAITING_TIME, ""))) or None

    def open(self, session: Session, register: Register) -> None:
        self._session = session
        register("job_order", self._deadline)
        register("job_enqueueable", self._vote)
        register("job_pipelined", self._vote)

    def _deadline(self, job: Job) -> float:
        annotations = (job.group.metadata.annotations if job.group else None) or {}
        waiting = duration(annotations.get(WAITING_TIME, "")) or self._default
        return math.inf if waiting is None else job.creation + waiting

    def _vote(self, job: Job) -> Vote:
        deadline = self._deadline(job)
        if deadline <= self._session.now:
            return Vote.PERMIT
        if deadline < math.inf:
            self._session.wake_at(deadline)
        return Vote.ABSTAIN
