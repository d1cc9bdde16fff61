"""priority: who has the higher priority is served first, and may preempt who has a lower one (semantics: Volcano's
``plugins/priority``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..model.job import Job
from ..model.task import Task
from ..policy.hooks import by_unit
from ..reasons import NotLower, Protection

if TYPE_CHECKING:
    from ..framework.session import Register, Session
    from ..policy.model import PluginOption


class Priority:
    """The plugin."""

    name = "priority"

    def __init__(self, _option: PluginOption) -> None:
        """No arguments."""

    def open(self, session: Session, register: Register) -> None:
        self._session = session
        register("job_order", lambda job: -job.priority)
        register("task_order", lambda task: -task.priority)
        register("preemptable", by_unit)
        register("preempt_unit", self._not_lower)
        register("job_starving", _has_waiting_tasks)

    def _not_lower(self, preemptor: Task, unit: Sequence[Task]) -> Protection | None:
        """None if the unit is of strictly lower priority: its job's between jobs, its tasks' within one."""
        jobs = self._session.cluster.jobs
        if unit[0].job == preemptor.job:
            mine, theirs = preemptor.priority, max(task.priority for task in unit)
        else:
            mine, theirs = jobs[preemptor.job].priority, jobs[unit[0].job].priority if unit[0].job in jobs else 0
        return None if theirs < mine else NotLower(theirs, mine)


def _has_waiting_tasks(job: Job) -> bool:
    return job.ready + job.waiting < len(job.tasks)
