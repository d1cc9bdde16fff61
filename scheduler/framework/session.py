"""Session of one cycle: the state as actions and plugins see it, and the changes that they may make.

`decide` creates a session for each cycle. A plugin keeps what it computes for the cycle in its own attributes. Data on
which a later cycle depends is part of the cluster's state.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Iterable, Mapping, Set
from types import TracebackType
from typing import Any, TypeVar, cast

from ..backlog.cycle_end import CycleEnd, CycleOutcome
from ..backlog.reservations import Reservations
from ..backlog.view import BacklogView
from ..model.cluster import Cluster
from ..model.job import Job, PodGroupPhase
from ..model.names import NAMESPACES
from ..model.queue import ROOT, Queue
from ..model.resources import Resource
from ..model.sums import Part, QueueSums
from ..model.task import HOLDING, Task, TaskStatus
from ..placement import Placement, unsupported
from ..placement.empty_nodes import EmptyNodes
from ..policy.model import Policy
from ..policy.schema import EVICTING
from ..reasons import NoGroup, QueueBroken, Refusal, TooCostly, UnschedulableReason, Unsupported
from .change_log import ChangeLog
from .decisions import Decisions
from .nominations import Nominations
from .plugin import OpenedPlugins, Plugin
from .statement import Statement
from .tracing import Step, no_trace
from .work import UNLIMITED, Budget, CapReached, Work

ATTEMPT = 50
"""Steps that every attempt of a job costs at least."""

T = TypeVar("T")
NO_REASON = Refusal()


class Session:
    """The state as actions and plugins see it.

    Attributes:
        jobs: Jobs with a PodGroup and an existing queue.
        undecided: Jobs for which an action may have work, without jobs that no change could have helped.
        total: Sum of all ready nodes' resources.
        now: Seconds since 1970, set by the shell.
        decisions: The decisions so far.
        placement: Finds nodes for tasks.
        plugins: The policy's plugins, by name.
        step: Traces the opening of each plugin and each attempt of a job.
        work: Counts the cost of the jobs.
        backlog: State of the waiting jobs.

    Args:
        woken: Waiting jobs that evictions of this cycle may help.
        spent: Steps that the cycle has spent before this session.
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
        woken: Set[str] = frozenset(),
        spent: int = 0,
    ) -> None:
        self.cluster = cluster
        self.work = Work(budget, spent)
        self.step = step
        self.policy = policy
        self.now = now
        self.nodes = cluster.nodes
        self.nodes.refresh()
        self.total: Resource = self.nodes.total()
        self.queues: dict[str, Queue] = dict(sorted(cluster.queues.items()))
        self.sums = cluster.sums()
        self.jobs: Mapping[str, Job] = cluster.jobs
        self.not_served: list[Job] = []
        """Jobs whose queue exists but does not accept the job's namespace."""
        self.uncovered: list[Job] = []
        """Jobs that may reserve more than their pods request, sorted by key."""
        self.phases: dict[str, str] = {}
        self.decisions = Decisions()
        self._evicts = not EVICTING.keys().isdisjoint(policy.actions)
        opened = OpenedPlugins.of(cluster, policy, plugins)
        self.backlog = BacklogView(cluster, policy, now, woken, lines=opened.lines)
        self.undecided: list[Job] = []
        self._select_jobs()
        self._objections: dict[str, Any] = {}
        self.changes = ChangeLog(cluster, self.work)
        self.taken: list[Task] = []
        """The tasks that are evicted on trial for the job whose admission is being judged."""
        self.attempts = 0
        """The number of attempts of jobs that have begun."""
        self.hooks, self.plugins, self._queue_plugin = opened.hooks, opened.by_name, opened.queue_plugin
        self._orders_by_job_alone = opened.orders_by_job_alone
        self.placement = Placement(cluster, self.hooks, self.work.spend, self.work.for_others)
        self.nominations = Nominations(self)
        self._shared: dict[object, object] = {}
        for name, plugin in self.plugins.items():
            with step("plugin", name):
                plugin.open(self)
        self._wake_by_shares()

    def _select_jobs(self) -> None:
        """Set `jobs` and `undecided`, without the jobs that have no PodGroup or no queue that accepts them."""
        jobs, queues, backlog, undecided = self.jobs, self.queues, self.backlog, self.sums.undecided
        self.decisions.refusals = refusals = backlog.passed_over(undecided)
        has_restricted = any(queue.namespaces is not None for queue in queues.values())
        left_out: set[str] = set()
        for key in sorted(backlog.to_decide(undecided)):
            job = jobs[key]
            if job.group is None:
                left_out.add(key)
                if job.by_status.get(TaskStatus.PENDING):
                    refusals[key] = Refusal((NoGroup(key),))
                continue
            problem = "" if job.queue in queues else "does not exist"
            if has_restricted and not problem and not any(status & HOLDING for status in job.by_status):
                problem = self._rejection(job)  # running jobs continue when a queue begins to restrict its namespaces
                if problem:
                    self.not_served.append(job)
            if not problem:
                self.undecided.append(job)
                continue
            left_out.add(key)
            if job.is_pending or job.by_status.get(TaskStatus.PENDING):
                refusals[key] = Refusal((QueueBroken(job.queue, problem),))
        if not self.sums.by_queue.keys() <= queues.keys():  # some running jobs have no queue: it was deleted
            self.jobs = {key: job for key, job in jobs.items() if job.queue in queues and key not in left_out}
        elif left_out:
            self.jobs = {key: job for key, job in jobs.items() if key not in left_out}
        self._left_out = left_out
        self.uncovered = self.served(self.sums.uncovered)
        self.reservations = Reservations(self.uncovered, self.backlog.lapses, self.now)

    def _wake_by_shares(self) -> None:
        """Add the waiting jobs whose queues may now deserve enough for them, or for which less is reserved."""
        woken = self.backlog.wake_by_shares(self.excess)
        if self.backlog.entries and not self.backlog.turns and (queues := self._queues_with_new_void_reservations()):
            woken |= self.backlog.wake_by_reservations(queues)
        for key in woken:
            self.decisions.refusals.pop(key, None)
            if key in self.sums.undecided and key in self.jobs:
                bisect.insort(self.undecided, self.jobs[key], key=lambda other: other.key)

    def _queues_with_new_void_reservations(self) -> set[str]:
        """Return the queues of admitted jobs that have changed since the last cycle and whose pods no node can hold.

        What such a job has reserved counts against other jobs until its pods exist.
        """
        waiting, empty, backlog = self.sums.waiting, self.shared(EmptyNodes), self.backlog
        changed = (job for job in self.undecided if job.key not in backlog.entries or job.key in backlog.due)
        admitted = (job for job in changed if job.key in waiting.get(job.queue, ()))
        return {job.queue for job in admitted if empty.why_never(job) is not None}

    def excess(self, queue: str, dimension: str) -> float:
        """Return what a queue held beyond what it deserves when the cycle began; infinity if no plugin computes it."""
        return math.inf if self._queue_plugin is None else self._queue_plugin.excess(queue, dimension)

    def served(self, keys: Iterable[str]) -> list[Job]:
        """Return the jobs of this cycle with these keys, in the order of their keys."""
        return [self.jobs[key] for key in sorted(keys) if key in self.jobs]

    @property
    def considered(self) -> set[str]:
        """Return the jobs whose refusal may differ from that of the last cycle; other jobs keep the same `Refusal`."""
        return {job.key for job in self.undecided} | self._left_out | self.backlog.awake | self.backlog.due

    @property
    def reserving(self) -> list[Job]:
        """Return the jobs that may have a reservation for capacity that they do not hold, sorted by key."""
        return self.served(self.sums.reserving)

    @property
    def is_order_of_state(self) -> bool:
        """Whether the current order of service also holds in later cycles, until a job changes."""
        return self._orders_by_job_alone and not self.changes.entries and self.jobs is self.cluster.jobs

    def by_queue(self) -> dict[str, QueueSums]:
        """Return the sums of what the jobs of each queue hold, request and reserve."""
        by_queue = dict(self.sums.by_queue)
        for name in {job.queue for job in self.not_served}:
            left_out = (Part.in_requests(job) for job in self.not_served if job.queue == name)
            by_queue[name] = by_queue[name].without(left_out)
        return by_queue

    def shared(self, make: Callable[[Session], T]) -> T:
        """Return `make(session)`, which is called only once a cycle, for computations that several actions share."""
        if make not in self._shared:
            self._shared[make] = make(self)
        return cast("T", self._shared[make])

    # ------------------------------------------------------------------------------------------------------- changes

    def on_allocation_change(self, handler: Callable[[Task, int], None]) -> None:
        """See `ChangeLog.on_allocation_change`."""
        self.changes.on_allocation_change(handler)

    def statement(self) -> Statement:
        return Statement(self.changes, self.decisions)

    def admit(self, job: Job) -> None:
        """Admit the job: its PodGroup becomes Inqueue, so that its pods may be created and scheduled."""
        self.phases[job.key] = PodGroupPhase.INQUEUE

    def refuse(self, job: Job, whys: Iterable[UnschedulableReason]) -> None:
        """Record the reasons why a job waits; several actions may do so."""
        self.decisions.refusals[job.key] = self.decisions.refusals.get(job.key, NO_REASON).also(*whys)

    def wake_at(self, time: float) -> None:
        """Record that time alone changes the outcome at `time`, for the job being tried, or else for any job."""
        known = self.decisions.wake_at
        self.decisions.wake_at = time if known is None else min(known, time)
        self.backlog.deadline(time)

    # --------------------------------------------------------------------------------------------------------- attempts

    def to_try(self) -> list[Job]:
        """Return the jobs for which this action may have work and that it has not tried in an earlier, cut cycle."""
        return self.backlog.not_tried(self.undecided)

    def is_still_short(self, job: Job) -> bool:
        """Whether only room in a quota woke the job, and other jobs have used it up. The job then keeps its refusal.

        Always False under a policy that evicts, because several actions contribute to the refusal.
        """
        backlog, key, plugin = self.backlog, job.key, self._queue_plugin
        if key not in backlog.by_quota_alone or self._evicts or plugin is None:
            return False
        entry = backlog.entries[key]
        if any(plugin.may_hold(bound) for bound in entry.quotas):
            return False
        backlog.kept.add(key)
        self.decisions.refusals[key] = entry.refusal
        return True

    def next_in_line(self, job: Job) -> Job | None:
        """Return the next job in the line of a tried job, if it may be admitted or get room too; None otherwise."""
        got_nothing = job.key not in self.phases and len(job.by_status.get(TaskStatus.PENDING, ())) == len(job.tasks)
        follower = self.jobs.get(self.backlog.next_in_line(job.key, refused=got_nothing))
        if follower is not None:
            bisect.insort(self.undecided, follower, key=lambda other: other.key)
            self.decisions.refusals.pop(follower.key, None)
        return follower

    def attempt(self, job: Job, on_cap: Callable[[], None] = lambda: None) -> Attempt:
        """Begin one job's turn. If it exceeds the maximum steps of one job, undo it and call `on_cap`."""
        return Attempt(self, job, on_cap)

    def complete_decisions(self) -> None:
        """Add to the decisions the cost of the cycle, and the state for the next cycle."""
        decisions, work = self.decisions, self.work
        decisions.steps, decisions.cut = work.spent, work.cut
        bound = {bind.task for bind in decisions.binds}
        outcome = CycleOutcome(
            undecided=self.undecided,
            refusals=decisions.refusals,
            moved={*(bind.job for bind in decisions.binds), *decisions.phases},
            bound=bound,
            held={
                task.key: task.node
                for task, *_ in self.changes.entries
                if task.status is TaskStatus.ALLOCATED and task.key not in bound
            },
            cut=work.cut,
            full_budget=work.budget.full or work.budget.cycle,
            retry_after=work.budget.retry_after,
            evicted_for=self.nominations.evicted_for,
            quota_bounds=(lambda *_: ()) if self._queue_plugin is None else self._queue_plugin.quota_bounds,
            nodes=self.nodes,
            placement=self.placement,
            reservations=self.reservations,
        )
        end = CycleEnd(self.backlog, outcome)
        decisions.memory = end.memory()
        decisions.wake_at = end.wake_at(decisions.wake_at)

    def close(self) -> None:
        """Restore the original state. What plugins have computed is invalid from then on.

        References back to the session are removed, so that it is freed without the garbage collector. Plugins keep the
        session until the next cycle; by then it would be in a generation that is collected only once in hours.
        """
        self.changes.close()
        self.placement.close()
        self._shared.clear()
        del self.nominations

    # ------------------------------------------------------------------------------------------------------ queries

    def phase(self, job: Job) -> str:
        """Return the phase of the job's PodGroup after this cycle's changes."""
        return self.phases.get(job.key, job.phase)

    def is_pending(self, job: Job) -> bool:
        return self.phase(job) in ("", "Pending")

    def is_schedulable(self, job: Job) -> bool:
        """Whether the job as a whole may be placed. If not, record the reason."""
        objection = self._objections.get(job.key, self)
        if objection is self:
            field = unsupported.of_job(job, topology=bool(self.hooks.closeness.functions))
            objection = Unsupported(job.key, field) if field else self._ignored(job) or self.hooks.job_valid(job)
            self._objections[job.key] = objection
            if objection is not None:
                self.refuse(job, [objection])
        return objection is None

    def _ignored(self, job: Job) -> QueueBroken | None:
        """Return the setting of the job's queue that every plugin of the policy ignores; None if there is none."""
        if self.queues[job.queue].object.spec.affinity is None or "nodegroup" in self.plugins:
            return None
        return QueueBroken(job.queue, "spec.affinity needs the plugin nodegroup, which the policy does not name")

    def _rejection(self, job: Job) -> str:
        """Return why the list of namespaces of the queue, or of its nearest ancestor with one, rejects the job."""
        namespace, visited = job.key.partition("/")[0], set()
        queue: Queue | None = self.queues[job.queue]
        while queue is not None and queue.name not in visited:
            visited.add(queue.name)
            if queue.namespaces is not None:
                listed = ", ".join(sorted(queue.namespaces)) or "none"
                rule = f"accepts only jobs of the namespaces that {NAMESPACES} of queue {queue.name} names ({listed})"
                return "" if namespace in queue.namespaces else f"{rule}, not of {namespace}"
            queue = self.queues.get(queue.parent or ROOT)
        return ""

    def queue_of(self, task: Task) -> Queue | None:
        job = self.jobs.get(task.job)
        return None if job is None else self.queues.get(job.queue)


class Attempt:
    """Context manager of a job's turn: count its steps, and undo its changes if the steps exceed the maximum.

    A class instead of a generator: each job has several turns in every cycle, and a generator would cost a third more.
    """

    __slots__ = ("_before", "_job", "_lap", "_lengths", "_on_cap", "_savepoint", "_session")

    def __init__(self, session: Session, job: Job, on_cap: Callable[[], None]) -> None:
        self._session, self._job, self._on_cap = session, job, on_cap

    def __enter__(self) -> None:
        session, decisions = self._session, self._session.decisions
        self._before, self._savepoint = session.work.spent, len(session.changes)
        self._lengths = len(decisions.binds), len(decisions.evictions), len(decisions.nominations)
        session.cluster.trying = self._job.key
        session.attempts += 1
        session.backlog.begin(self._job)
        session.work.begin_attempt(ATTEMPT)
        self._lap = session.step("job", session.backlog.action)
        self._lap.__enter__()

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        session, job = self._session, self._job
        session.cluster.trying = ""
        self._lap.__exit__(None, None, None)
        session.work.end_attempt()
        is_capped = isinstance(error, CapReached)
        if isinstance(error, CapReached):
            session.changes.undo(self._savepoint)
            decisions = session.decisions
            lists: tuple[list[Any], ...] = (decisions.binds, decisions.evictions, decisions.nominations)
            for made, length in zip(lists, self._lengths, strict=True):
                del made[length:]
            self._on_cap()
            session.refuse(job, [TooCostly(session.backlog.action, error.field)])
            session.backlog.exceeded_cap(job)
        session.backlog.end(job, session.work.spent - self._before)
        return is_capped
