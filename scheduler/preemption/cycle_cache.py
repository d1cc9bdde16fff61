"""Cache results that the preemption requests of one cycle share.

The cache decides nothing. It avoids repeated computation for equal preemptors, and records which victims were evicted
for which job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import msgspec

from ..framework.decisions import Evict
from ..framework.session import Session
from ..model import names, resources
from ..model.job import Job
from ..model.resources import PODS, Resource
from ..model.task import Task, TaskStatus
from ..reasons import NoVictims, UnschedulableReason
from ..topology.domains import Domain
from .domain_costs import DomainCosts
from .eligibility import VictimFilter
from .node_queue import NodeCostQueue
from .order import Ages, Order
from .reprieve import Reprieve, wait_again
from .request import RECLAIM, PreemptionRequest
from .units import remaining_members
from .victim import Victim
from .victim_room import VictimRoom

_EVICTABLE = TaskStatus.RUNNING | TaskStatus.BOUND
Kind = tuple[object, ...]
Place = tuple[bytes, Domain | None]
"""A task's shape, and the domain in which room is made for the task."""


@dataclass
class Shared:
    """Results that equal preemptors share: the order of their victims, the votes, and node costs."""

    order: Order
    victim_filter: VictimFilter
    pinned: Reprieve
    """The placements of all earlier requests that succeeded."""
    session: Session
    first: PreemptionRequest
    node_queues: dict[Place, NodeCostQueue] = field(default_factory=dict)

    @cached_property
    def rows(self) -> set[int]:
        """The rows of the nodes that have candidates. Computed late: most requests are refused before."""
        return CycleCache.of(self.session).candidate_rows(self.first)


class CycleCache:
    """Ages of jobs and tasks, failed attempts, data shared by equal preemptors, and all victims of the cycle."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._ages = Ages(session)
        self._failed: dict[Kind, tuple[int, tuple[UnschedulableReason, ...]]] = {}
        self._shared: dict[Kind, Shared] = {}
        self._rows: dict[str, set[int]] | None = None
        self._rows_of_others: dict[str, set[int]] = {}
        self._victim_rooms: dict[Kind, VictimRoom] = {}
        self.domain_costs = DomainCosts(session.nodes)
        self._victims: list[Victim] = []
        self._reprieve = Reprieve(session)
        self._successes = 0
        self._placed: dict[str, list[Task]] = {}
        self._bound = 0
        self._may_hold = {name for name, sums in session.sums.by_queue.items() if any(sums.held.values())}
        for task, *_ in session.changes.entries:
            self._note_change(task, 1)
        session.on_allocation_change(self._note_change)

    def _note_change(self, task: Task, _: int) -> None:
        if task.job in self._session.jobs:
            self._may_hold.add(self._session.jobs[task.job].queue)

    def holds_nothing(self, queue: str) -> bool:
        """Whether no task of a queue has held anything in this cycle."""
        return queue not in self._may_hold

    @classmethod
    def of(cls, session: Session) -> CycleCache:
        """Return the cache of this cycle."""
        return session.shared(cls)

    # ------------------------------------------------------------------------------------------------ equal preemptors

    def shared(
        self,
        request: PreemptionRequest,
        preemptor_kind: Kind | None,
        requested: Resource | None,
        *,
        smallest_first: bool = False,
    ) -> Shared:
        """Return the results that requests of the same kind share; a new object if the request has no kind.

        `smallest_first` and `requested` are part of the kind, because node costs depend on them.
        """
        preemptor_kind = (
            None
            if preemptor_kind is None
            else (*preemptor_kind, smallest_first, None if requested is None else tuple(sorted(requested.items())))
        )
        shared = self._shared.get(preemptor_kind) if preemptor_kind is not None else None
        if shared is None:
            order = Order(self._session, request.queue, self._ages)
            shared = Shared(order, VictimFilter(request, order), self._reprieve, self._session, request)
            if preemptor_kind is not None:
                self._shared[preemptor_kind] = shared
        shared.victim_filter.switch_to(request)
        return shared

    def candidate_rows(self, request: PreemptionRequest) -> set[int]:
        """Return the rows of the nodes on which candidates of a request run."""
        if self._rows is None:  # before the first eviction of the cycle
            self._rows = self._rows_by_queue()
        if request.within_job:
            return self._rows_of(request.job)
        name = request.queue.name
        if request.action != RECLAIM:
            return self._rows.get(name, set())
        if name not in self._rows_of_others:
            others = (rows for queue, rows in self._rows.items() if queue != name)
            self._rows_of_others[name] = set().union(*others)
        return self._rows_of_others[name]

    def victim_room(self, request: PreemptionRequest, preemptor: Task) -> VictimRoom:
        """Return what the candidates of a request hold. The jobs of a queue share the result."""
        own = request.job.key if request.within_job else ""
        kind = (request.action, request.queue.name, own, preemptor.best_effort)
        if kind not in self._victim_rooms:
            self._victim_rooms[kind] = VictimRoom(request, preemptor, self.candidate_rows(request))
        return self._victim_rooms[kind]

    def _rows_by_queue(self) -> dict[str, set[int]]:
        jobs = self._session.jobs
        found: dict[str, set[int]] = {}
        for node in self._session.nodes.rows:
            evictable = [jobs.get(task.job) for task in node.tasks.values() if task.status & _EVICTABLE]
            for queue in {job.queue for job in evictable if job is not None}:
                found.setdefault(queue, set()).add(node.row)
        return found

    def _rows_of(self, job: Job) -> set[int]:
        by_name = self._session.nodes.by_name
        return {by_name[task.node].row for task in job.having(_EVICTABLE) if task.node in by_name}

    def forget(self) -> None:
        """Discard cached votes and costs. They may depend on changes that were undone when an attempt was cut off."""
        self._shared.clear()
        self._failed.clear()
        self.domain_costs.clear()

    def known(self, kind: Kind | None) -> tuple[UnschedulableReason, ...] | None:
        """Return why an equal job or task found no room in the present state; None if no equal one was tried."""
        if kind is None or kind not in self._failed:
            return None
        state, refusals = self._failed[kind]
        return refusals if state == len(self._session.changes) else None

    def remember(self, kind: Kind | None, refusals: tuple[UnschedulableReason, ...]) -> None:
        """Record why jobs or tasks of this kind find no room. Call this after the job's own changes are undone."""
        if kind is not None:
            self._failed[kind] = (len(self._session.changes), refusals)

    # --------------------------------------------------------------------------------------------------------- victims

    def record_success(self, job: Job, placed: Sequence[Task], victims: Sequence[Victim], reprieve: Reprieve) -> None:
        """Record a request that succeeded: the tasks that were placed, and the victims evicted for them."""
        self._successes += 1
        self._placed.setdefault(job.key, []).extend(placed)
        if self._bound != (bound := len(self._session.decisions.binds)):
            self._victims.clear()  # tasks bound since then may depend on these evictions (room, quota, neighbours)
            self._bound = bound
        self._victims += victims
        if self.domain_costs:
            for key in {victim.option.job for victim in victims}:
                self.domain_costs.forget(self._rows_of(self._session.jobs[key]))
        self._reprieve.merge(reprieve)

    def reprieve_unneeded(self) -> None:
        """Reprieve victims that a later request made unnecessary; record the ratio of evicted to requested."""
        if self._successes > 1:
            self._reprieve_across_requests()
        evicted: dict[str, list[Task]] = {}
        for eviction in self._session.decisions.evictions:
            evicted.setdefault(eviction.reason.preemptor, []).append(self._session.cluster.tasks[eviction.task])
        self._session.decisions.evicted_to_requested = {
            job: evicted_to_requested(tasks, self._placed[job]) for job, tasks in evicted.items()
        }

    def _reprieve_across_requests(self) -> None:
        # Each queue orders its victims differently; priority and age can be compared among all victims.
        before = sorted(self._victims, key=lambda v: (v.option.level[-1], *v.option.rank[1:]))
        statement = self._session.statement()
        needed = self._reprieve.unneeded(before, statement)
        self._victims = self._reprieve.without_spare_members(needed, statement, self._ages.of)
        wait_again(self._session, {victim.option.job for victim in before if victim.option.whole}, statement)
        evicted = {task.uid for victim in self._victims for task in victim.tasks}
        reprieved = {task.uid for victim in before for task in victim.tasks} - evicted
        if reprieved:
            decisions = self._session.decisions
            left = (eviction for eviction in decisions.evictions if eviction.uid not in reprieved)
            decisions.evictions = [self._recounted(eviction) for eviction in left]

    def _recounted(self, eviction: Evict) -> Evict:
        """Return the eviction with the present number of members that its gang keeps."""
        remaining = remaining_members(self._session.jobs[eviction.job]) if eviction.reason.whole_gang else 0
        if remaining == eviction.reason.members_that_stay:
            return eviction
        reason = msgspec.structs.replace(eviction.reason, members_that_stay=remaining)
        return msgspec.structs.replace(eviction, reason=reason)


class Hopeless:
    """A search for victims that is in vain for all jobs of a queue that request the same resources, in any amounts.

    Jobs of thousands of sizes may wait while all other queues hold only what they deserve: the first search examines
    each candidate, and the others end with its result. Queues that hold nothing have the same candidates, so that they
    share one search.

    Attributes:
        refusal: The result, if an equal search was in vain in the present state.
    """

    def __init__(self, cache: CycleCache, kind: Kind) -> None:
        self._cache, self._kind = cache, kind
        known = cache.known(kind)
        self.refusal = known[0] if known is not None and isinstance(known[0], NoVictims) else None

    @classmethod
    def of(cls, request: PreemptionRequest, task: Task, nodes: bytes) -> Hopeless | None:
        """Return the search on these nodes; None if it may depend on more than names. Only reclaim compares queues."""
        kind = request_kind(request, task) if request.action == RECLAIM else None
        if kind is None:
            return None
        action, _, _, *rest = kind
        cache, queue = CycleCache.of(request.session), request.queue.name
        of_queue = "" if cache.holds_nothing(queue) else queue
        names_ = tuple(sorted(name for name, amount in task.init_request.items() if amount > 0))
        return cls(cache, (cls, action, of_queue, *rest, names_, tuple(sorted(task.request)), nodes))

    def remember(self, refusal: NoVictims) -> None:
        self._cache.remember(self._kind, (refusal,))


def evicted_to_requested(evicted: Iterable[Task], placed: Iterable[Task]) -> float:
    """Return the ratio of what evicted tasks hold to what placed tasks request: the largest over all dimensions."""
    requested = resources.total_of(task.request for task in placed)
    held = resources.total_of(task.request for task in evicted)
    shares = (held.get(name, 0) / amount for name, amount in requested.items() if amount > 0 and name != PODS)
    return max(shares, default=0.0)


def request_kind(request: PreemptionRequest, task: Task) -> Kind | None:
    """Return a key of preemptors that differ for plugins only in shape; None if the job's own tasks may matter."""
    if request.job.allocated or request.within_job or request.job.group is None:
        return None
    annotations = request.job.group.metadata.annotations or {}
    ours = tuple(sorted(item for item in annotations.items() if names.VOLCANO_PREFIX in item[0]))
    owners = tuple(owner.kind for owner in task.pod.metadata.owner_references or ())
    return (request.action, request.queue.name, request.job.priority, task.best_effort, ours, owners)
