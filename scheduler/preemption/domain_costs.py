"""Cache the cost of evictions in a domain, so that equal gangs do not try the same domains again.

A cost is valid until an amount on a node of the domain changes, or a job with tasks there loses tasks elsewhere, which
may change which of its tasks are spare. The search is repeated in the chosen domain and verifies the cost.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..model.nodes import Nodes
from ..topology.domains import Domain
from .node_queue import Cost


class DomainCosts:
    """Costs by the kind of preemptor and the domain."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._seen = len(nodes.touched)
        self._costs: dict[tuple[object, ...], dict[Domain, Cost]] = {}

    def __bool__(self) -> bool:
        """Whether any cost is known: most cycles search no domain."""
        return bool(self._costs)

    def known(self, kind: tuple[object, ...] | None, domain: Domain | None) -> Cost | None:
        """Return the cost of victims in a domain; None if it is not known."""
        if kind is None or domain is None or kind not in self._costs:
            return None
        self._forget_touched()
        return self._costs[kind].get(domain)

    def remember(self, kind: tuple[object, ...] | None, domain: Domain | None, cost: Cost) -> None:
        """Record a cost that was just found, by a trial that has been undone."""
        if kind is not None and domain is not None:
            self._forget_touched()
            self._costs.setdefault(kind, {})[domain] = cost

    def forget(self, rows: Iterable[int]) -> None:
        """Drop the costs of the domains that contain any of these rows."""
        changed = frozenset(rows)
        for costs in self._costs.values():
            for domain in [domain for domain in costs if not changed.isdisjoint(domain.rows.tolist())]:
                del costs[domain]

    def clear(self) -> None:
        self._costs.clear()

    def _forget_touched(self) -> None:
        touched = self._nodes.touched
        if self._costs and self._seen < len(touched):
            self.forget(touched[self._seen :])
        self._seen = len(touched)
