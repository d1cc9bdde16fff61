"""sla: a job that has waited too long is let in, and keeps what it is given (semantics: Volcano's ``plugins/sla``).

The one rule: the deadline is the job's creation plus its waiting time; before it the plugin only orders, after it it
permits.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from ..model.job import Job
from ..policy.hooks import Vote

if TYPE_CHECKING:
    from ..framework.session import Register, Session
    from ..policy.model import PluginOption

WAITING_TIME = "sla-waiting-time"
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ns|us|ms|s|m|h)")


def duration(text: str) -> float | None:
    """A Go duration (``1h30m``) in seconds; None if it is none or not above zero."""
    parts = _PART.findall(text.strip())
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        return None
    total = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return total if total > 0 else None


class Sla:
    """The plugin. Argument ``sla-waiting-time``; a PodGroup's annotation of that name goes before it."""

    name = "sla"

    def __init__(self, option: PluginOption) -> None:
        self._default = duration(str(option.arguments.get(WAITING_TIME, "")))

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
