"""Compute what evicting a unit frees on a node and what it costs.

This module only reads the state: it evicts nothing and calls no plugin.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..model import resources
from ..model.nodes import NodeInfo
from ..model.resources import PODS, Resource
from ..model.task import Task
from .eligibility import VictimFilter
from .node_queue import Cost
from .order import Order
from .request import PreemptionRequest
from .topology_aware import node_cost, reprieved_cover
from .units import Unit
from .victim_set import Amounts, Ratios, VictimOption, cheapest_cover, cost, is_waste


class Pricing:
    """Compute the eviction options of one request and choose among them.

    Args:
        smallest_first: among victims of equal rank, evict those first that free the least.
        requested: what the whole job requests; None to compare with the request of each task.
    """

    def __init__(
        self,
        request: PreemptionRequest,
        victim_filter: VictimFilter,
        order: Order,
        requested: Resource | None,
        *,
        smallest_first: bool,
    ) -> None:
        self._requested = requested
        self._request = request
        self._session, self._nodes = request.session, request.session.nodes
        self._victim_filter, self._order = victim_filter, order
        self._smallest_first = smallest_first
        self.cover, self.cost = (reprieved_cover, node_cost) if request.reprieves else (cheapest_cover, cost)

    def bounds(self, task: Task, rows: Sequence[int]) -> Iterator[Cost | None]:
        """Yield for each node a lower bound of the cost of making room; None if all candidates together do not suffice.

        The plugins' votes are not considered.
        """
        for row, (lacking, columns) in zip(rows, self.lacking(task, rows), strict=True):
            if not columns:
                yield ()
                continue
            node = self._nodes.rows[row]
            candidates = self._victim_filter.candidates(task, node)
            lowest = candidates if self._request.reprieves else self._victim_filter.least_protected(candidates)
            chosen = self._cover(task, node, lacking, columns, lowest)
            # Better protected candidates matter only where the least protected ones do not suffice or are a waste.
            if len(lowest) < len(candidates) and (chosen is None or is_waste(chosen)):
                chosen = self._cover(task, node, lacking, columns, candidates)
            yield None if chosen is None else self.cost(chosen)

    def _cover(
        self, task: Task, node: NodeInfo, lacking: Amounts, columns: list[int], candidates: Sequence[Task]
    ) -> list[VictimOption] | None:
        """Return the units of these candidates to evict; None if all units together do not suffice."""
        units = self._victim_filter.units(candidates)
        return self.cover(lacking, [self.option(task, unit, node, columns, 0) for unit in units])

    def lacking(self, task: Task, rows: Sequence[int]) -> Iterator[tuple[Amounts, list[int]]]:
        """Yield what each node lacks for the task after all releasing tasks have left, and in which dimensions."""
        nodes, needed = self._nodes, self._nodes.needed(task)
        if len(rows) == 1:  # at every eviction: costs a third of the computation with arrays
            row = rows[0]
            free = (nodes.idle[row] + nodes.releasing[row] - nodes.pipelined[row]).tolist()
            found = [[need and need - have for need, have in zip(needed.tolist(), free, strict=True)]]
        else:
            free_by_row = nodes.idle[rows] + nodes.releasing[rows] - nodes.pipelined[rows]
            found = np.where(needed, needed - free_by_row, 0).tolist()
        for lacking in found:
            columns = [column for column, amount in enumerate(lacking) if amount > 0]
            yield tuple([lacking[column] for column in columns]), columns

    def option(self, task: Task, unit: Unit, node: NodeInfo | None, columns: list[int], first: int) -> VictimOption:
        """Return the unit as a victim option for `task`.

        Args:
            task: the task that needs room.
            unit: the unit to be evicted.
            node: the node on which the unit frees room; None if it only frees quota.
            columns: the dimensions that count as freed on `node`.
            first: the first tier that would permit the unit without the vetoes of whole gangs (`EligibleUnit.first`).
        """
        freed = [0] * len(columns)
        for member in unit.tasks:
            if node is not None and member.node == node.name:
                held = self._nodes.held(member)
                for i, column in enumerate(columns):
                    freed[i] += int(held[column])
        priority = self._request.priority(unit.job, unit.tasks[0])
        return VictimOption(
            freed=tuple(freed),
            level=(first, *self._order.level(unit.job, priority)),
            gangs=int(unit.breaks),
            pods=len(unit.tasks),
            age_key=(self._largest_share(unit) if self._smallest_first else 0.0, self._order.age_key(unit.tasks[0])),
            job=unit.job.key,
            whole=unit.whole,
            limits=unit.limits,
            takes=self._ratios(task, unit),
        )

    def _ratios(self, task: Task, unit: Unit) -> Ratios:
        """Return the ratios of what the unit holds to what is requested, by dimension."""
        held = unit.job.allocated if unit.whole else unit.tasks[0].request
        requested = task.request if self._requested is None else self._requested
        return tuple([held.get(name, 0) / amount for name, amount in requested.items() if amount > 0 and name != PODS])

    def _largest_share(self, unit: Unit) -> float:
        """Return the unit's dominant share: its largest share of the cluster's total, over all dimensions."""
        total = self._session.total
        held = resources.total_of(task.request for task in unit.tasks)
        return max((resources.share(amount, total.get(name, 0)) for name, amount in held.items()), default=0.0)
