"""Session of one cycle: the state as actions and plugins see it, and the changes that they may make.

`decide` creates a session for each cycle. Its parts are the jobs (`selection`), the waiting jobs' backlog (`backlog`),
the nodes for their tasks (`placement`), the changes and decisions so far (`changes`, `decisions`), and the attempts. A
plugin keeps what it computes for the cycle in its own attributes. What a later cycle depends on is part of the
decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import Any, TypeVar

from ..backlog.backlog import Backlog
from ..backlog.view import BacklogView
from ..model.cluster import Cluster
from ..model.job import Job, PodGroupPhase
from ..model.queue import Queue
from ..model.resources import Resource
from ..model.task import Task
from ..placement import Placement
from ..placement.empty_nodes import EmptyNodes
from ..reasons import UnschedulableReason
from .attempts import Attempt, Attempts
from .change_log import ChangeLog
from .decisions import Decisions
from .nominations import Nominations
from .objections import Objections
from .plugin import OpenedPlugins
from .selection import JobSelection
from .statement import Statement
from .tracing import Step, no_trace
from .work import UNLIMITED, Budget, Work

T = TypeVar("T")


class Session:
    """The state as actions and plugins see it.

    Attributes:
        plugins: The policy's plugins.
        now: Seconds since 1970, set by the shell.
        total: Sum of all ready nodes' resources.
        selection: The jobs of this cycle.
        jobs: Jobs with a PodGroup and an existing queue, by key.
        backlog: State of the waiting jobs.
        work: Counts the cost of the jobs.
        step: Traces the opening of each plugin and each attempt of a job.
        decisions: The decisions so far.
        phases: Job → phase, for the jobs that were admitted in this cycle.
        placement: Finds nodes for tasks.
        taken: The tasks that are evicted on trial for the job whose admission is being judged.

    Args:
        plugins: The plugins of the policy. The session opens them.
        backlog: The waiting jobs.
        woken: Waiting jobs that evictions of this cycle may help.
        spent: Steps that the cycle has spent before this session.
    """

    def __init__(
        self,
        cluster: Cluster,
        plugins: OpenedPlugins,
        now: float,
        step: Step = no_trace,
        *,
        budget: Budget = UNLIMITED,
        backlog: Backlog | None = None,
        woken: Set[str] = frozenset(),
        spent: int = 0,
    ) -> None:
        self.cluster, self.plugins, self.now, self.step = cluster, plugins, now, step
        self.policy, self.hooks = plugins.policy, plugins.hooks
        self.nodes = cluster.nodes
        self.nodes.refresh()
        self.total: Resource = self.nodes.total()
        self.queues: dict[str, Queue] = dict(sorted(cluster.queues.items()))
        self.sums = cluster.sums()
        self.work = Work(budget, spent)
        known = backlog or Backlog.of(cluster)
        self.backlog = BacklogView(
            cluster, known, self.policy, now, woken, fingerprint=plugins.fingerprint, lines=plugins.lines
        )
        self.selection = JobSelection(cluster, self.queues, self.backlog)
        self.jobs = self.selection.jobs
        self.decisions = Decisions(refusals=self.selection.refusals)
        self.phases: dict[str, str] = {}
        self.changes = ChangeLog(cluster, self.work)
        self.taken: list[Task] = []
        self.attempts = Attempts(self.work, step, self.changes, self.decisions, self.backlog)
        self.placement = Placement(cluster, self.hooks, self.work.spend, self.work.for_others)
        self.nominations = Nominations(self)
        self._objections = Objections(plugins, self.queues)
        self._shared: dict[object, Any] = {}
        self._open()

    def _open(self) -> None:
        """Open the plugins, and add the jobs that only the opened plugins can name."""
        for name, plugin in self.plugins.by_name.items():
            with self.step("plugin", name):
                plugin.open(self)
        self.selection.join_waiting(self.plugins.excess, lambda: self.shared(EmptyNodes))

    def close(self) -> None:
        """Restore the original state. What plugins have computed is invalid from then on.

        References back to the session are removed, so that it is freed without the garbage collector. Plugins keep the
        session until the next cycle; by then it would be in a generation that is collected only once in hours.
        """
        self.changes.close()
        self.placement.close()
        self._shared.clear()
        del self.nominations

    def shared(self, make: Callable[[Session], T]) -> T:
        """Return `make(session)`, which is called only once a cycle, for computations that several actions share."""
        if make not in self._shared:
            self._shared[make] = make(self)
        found: T = self._shared[make]
        return found

    # ------------------------------------------------------------------------------------------------------- changes

    def on_allocation_change(self, handler: Callable[[Task, int], None]) -> None:
        """See `ChangeLog.on_allocation_change`."""
        self.changes.on_allocation_change(handler)

    def statement(self) -> Statement:
        return Statement(self.changes, self.decisions)

    def attempt(self, job: Job, on_cap: Callable[[], None] = lambda: None) -> Attempt:
        """Begin one job's turn. If it exceeds the maximum steps of one job, undo it and call `on_cap`."""
        return Attempt(self.attempts, job, on_cap)

    def admit(self, job: Job) -> None:
        """Admit the job: its PodGroup becomes Inqueue, so that its pods may be created and scheduled."""
        self.phases[job.key] = PodGroupPhase.INQUEUE

    def refuse(self, job: Job, whys: Iterable[UnschedulableReason]) -> None:
        """Record the reasons why a job waits; several actions may do so."""
        self.decisions.refuse(job.key, whys)

    def wake_at(self, time: float) -> None:
        """Record that time alone changes the outcome at `time`, for the job being tried, or else for any job."""
        known = self.decisions.wake_at
        self.decisions.wake_at = time if known is None else min(known, time)
        self.backlog.deadline(time)

    # ------------------------------------------------------------------------------------------------------- queries

    def phase(self, job: Job) -> str:
        """Return the phase of the job's PodGroup after this cycle's changes."""
        return self.phases.get(job.key, job.phase)

    def is_pending(self, job: Job) -> bool:
        return self.phase(job) in ("", "Pending")

    def is_schedulable(self, job: Job) -> bool:
        """Whether the job as a whole may be placed. If not, record the reason."""
        is_new = job not in self._objections
        objection = self._objections.against(job)
        if objection is not None and is_new:
            self.refuse(job, [objection])
        return objection is None

    def would_be_schedulable(self, job: Job) -> bool:
        """Whether the job as a whole may be placed. No reason is recorded: the cycle need not decide about the job."""
        return not self._objections.has_any(job)

    @property
    def is_order_of_state(self) -> bool:
        """Whether the current order of service also holds in later cycles, until a job changes."""
        is_of_state = not self.changes.entries and self.jobs is self.cluster.jobs
        return is_of_state and self.plugins.orders_by_job_alone
