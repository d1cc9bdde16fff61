"""One cycle: the state, the policy's plugins, and the transactions that actions make.

The one rule: a session is made for one cycle, by :func:`scheduler.decide.decide`, and is gone with it; plugins keep
what they compute for a cycle in themselves, and what outlives a cycle lives in the cluster's state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, TypeVar, cast

from ..model.cluster import Cluster
from ..model.job import Job, PodGroupPhase
from ..model.names import NAMESPACES
from ..model.queue import ROOT, Queue
from ..model.resources import Resource
from ..model.task import HOLDING, Task, TaskStatus
from ..placement import Placement, unsupported
from ..policy.model import Policy
from ..policy.tiers import Hooks
from ..reasons import NoGroup, QueueBroken, Refusal, TooCostly, UnschedulableReason, Unsupported
from .backlog import Recall
from .change_log import ChangeLog
from .decisions import Decisions
from .nominations import Nominations
from .plugin import Plugin
from .statement import Statement
from .tracing import Step, no_trace
from .work import UNLIMITED, Budget, CapReached, Work

ATTEMPT = 50
"""Steps that every attempt of a job costs."""

T = TypeVar("T")


class Session:
    """The state as actions and plugins see it.

    ``jobs`` are those with a PodGroup and an existing queue, ``undecided`` those of them that an action may have
    something to do for (jobs that nothing new could help are passed over); ``total`` is what all ready nodes have;
    ``now`` is seconds since the epoch, given by the shell. ``decisions`` is what has been decided so far.
    ``placement`` knows where tasks may go. ``plugins`` are those of the policy, by name. ``step`` is told of each
    plugin that opens and of each job that is tried. ``work`` counts what the jobs cost, ``backlog`` is what is
    remembered of those that wait.
    """

    def __init__(
        self,
        cluster: Cluster,
        policy: Policy,
        now: float,
        plugins: Mapping[str, type[Plugin]],
        step: Step = no_trace,
        *,
        budget: Budget = UNLIMITED,
    ) -> None:
        self.cluster = cluster
        self.work = Work(budget)
        self.step = step
        self.policy = policy
        self.now = now
        self.nodes = cluster.nodes
        self.nodes.refresh()
        self.total: Resource = self.nodes.total()
        self.queues: dict[str, Queue] = dict(sorted(cluster.queues.items()))
        self.sums = cluster.sums()
        self.jobs: dict[str, Job] = dict(cluster.jobs_in_order())
        self.not_served: list[Job] = []
        """Jobs whose queue is there and does not take them."""
        self.reserving: list[Job] = []
        """Jobs that may have room reserved which they do not hold, by key."""
        self.phases: dict[str, str] = {}
        self.decisions = Decisions()
        self.backlog = Recall(cluster, policy, now)
        self.undecided: list[Job] = []
        self._take_jobs()
        self._objections: dict[str, Any] = {}
        self.changes = ChangeLog(cluster, self.work)
        self.hooks = Hooks()
        self.placement = Placement(cluster, self.hooks, self.work.spend)
        self.nominations = Nominations(self)
        self.plugins: dict[str, Plugin] = {}
        self._own: dict[object, object] = {}
        for number, tier in enumerate(policy.tiers):
            for option in tier:
                with step("plugin", option.name):
                    plugin = self.plugins[option.name] = plugins[option.name](option)
                    plugin.open(self)
                    self.hooks.add(number, option, plugin, plugin.hooks)

    def _take_jobs(self) -> None:
        """Leave out jobs that have no group, or no queue that takes them, and tell of the rest those apart that an
        action may have something to do for.
        """
        jobs, queues, backlog, undecided = self.jobs, self.queues, self.backlog, self.sums.undecided
        self.decisions.refusals = refusals = backlog.passed_over(undecided)
        named = any(queue.namespaces is not None for queue in queues.values())
        for key in sorted(undecided.difference(backlog.entries) | (undecided & backlog.awake)):
            job = jobs[key]
            if job.group is None:
                del jobs[key]
                if job.by_status.get(TaskStatus.PENDING):
                    refusals[key] = Refusal((NoGroup(key),))
                continue
            problem = "" if job.queue in queues else "does not exist"
            if named and not problem and not any(status & HOLDING for status in job.by_status):
                problem = self._not_served(job)  # what runs when a queue begins to name namespaces goes on
                if problem:
                    self.not_served.append(job)
            if not problem:
                self.undecided.append(job)
                continue
            del jobs[key]
            if job.is_pending or job.by_status.get(TaskStatus.PENDING):
                refusals[key] = Refusal((QueueBroken(job.queue, problem),))
        if not self.sums.by_queue.keys() <= queues.keys():  # some run on whose queue is gone
            self.jobs = {key: job for key, job in jobs.items() if job.queue in queues}
        self.reserving = [self.jobs[key] for key in sorted(self.sums.reserving) if key in self.jobs]

    def own(self, make: Callable[[Session], T]) -> T:
        """The one ``make(session)`` of this cycle, for who computes something that serves several actions."""
        if make not in self._own:
            self._own[make] = make(self)
        return cast("T", self._own[make])

    # ------------------------------------------------------------------------------------------------------- changes

    def on_allocation_change(self, handler: Callable[[Task, int], None]) -> None:
        """As :meth:`ChangeLog.on_allocation_change`."""
        self.changes.on_allocation_change(handler)

    def statement(self) -> Statement:
        return Statement(self.changes, self.decisions)

    def admit(self, job: Job) -> None:
        """The job's PodGroup becomes Inqueue: its pods may be created and scheduled."""
        self.phases[job.key] = PodGroupPhase.INQUEUE

    def refuse(self, job: Job, whys: Iterable[UnschedulableReason]) -> None:
        """Note what stands in the way of a job; more than one action may."""
        known = self.decisions.refusals.get(job.key, Refusal())
        self.decisions.refusals[job.key] = known.also(*whys)

    def wake_at(self, time: float) -> None:
        """Time alone changes the outcome at ``time``: for the job that is being tried, or else for any."""
        known = self.decisions.wake_at
        self.decisions.wake_at = time if known is None else min(known, time)
        self.backlog.deadline(time)

    # --------------------------------------------------------------------------------------------------------- attempts

    def to_try(self) -> list[Job]:
        """The jobs that this action may have something to do for: those that no earlier cycle, which was cut, has
        brought to it already.
        """
        return self.backlog.not_tried(self.undecided)

    def attempt(self, job: Job, on_cap: Callable[[], None] = lambda: None) -> Attempt:
        """One job's turn in the action that runs. It is taken back where it costs more than a job may (``on_cap``)."""
        return Attempt(self, job, on_cap)

    def close(self) -> None:
        """Leave the state as it was found. What plugins have computed is void from then on."""
        self.changes.close()

    # ---------------------------------------------------------------------------------------------------- questions

    def phase(self, job: Job) -> str:
        """The job's PodGroup phase, as far as this cycle has changed it."""
        return self.phases.get(job.key, job.phase)

    def is_pending(self, job: Job) -> bool:
        return self.phase(job) in ("", "Pending")

    def is_schedulable(self, job: Job) -> bool:
        """Whether nothing keeps the job as a whole from being placed; what does is noted."""
        objection = self._objections.get(job.key, self)
        if objection is self:
            field = unsupported.of_job(job)
            objection = Unsupported(job.key, field) if field else self.hooks.job_valid(job)
            self._objections[job.key] = objection
            if objection is not None:
                self.refuse(job, [objection])
        return objection is None

    def _not_served(self, job: Job) -> str:
        """Why the job's queue takes no jobs of its namespace: it, or the nearest above it that says, names others."""
        namespace, passed = job.key.partition("/")[0], set()
        queue: Queue | None = self.queues[job.queue]
        while queue is not None and queue.name not in passed:
            passed.add(queue.name)
            if queue.namespaces is not None:
                taken = ", ".join(sorted(queue.namespaces)) or "none"
                told = f"takes jobs of the namespaces that {NAMESPACES} of queue {queue.name} names ({taken})"
                return "" if namespace in queue.namespaces else f"{told}, and not of {namespace}"
            queue = self.queues.get(queue.parent or ROOT)
        return ""

    def queue_of(self, task: Task) -> Queue | None:
        job = self.jobs.get(task.job)
        return None if job is None else self.queues.get(job.queue)


class Attempt:
    """A context manager: what is done within for a job counts as its, and is taken back where that is too much.

    A class and no generator: there are several a job in every cycle, and that costs a third.
    """

    __slots__ = ("_before", "_job", "_lap", "_lengths", "_on_cap", "_savepoint", "_session")

    def __init__(self, session: Session, job: Job, on_cap: Callable[[], None]) -> None:
        self._session, self._job, self._on_cap = session, job, on_cap

    def __enter__(self) -> None:
        session, decisions = self._session, self._session.decisions
        self._before, self._savepoint = session.work.spent, len(session.changes)
        self._lengths = len(decisions.binds), len(decisions.evictions), len(decisions.nominations)
        session.backlog.begin(self._job)
        session.work.begin_attempt(ATTEMPT)
        self._lap = session.step("job", session.backlog.action)
        self._lap.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        session, job = self._session, self._job
        self._lap.__exit__(None, None, None)
        session.work.end_attempt()
        is_capped = kind is CapReached
        if is_capped:
            session.changes.undo(self._savepoint)
            decisions = session.decisions
            lists: tuple[list[Any], ...] = (decisions.binds, decisions.evictions, decisions.nominations)
            for each, length in zip(lists, self._lengths, strict=True):
                del each[length:]
            self._on_cap()
            session.refuse(job, [TooCostly(session.backlog.action)])
            session.backlog.late(job)
        session.backlog.end(job, session.work.spent - self._before)
        return is_capped
