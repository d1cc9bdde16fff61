"""Making room for one job: where its tasks go and whom that costs the place.

The one rule: all of it is one statement. A task first takes room that is already being freed; else it goes to the
node where the cheapest set of victims makes room for it (:mod:`scheduler.victims.order`), over all nodes. In the end
every victim that is not needed is given back, and the statement is committed only if the job can start with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scheduler.model import resources
from scheduler.model.nodes import NodeInfo
from scheduler.model.queue import ROOT
from scheduler.model.resources import EPSILON
from scheduler.model.task import Task
from scheduler.reasons import VictimReason
from scheduler.victims.attempts import Shared
from scheduler.victims.claim import Claim
from scheduler.victims.cover import Amounts, Option, cheapest_cover, cost
from scheduler.victims.front import Cost, Front
from scheduler.victims.give_back import GiveBack
from scheduler.victims.jury import Verdict
from scheduler.victims.units import Unit, is_still_whole
from scheduler.victims.victim import Victim


class Search:
    """The transaction of one claim. ``frugal``: among victims of one rank those that free the least go first."""

    def __init__(self, claim: Claim, shared: Shared, *, frugal: bool = False) -> None:
        self._claim = claim
        self._session = claim.session
        self._nodes = claim.session.nodes
        self._shared = shared
        self._frugal = frugal
        self._order, self.jury = shared.order, shared.jury
        self.statement = claim.session.statement()
        self.placed = 0
        self.victims: list[Victim] = []
        self._served: set[bytes] = set()
        self._freed_for: dict[str, int] = {}
        self._freed_twice: set[str] = set()
        self.give_back = GiveBack(claim.session)

    # ---------------------------------------------------------------------------------------------------------- tasks

    def place(self, task: Task) -> bool:
        """Find room for a task, with or without victims; if there is none, nothing has changed."""
        savepoint, before = self.statement.savepoint(), len(self.victims)
        if self._allocatable(task) or (self._has_room(task) and self._free_quota(task)):
            node = self._session.placement.best(task, future=True)
            if node is not None:
                self._settle(task, node, before)
                return True
        self._rollback(savepoint, before)
        return self._make_room(task)

    def _has_room(self, task: Task) -> bool:
        return self._session.placement.best(task, future=True) is not None

    def _allocatable(self, task: Task) -> bool:
        return self._session.hooks.all_agree("allocatable", self._claim.queue, task)

    def _settle(self, task: Task, node: NodeInfo, before: int) -> None:
        self.statement.pipeline(task, node)
        self.placed += 1
        self.give_back.placed(task, node, self._claim.queue)
        self.victims[before:] = self._needed(self.victims[before:])
        for member in (member for victim in self.victims[before:] for member in victim.tasks):
            if self._freed_for.setdefault(member.node, self.placed) != self.placed:
                self._freed_twice.add(member.node)

    def finish(self) -> None:
        """Give back who is not needed after all: that may be where room was freed for more than one task."""
        if self.give_back.is_only_about_room:
            doubtful = [v for v in self.victims if any(task.node in self._freed_twice for task in v.tasks)]
        else:
            doubtful = self.victims
        if not doubtful:
            return
        certain = [victim for victim in self.victims if victim not in doubtful]
        given_back = set(map(id, doubtful)) - set(map(id, self._needed(doubtful, certain)))
        self.victims[:] = [victim for victim in self.victims if id(victim) not in given_back]

    def _needed(self, victims: list[Victim], others: Sequence[Victim] = ()) -> list[Victim]:
        ranked = sorted(victims, key=lambda victim: victim.option.rank)
        return self.give_back.unneeded(ranked, self.statement, others)

    def _rollback(self, savepoint: int, before: int) -> None:
        self.statement.rollback(savepoint)
        del self.victims[before:]

    # ---------------------------------------------------------------------------------------------------------- nodes

    def _make_room(self, task: Task) -> bool:
        front = self._front(task)
        while (found := front.pop()) is not None:
            row, exact = found
            savepoint, before = self.statement.savepoint(), len(self.victims)
            node = self._nodes.rows[row]
            price, done = self._evict_for(task, node, None if exact else front)
            if done:
                self._settle(task, node, before)
                return True
            self._rollback(savepoint, before)
            front.in_step()
            if price is None:
                front.drop(row)
            else:
                front.push(price, row, exact=True)
        return False

    def _front(self, task: Task) -> Front:
        """The prices of all nodes as things stand."""
        fronts = self._shared.fronts
        front = fronts.get(task.shape)
        if front is None:
            front = fronts[task.shape] = Front(self._session, task, self._shared.rows)
        front.refresh(self, again=task.shape not in self._served)
        self._served.add(task.shape)
        return front

    def bound(self, task: Task, row: int) -> Cost | None:
        """What room on a node costs at least, votes not asked; None if all candidates together do not make it."""
        node = self._nodes.rows[row]
        lacking, columns = self._lacking(task, row)
        if all(amount <= EPSILON for amount in lacking):
            return cost(())
        units = self.jury.units(self.jury.candidates(task, node))
        chosen = cheapest_cover(lacking, [self._option(unit, node, columns, 0) for unit in units])
        return None if chosen is None else cost(chosen)

    def _lacking(self, task: Task, row: int) -> tuple[Amounts, list[int]]:
        """What a node lacks for the task even after all releasing have left, by dimension."""
        nodes = self._nodes
        needed = nodes.needed(task)
        lacking = needed - (nodes.idle[row] + nodes.releasing[row] - nodes.pipelined[row])
        columns = [int(i) for i in np.flatnonzero((needed > 0) & (lacking > EPSILON))]
        return tuple(float(lacking[i]) for i in columns), columns

    def _option(self, unit: Unit, node: NodeInfo | None, columns: list[int], first: int) -> Option:
        freed = [0.0] * len(columns)
        for task in unit.tasks:
            if node is not None and task.node == node.name:
                held = self._nodes.held(task)
                for i, column in enumerate(columns):
                    freed[i] += held[column]
        priority = self._claim.priority(unit.job, unit.tasks[0])
        return Option(
            freed=tuple(freed),
            level=(first, *self._order.level(unit.job, priority)),
            gangs=int(unit.breaks),
            pods=len(unit.tasks),
            youth=(self._freed(unit) if self._frugal else 0.0, self._order.youth(unit.tasks[0])),
            job=unit.job.key,
            whole=unit.whole,
            limits=unit.limits,
        )

    def _freed(self, unit: Unit) -> float:
        """How much a unit frees, in shares of the cluster."""
        total = self._session.total
        held = resources.total_of(task.request for task in unit.tasks)
        return max((resources.share(amount, total.get(name, 0.0)) for name, amount in held.items()), default=0.0)

    # --------------------------------------------------------------------------------------------------------- victims

    def _evict_for(self, task: Task, node: NodeInfo, front: Front | None) -> tuple[Cost | None, bool]:
        """Evict the cheapest permitted units that let the task onto the node, unless ``front`` offers it for less.

        What it costs (None if it cannot be) and whether it was done; if not, the caller rolls back.
        """
        lacking, columns = self._lacking(task, node.row)
        banned: set[tuple[str, ...]] = set()
        while True:
            savepoint, before = self.statement.savepoint(), len(self.victims)
            offers = {
                self._option(verdict.unit, node, columns, verdict.first): verdict
                for verdict in self.jury.permitted(task, node)
                if _name(verdict.unit) not in banned
            }
            chosen = cheapest_cover(lacking, list(offers))
            if chosen is None:
                return None, False
            if front is not None and front.offers_less_than(price := cost(chosen)):
                return price, False
            refused = next((option for option in chosen if not self._evict(task, offers[option], option)), None)
            if refused is None:
                break
            banned.add(_name(offers[refused].unit))
            self._rollback(savepoint, before)
        for option in sorted((option for option in offers if option not in chosen), key=lambda option: option.rank):
            if self._admits(task, node):
                break
            self._evict(task, offers[option], option)
        if not self._admits(task, node) or not (self._allocatable(task) or self._free_quota(task)):
            return None, False
        victims = self.victims[before:]
        if front is not None and len(victims) > len(chosen):  # it costs more than it seemed to
            return cost([victim.option for victim in victims]), False
        return (), True

    def _admits(self, task: Task, node: NodeInfo) -> bool:
        return self._session.placement.fits(task, node, future=True)

    def _evict(self, task: Task, verdict: Verdict, option: Option) -> bool:
        """Evict a unit unless, after what has been evicted before, something stands against it now."""
        unit = verdict.unit
        if not is_still_whole(unit):
            return False
        if (denial := self.jury.objection(task, unit)) is not None:
            self.jury.denials.update((member.key, denial) for member in unit.tasks)
            return False
        reason = VictimReason(
            action=self._claim.action,
            claimant=self._claim.job.key,
            claimant_task=task.key,
            claimant_queue=self._claim.queue.name,
            queue=unit.job.queue,
            tier=verdict.tier,
            whole_gang=unit.whole,
            votes=verdict.votes,
        )
        for member in unit.tasks:
            self.statement.evict(member, reason)
        self.victims.append(Victim(verdict, option))
        return True

    def _free_quota(self, task: Task) -> bool:
        """Evict, cheapest first, from queues whose holdings count against the claimant's, until its queue may hold the
        task.
        """
        related = self._related_queues()
        offers: dict[tuple[str, ...], tuple[Option, Verdict]] = {}
        for node in self._nodes.rows if related else ():
            for verdict in self.jury.permitted(task, node):
                if verdict.unit.job.queue in related:
                    offers[_name(verdict.unit)] = (self._option(verdict.unit, None, [], verdict.first), verdict)
        self.give_back.by_quota = True
        for option, verdict in sorted(offers.values(), key=lambda offer: offer[0].rank):
            if self._allocatable(task):
                break
            self._evict(task, verdict, option)
        return self._allocatable(task)

    def _related_queues(self) -> set[str]:
        """Queues that share a limit with the claimant's:

        Itself, and those below a common ancestor other than the root.
        """
        queues = self._session.queues

        def lineage(name: str) -> set[str]:
            line: list[str] = []
            while name and name != ROOT and name in queues and name not in line:
                line.append(name)
                name = queues[name].parent
            return set(line)

        own = lineage(self._claim.queue.name)
        return {name for name in queues if lineage(name) & own and (name == self._claim.queue.name or name not in own)}


def _name(unit: Unit) -> tuple[str, ...]:
    return (unit.job.key, "" if unit.whole else unit.tasks[0].key)
