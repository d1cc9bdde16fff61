"""Choose nodes for the tasks of one job, and evict the cheapest victims there.

1. A task is placed in room that is free or is being freed, if it fits there.
2. Otherwise the task is placed on the node with the cheapest set of victims (`scheduler.preemption.order`).
3. At the end, victims that no placement needs are reprieved.

All changes belong to one statement, which the caller commits only if the job can start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..model.nodes import NodeInfo
from ..model.resources import Resource
from ..model.task import Task
from ..reasons import OutOfProportion, Protected, ProtectedBy, Protection, QueueExcess, VictimReason
from .affinity_guard import AffinityGuard
from .cost import Pricing
from .cycle_cache import Hopeless, Place, Shared, evicted_to_requested
from .eligibility import EligibleUnit
from .node_queue import Cost, NodeCostQueue
from .quota_bound import QuotaBound
from .reprieve import Reprieve, wait_again
from .request import RECLAIM, PreemptionRequest
from .units import Unit, is_unchanged, release_waiting
from .victim import Victim
from .victim_set import VictimOption, is_waste


class Solver:
    """The transaction of one request. For `requested` and `smallest_first` see `Pricing`."""

    def __init__(
        self, request: PreemptionRequest, shared: Shared, requested: Resource | None, *, smallest_first: bool = False
    ) -> None:
        self._request = request
        self._session = request.session
        self._nodes = request.session.nodes
        self._shared = shared
        self.victim_filter = shared.victim_filter
        self._pricing = Pricing(request, shared.victim_filter, shared.order, requested, smallest_first=smallest_first)
        self.statement = request.session.statement()
        self.placed: list[Task] = []
        self.has_protected_victims = False
        """Whether some set of victims would have made room for a task, but one of them was protected."""
        self.has_sought_victims = False
        """Whether victims were sought. If not, another order of victims changes nothing."""
        self.victims: list[Victim] = []
        self._gangs: set[str] = set()
        """Jobs that were evicted as a whole, even if members are reprieved later."""
        self._served: set[Place] = set()
        self._freed_for: dict[str, int] = {}
        """Node → number of placed tasks when the first victim there was evicted."""
        self._freed_twice: set[str] = set()
        """Nodes on which room was freed for several tasks."""
        self.reprieve = Reprieve(request.session)
        self._affinity_guard = AffinityGuard(request.session.placement, self.reprieve, shared.pinned)
        self._quota_bound = QuotaBound(request)
        self.hopeless: Hopeless | None = None
        """The search that found that no unit may be evicted, if its result holds for other jobs as well."""

    # ---------------------------------------------------------------------------------------------------------- tasks

    def place(self, task: Task) -> bool:
        """Place a task, with or without victims. If no room is found, nothing changes."""
        savepoint, before = self.statement.savepoint(), len(self.victims)
        if not self._allocatable(task):
            node = self._best_within_quota(task)
        else:
            node = self._best_unless_needed(task) if self.reprieve.by_quota else self._best(task)
        if node is not None:
            self._record_placement(task, node, before)
            return True
        self._rollback(savepoint, before)
        return self._make_room(task)

    def _best(self, task: Task) -> NodeInfo | None:
        return self._session.placement.best(task, future=True)

    def _best_within_quota(self, task: Task) -> NodeInfo | None:
        """Free quota for the task and return its node; None if there is no room, or too little quota.

        The node is chosen before the evictions: it has room already, so that no victim is needed for room.
        """
        self._quota_bound.read_limits(task)
        node = self._best_unless_needed(task)
        if node is None or not self._free_quota(task):
            return None
        return node if self._fits(task, node) else self._best(task)

    def _best_unless_needed(self, task: Task) -> NodeInfo | None:
        """Return the best node, if possible one that has room even if all victims of quota stay.

        A victim that a later one makes superfluous is reprieved only if no task has been placed in its room.
        """
        savepoint = self.statement.savepoint()
        for member in (member for victim in self.victims for member in victim.tasks):
            self.statement.restore(member)
        try:
            node = self._best(task)
        finally:
            self.statement.rollback(savepoint)
        return self._best(task) if node is None and self.victims else node

    def _allocatable(self, task: Task) -> bool:
        return self._session.hooks.allocatable(self._request.queue, task)

    def _record_placement(self, task: Task, node: NodeInfo, before: int) -> None:
        """Pipeline the task, and reprieve the victims from number `before` on that the task does not need."""
        self.statement.pipeline(task, node)
        self.placed.append(task)
        self._affinity_guard.forget()
        self.reprieve.placed(task, node, self._request.queue, reclaims=self._request.action == RECLAIM)
        if len(self.victims) == before:
            return
        self.victims[before:] = self._needed(self.victims[before:])
        for member in (member for victim in self.victims[before:] for member in victim.tasks):
            if self._freed_for.setdefault(member.node, len(self.placed)) != len(self.placed):
                self._freed_twice.add(member.node)

    def finish(self) -> None:
        """Reprieve victims that are not needed, then members of gangs that are not needed."""
        self._reprieve_units()
        self.victims[:] = self.reprieve.without_spare_members(self.victims, self.statement, self._shared.order.age_key)
        wait_again(self._session, self._gangs, self.statement)

    def _reprieve_units(self) -> None:
        """Reprieve units. Where only room matters, check only nodes on which room was freed for several tasks."""
        if self.reprieve.needs_room_only:
            doubtful = [v for v in self.victims if any(task.node in self._freed_twice for task in v.tasks)]
        else:
            doubtful = self.victims
        if not doubtful:
            return
        certain = [victim for victim in self.victims if victim not in doubtful]
        reprieved = set(map(id, doubtful)) - set(map(id, self._needed(doubtful, certain)))
        self.victims[:] = [victim for victim in self.victims if id(victim) not in reprieved]

    def _needed(self, victims: list[Victim], others: Sequence[Victim] = ()) -> list[Victim]:
        ranked = sorted(victims, key=lambda victim: victim.option.rank)
        return self.reprieve.unneeded(ranked, self.statement, others)

    def _rollback(self, savepoint: int, before: int) -> None:
        self.statement.rollback(savepoint)
        del self.victims[before:]

    @property
    def excess(self) -> QueueExcess | OutOfProportion | None:
        """Return why room was not made if the evictions would not be in proportion; None otherwise."""
        return self._quota_bound.excess

    def is_in_proportion(self) -> bool:
        """Whether the victims are in proportion to the placed tasks; call after `finish`."""
        return self._quota_bound.keeps(self.victims, self.placed)

    @property
    def ratio(self) -> float:
        """Return the ratio of what victims hold to what placed tasks request (`evicted_to_requested`)."""
        return evicted_to_requested((task for victim in self.victims for task in victim.tasks), self.placed)

    # ---------------------------------------------------------------------------------------------------------- nodes

    def _make_room(self, task: Task) -> bool:
        self._find_candidate_rows()
        if self._place_key(task) not in self._served and not self.victims and not self._is_any_unit_permitted(task):
            return False
        node_queue = self._node_queue(task)
        while (found := node_queue.pop()) is not None:
            row, exact = found
            savepoint, before = self.statement.savepoint(), len(self.victims)
            node = self._nodes.rows[row]
            price, done = self._evict_for(task, node, None if exact else node_queue)
            if done:
                self._record_placement(task, node, before)
                return True
            self._rollback(savepoint, before)
            node_queue.mark_current()
            if price is None:
                node_queue.drop(row)
            else:
                node_queue.push(price, row, exact=True)
        return False

    def _find_candidate_rows(self) -> None:
        """Find the nodes with candidates before the first eviction: a node whose only candidate is evicted counts."""
        self.has_sought_victims = True
        _ = self._shared.rows

    def _is_any_unit_permitted(self, task: Task) -> bool:
        """Whether any unit on any node may be evicted now; if no unit may, no node needs a price."""
        is_feasible = self._session.placement.static(task)
        self.hopeless = Hopeless.of(self._request, task, is_feasible.tobytes()) if not self.placed else None
        if self.hopeless is not None and self.hopeless.refusal is not None:
            return False
        rows = (row for row in sorted(self._shared.rows) if is_feasible[row])
        is_any = self.victim_filter.permits_any(task, (self._nodes.rows[row] for row in rows))
        if is_any or not self.victim_filter.protects_lastingly():
            self.hopeless = None
        return is_any

    def _node_queue(self, task: Task) -> NodeCostQueue:
        """Return the nodes with their prices in the present state."""
        node_queues, place = self._shared.node_queues, self._place_key(task)
        node_queue = node_queues.get(place)
        if node_queue is None:
            node_queue = node_queues[place] = NodeCostQueue(self._session, task, self._shared.rows)
        node_queue.refresh(self._pricing, again=place not in self._served)
        self._served.add(place)
        return node_queue

    def _place_key(self, task: Task) -> Place:
        return task.shape, self._session.placement.domain

    # --------------------------------------------------------------------------------------------------------- victims

    def _evict_for(self, task: Task, node: NodeInfo, node_queue: NodeCostQueue | None) -> tuple[Cost | None, bool]:
        """Evict the cheapest permitted units that make room for the task on the node.

        Nothing is evicted if `node_queue` has a node with a lower price. If the task cannot be placed, the caller rolls
        back.

        Returns:
            The cost if nothing was evicted (None if the task cannot be placed), and whether the units were evicted.
        """
        groups = self._session.hooks.victim_groups(task, node)
        best = min(self._prices(task, node, groups), default=None)
        if best is None:
            return self._evict_among(task, node, node_queue, None)
        price, number = best
        if node_queue is not None and node_queue.is_any_below(price):
            return price, False
        return self._evict_among(task, node, None, groups[number])

    def _prices(self, task: Task, node: NodeInfo, groups: Sequence[frozenset[str]]) -> Iterator[tuple[Cost, int]]:
        """Yield the price and the number of each group of candidates whose eviction makes room for the task."""
        for number, group in enumerate(groups):
            savepoint, before = self.statement.savepoint(), len(self.victims)
            _, done = self._evict_among(task, node, None, group)
            if done:
                yield self._pricing.cost([victim.option for victim in self.victims[before:]]), number
            self._rollback(savepoint, before)

    def _evict_among(
        self, task: Task, node: NodeInfo, node_queue: NodeCostQueue | None, group: frozenset[str] | None
    ) -> tuple[Cost | None, bool]:
        """Evict the cheapest permitted units of one group, as `_evict_for` does; None stands for all units."""
        ((lacking, columns),) = self._pricing.lacking(task, [node.row])
        protected: set[tuple[str, ...]] = set()
        denied: dict[str, Protection] = {}
        while True:
            savepoint, before = self.statement.savepoint(), len(self.victims)
            verdicts = {
                self._pricing.option(task, verdict.unit, node, columns, verdict.first): verdict
                for verdict in self.victim_filter.permitted(task, node)
                if _key(verdict.unit) not in protected and (group is None or _touches(verdict.unit, group))
            }
            self.victim_filter.denials.update(denied)
            chosen = self._pricing.cover(lacking, list(verdicts))
            if chosen is None:
                return None, False
            if node_queue is not None and node_queue.is_any_below(price := self._pricing.cost(chosen)):
                return price, False
            refused = next((option for option in chosen if not self._evict(task, verdicts[option], option, node)), None)
            if refused is None:
                break
            self.has_protected_victims = True
            unit = verdicts[refused].unit
            protected.add(_key(unit))
            known = self.victim_filter.denials
            denied.update((member.key, known[member.key]) for member in unit.tasks if member.key in known)
            self._rollback(savepoint, before)
        for option in sorted((option for option in verdicts if option not in chosen), key=lambda option: option.rank):
            if self._fits(task, node):
                break
            self._evict(task, verdicts[option], option, node)
        if not self._fits(task, node) or not (self._allocatable(task) or self._free_quota(task)):
            return None, False
        victims = self.victims[before:]
        if node_queue is not None and len(victims) > len(chosen):  # the node costs more than its lower bound
            return self._pricing.cost([victim.option for victim in victims]), False
        return (), True

    def _fits(self, task: Task, node: NodeInfo) -> bool:
        return self._session.placement.fits(task, node, future=True)

    def _evict(self, task: Task, verdict: EligibleUnit, option: VictimOption, node: NodeInfo | None = None) -> bool:
        """Evict a unit unless it is protected in the state after the previous evictions."""
        unit, before = verdict.unit, self.statement.savepoint()
        if not is_unchanged(unit, self._request.spares):
            return False
        if unit.whole:
            release_waiting(unit.job, self.statement)
        if (denial := self.victim_filter.objection(task, unit.tasks)) is not None:
            self.statement.rollback(before)
            self.victim_filter.denials.update((member.key, denial) for member in unit.tasks)
            return False
        reason = VictimReason(
            action=self._request.action,
            preemptor=self._request.job.key,
            preemptor_task=task.key,
            preemptor_queue=self._request.queue.name,
            queue=unit.job.queue,
            tier=verdict.tier,
            whole_gang=unit.whole,
            votes=verdict.votes,
        )
        savepoint = self.statement.savepoint()
        self._evict_members(unit, reason)
        if self._breaks_a_constraint(savepoint, unit, reason, task, node):
            self.statement.rollback(before)
            self.victim_filter.denials.update((member.key, Protected(ProtectedBy.NEIGHBOUR)) for member in unit.tasks)
            return False
        position = self.statement.savepoint()
        self.victims.append(Victim(verdict, option, task, self.victim_filter.objection, position))
        if unit.whole:
            self._gangs.add(unit.job.key)
        return True

    def _evict_members(self, unit: Unit, reason: VictimReason) -> None:
        for member in unit.tasks:
            self.statement.evict(member, reason)

    def _breaks_a_constraint(
        self, savepoint: int, unit: Unit, reason: VictimReason, task: Task, node: NodeInfo | None
    ) -> bool:
        """Whether the eviction of the unit breaks an inter-pod constraint of the preemptor or an earlier placement."""
        broken = [holds for holds in self._affinity_guard.conditions(task, node, self.statement) if not holds()]
        if not broken:
            return False
        self.statement.rollback(savepoint)
        any_held_before = any(holds() for holds in broken)
        self._evict_members(unit, reason)
        return any_held_before

    def _free_quota(self, task: Task) -> bool:
        """Evict, cheapest first, from queues that share a limit with the preemptor's, until the task fits the limits.

        Returns:
            True if the queue may hold the task now.
        """
        self._find_candidate_rows()
        related = self._quota_bound.related
        by_unit: dict[tuple[str, ...], tuple[VictimOption, EligibleUnit]] = {}
        for node in self._nodes.rows if related else ():
            for verdict in self.victim_filter.permitted(task, node):
                if verdict.unit.job.queue in related:
                    option = self._pricing.option(task, verdict.unit, None, [], verdict.first)
                    by_unit[_key(verdict.unit)] = (option, verdict)
        verdicts = (*(verdict for _, verdict in by_unit.values()), *(victim.verdict for victim in self.victims))
        if not self._quota_bound.permits(verdict.unit for verdict in verdicts):
            return False
        self.reprieve.by_quota = True
        cheapest = sorted(by_unit.values(), key=_rank_without_waste)
        return self._evict_until_allocatable(task, cheapest) or self._evict_until_allocatable(
            task, sorted(cheapest, key=lambda candidate: -self._quota_bound.freed_by(candidate[1].unit))
        )

    def evict_one_by_one(self, task: Task) -> Iterator[list[Task]]:
        """Evict the permitted units, cheapest first, to free quota for a task; yield all evicted tasks after each."""
        self._find_candidate_rows()
        by_unit: dict[tuple[str, ...], tuple[VictimOption, EligibleUnit]] = {}
        for row in sorted(self._shared.rows):
            for verdict in self.victim_filter.permitted(task, self._nodes.rows[row]):
                option = self._pricing.option(task, verdict.unit, None, [], verdict.first)
                by_unit[_key(verdict.unit)] = (option, verdict)
        for option, verdict in sorted(by_unit.values(), key=_rank_without_waste):
            if self._evict(task, verdict, option):
                yield [member for victim in self.victims for member in victim.tasks]

    def _evict_until_allocatable(self, task: Task, candidates: Iterable[tuple[VictimOption, EligibleUnit]]) -> bool:
        """Evict in order until the task fits the limits. If it never does, nothing changes.

        Evicting a small victim may protect a large one of the same gang, which then keeps only its minimum.
        """
        savepoint, before = self.statement.savepoint(), len(self.victims)
        for option, verdict in candidates:
            if self._allocatable(task):
                break
            self._evict(task, verdict, option)
        if self._allocatable(task):
            return True
        self._rollback(savepoint, before)
        return False


def _rank_without_waste(candidate: tuple[VictimOption, EligibleUnit]) -> tuple[Any, ...]:
    option = candidate[0]
    return (option.near, is_waste([option]), option.rank)


def _touches(unit: Unit, group: frozenset[str]) -> bool:
    return any(task.key in group for task in unit.tasks)


def _key(unit: Unit) -> tuple[str, ...]:
    return (unit.job.key, "" if unit.whole else unit.tasks[0].key)
