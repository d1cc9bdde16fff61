"""A job's turn within an action: count its steps, and undo its changes if the steps exceed the maximum."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from ..backlog.view import BacklogView
from ..model.job import Job
from ..reasons import TooCostly
from .change_log import ChangeLog
from .decisions import Decisions
from .tracing import Step
from .work import CapReached, Work

ATTEMPT = 50
"""Steps that every attempt of a job costs at least."""


class Attempts:
    """The attempts of one cycle. Each changes the log and the decisions, and is counted by the work and the backlog.

    Attributes:
        count: The number of attempts that have begun.
        trying: Key of the job that is being tried; empty between attempts.
    """

    def __init__(self, work: Work, step: Step, changes: ChangeLog, decisions: Decisions, backlog: BacklogView) -> None:
        self.work, self.step, self.changes, self.decisions, self.backlog = work, step, changes, decisions, backlog
        self.count = 0
        self.trying = ""


class Attempt:
    """Context manager of one attempt.

    A class instead of a generator: each job has several turns in every cycle, and a generator would cost a third more.
    """

    __slots__ = ("_attempts", "_before", "_job", "_lap", "_lengths", "_on_cap", "_savepoint")

    def __init__(self, attempts: Attempts, job: Job, on_cap: Callable[[], None]) -> None:
        self._attempts, self._job, self._on_cap = attempts, job, on_cap

    def __enter__(self) -> None:
        attempts, decisions = self._attempts, self._attempts.decisions
        self._before, self._savepoint = attempts.work.spent, len(attempts.changes)
        self._lengths = len(decisions.binds), len(decisions.evictions), len(decisions.nominations)
        attempts.trying = self._job.key
        attempts.count += 1
        attempts.backlog.begin(self._job)
        attempts.work.begin_attempt(ATTEMPT)
        self._lap = attempts.step("job", attempts.backlog.action, self._job.key)
        self._lap.__enter__()

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        attempts, job = self._attempts, self._job
        attempts.trying = ""
        self._lap.__exit__(None, None, None)
        attempts.work.end_attempt()
        is_capped = isinstance(error, CapReached)
        if isinstance(error, CapReached):
            attempts.changes.undo(self._savepoint)
            binds, evictions, nominations = self._lengths
            del attempts.decisions.binds[binds:]
            del attempts.decisions.evictions[evictions:]
            del attempts.decisions.nominations[nominations:]
            self._on_cap()
            attempts.decisions.refuse(job.key, (TooCostly(attempts.backlog.action, error.field),))
            attempts.backlog.exceeded_cap(job)
        attempts.backlog.end(job, attempts.work.spent - self._before)
        return is_capped
