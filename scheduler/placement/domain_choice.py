"""Choose the domains in which a gang, or a subgroup, may find room, the best first.

1. If pods of the gang already hold capacity, only domains that contain all these pods are tried, the smallest first.
2. Otherwise domains with room for the gang are tried tier by tier, the lowest tier first. Within a tier, domains with
   room now come first, then those with room for all waiting pods, then by the plugins' score, then by name.

Room is estimated for all domains of a tier at once and never underestimated; for tasks of one shape without inter-pod
constraints the estimate is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..model import resources
from ..model.nodes import Amounts, Nodes, Rows
from ..model.resources import PODS, Resource
from ..model.task import Task
from ..policy.tiers import Hooks
from ..reasons import NoDomain, NoNode, OutsideDomain
from ..topology.closeness import Closeness
from ..topology.domains import Domain, DomainSet
from .engine import Placement


@dataclass(frozen=True, slots=True)
class Wanted:
    """Tasks that have to be placed close to each other.

    Attributes:
        tasks: The waiting tasks.
        lacking: How many of these tasks must be placed together or not at all.
        held: The rows of the nodes on which further tasks of the same gang already hold capacity.
        group: The subgroup's name; empty for a whole job.
    """

    tasks: Sequence[Task]
    lacking: int
    held: Sequence[int] = ()
    group: str = ""


class DomainChoice:
    """Choose among the domains of one cycle."""

    def __init__(self, placement: Placement, nodes: Nodes, hooks: Hooks) -> None:
        self._placement, self._nodes, self._hooks = placement, nodes, hooks

    def candidates(self, closeness: Closeness, wanted: Wanted, inside: Domain | None) -> Iterator[Domain | None]:
        """Yield the domains to try, the best first; None stands for all nodes. With `inside`, only parts of it."""
        if wanted.held:
            around = DomainSet(domain for domain in closeness.around(wanted.held) if _is_in(domain, inside))
            rooms = self._rooms(wanted.tasks, around, future=True)
            yield from (domain for domain, room in zip(around.domains, rooms, strict=True) if room >= wanted.lacking)
        else:
            for tier in closeness.tiers(inside):
                if len(tier):
                    yield from self._of_tier(tier, wanted)
        if not closeness.is_hard:
            yield inside

    def _of_tier(self, tier: DomainSet, wanted: Wanted) -> list[Domain]:
        later = self._rooms(wanted.tasks, tier, future=True)
        fits = np.flatnonzero(later >= wanted.lacking)
        if not len(fits):
            return []
        now = self._rooms(wanted.tasks, tier, future=False) if self._will_room_change() else later
        request = resources.total_of(task.request for task in wanted.tasks)
        scores = self._hooks.domain_order(request, tier).round(6)
        whole = len(wanted.tasks)
        ranked = sorted(
            fits, key=lambda i: (now[i] < wanted.lacking, later[i] < whole, -scores[i], tier.domains[i].name)
        )
        return [tier.domains[i] for i in ranked]

    def _will_room_change(self) -> bool:
        return bool(self._nodes.releasing.any() or self._nodes.pipelined.any())

    def _rooms(
        self, tasks: Sequence[Task], domains: DomainSet, *, future: bool = True, available: Amounts | None = None
    ) -> Rows:
        """Return how many of the tasks find room in each domain; an upper bound if their shapes differ.

        `available` replaces the present free room of the nodes.
        """
        total = np.zeros(len(domains), dtype=np.int64)
        for alike in _by_shape(tasks):
            self._placement.spend(20 + len(self._nodes.rows) // 8)
            if available is None:
                slots = self._placement.slots_by_row(alike[0], future=future)
            else:
                slots = self._placement.slots_in(alike[0], available)
            total += np.minimum(domains.sums(slots), len(alike))
        return total

    # ------------------------------------------------------------------------------------------------------- evictions

    def with_victims(
        self, closeness: Closeness, wanted: Wanted, inside: Domain | None, steps: Sequence[Amounts]
    ) -> list[Domain | None]:
        """Return the widest permitted domains that may hold the tasks after evictions; without a hard limit, `inside`.

        Args:
            closeness: What the tasks require.
            wanted: The tasks.
            inside: Only this domain and its parts count.
            steps: The free room of all nodes without evictions, then with more and more candidates evicted. Domains are
                ranked by the first step that suffices, then by the number of pods that lack room in the steps before
                it, the latest of these steps first.
        """
        if not closeness.is_hard:
            return [inside]
        if wanted.held:
            widest = DomainSet([domain for domain in closeness.around(wanted.held) if _is_in(domain, inside)][-1:])
        else:
            widest = DomainSet(domain for domain in closeness.widest() if _is_in(domain, inside))
            if inside is not None and not len(widest):
                widest = DomainSet((inside,))
        rooms = np.array([self._rooms(wanted.tasks, widest, available=free) for free in steps])
        short = np.maximum(wanted.lacking - rooms, 0)
        usable = np.flatnonzero((short == 0).any(axis=0))
        first = (short == 0).argmax(axis=0)
        ranked = sorted(usable, key=lambda i: (first[i], short[: first[i], i][::-1].tolist(), widest.domains[i].name))
        return [widest.domains[i] for i in ranked]

    def reserve(self, reserved: Amounts, domain: Domain, tasks: Sequence[Task], steps: Sequence[Amounts]) -> None:
        """Add what the tasks would hold in the domain to `reserved`; the room of earlier steps is used first."""
        for alike in _by_shape(tasks):
            left, held = len(alike), self._nodes.held(alike[0])
            for free in steps:
                slots = self._placement.slots_in(alike[0], free - reserved)[domain.rows]
                more = np.minimum(slots, np.maximum(left - (slots.cumsum() - slots), 0))
                reserved[domain.rows] += more[:, None] * held
                left -= int(more.sum())

    # ---------------------------------------------------------------------------------------------------- inner domains

    def inner(self, closeness: Closeness, domain: Domain | None, task: Task, count: int, held: Rows) -> Domain | None:
        """Return the part of a domain that should get the next of `count` equal tasks; None for no preference.

        The part with the most pods of the gang is best (`held`: their number on each node), then the smallest with room
        for all `count` tasks, then the largest.
        """
        found = domain
        slots = self._placement.slots_by_row(task, future=False)
        while len(parts := closeness.topology.inside(found)):
            rooms, near = parts.sums(slots), parts.sums(held)
            usable = np.flatnonzero(rooms > 0)
            if not len(usable):
                break
            best = min(
                usable,
                key=lambda i: (-near[i], rooms[i] < count, rooms[i] if rooms[i] >= count else -rooms[i], i),
            )
            found = parts.domains[best]
        return None if found is domain else found

    # ---------------------------------------------------------------------------------------------------------- reasons

    def refusal(self, closeness: Closeness, wanted: Wanted, inside: Domain | None) -> NoDomain | OutsideDomain:
        """Return why no domain has room; the reason describes the widest permitted domains."""
        if wanted.held:
            around = [domain for domain in closeness.around(wanted.held) if _is_in(domain, inside)]
            if not around:
                across = next(closeness.topology.around(wanted.held), None)
                return OutsideDomain(closeness.requested or closeness.kind, across.name if across else "", wanted.group)
            domains = DomainSet(around[-1:])
        else:
            domains = next((tier for tier in reversed(list(closeness.tiers(inside))) if len(tier)), DomainSet(()))
        if not len(domains):
            return NoDomain(closeness.kind, 0, "", 0, wanted.lacking, group=wanted.group)
        rooms = self._rooms(wanted.tasks, domains, future=True)
        best = int(rooms.argmax())
        domain = domains.domains[best]
        dimension, left, requested = self._shortage(domain, wanted)
        return NoDomain(
            domain.kind,
            len(domains),
            domain.name,
            int(min(rooms[best], wanted.lacking)),
            wanted.lacking,
            dimension,
            left,
            requested,
            group=wanted.group,
            above=closeness.requested if closeness.is_hard and closeness.limit > closeness.topology.highest else "",
            nodes=None if dimension else self._explained(domain, wanted.tasks),
        )

    def _explained(self, domain: Domain, tasks: Sequence[Task]) -> NoNode | None:
        """Return why the domain's nodes do not fit the first task shape of which not all tasks find room."""
        shapes = list(_by_shape(tasks))
        lacking = (alike for alike in shapes if self._rooms(alike, DomainSet((domain,)))[0] < len(alike))
        with self._placement.inside(domain):
            why = self._placement.explain(next(lacking, shapes[0])[0])
        return why if isinstance(why, NoNode) else None

    def _shortage(self, domain: Domain, wanted: Wanted) -> tuple[str, int, int]:
        """Return the first resource that is short in the domain, its free amount, and the least that is requested."""
        idle = np.maximum(self._nodes.future_idle(domain.rows), 0).sum(axis=0)
        requested = smallest_sum(wanted.tasks, wanted.lacking)
        for name, amount in sorted(requested.items()):
            left = int(idle[self._nodes.dimensions[name]])
            if amount > left and name != PODS:
                return name, left, amount
        return "", 0, 0


def smallest_sum(tasks: Iterable[Task], count: int) -> Resource:
    """Return for each resource the smallest sum that any `count` of the tasks request."""
    by_name: dict[str, list[int]] = {}
    number = 0
    for task in tasks:
        number += 1
        for name, amount in task.request.items():
            by_name.setdefault(name, []).append(amount)
    # a task that does not name a resource requests nothing of it
    return {name: sum(sorted(amounts)[: max(count - (number - len(amounts)), 0)]) for name, amounts in by_name.items()}


def _by_shape(tasks: Iterable[Task]) -> Iterable[list[Task]]:
    found: dict[bytes, list[Task]] = {}
    for task in tasks:
        found.setdefault(task.shape, []).append(task)
    return found.values()


def _is_in(domain: Domain, outer: Domain | None) -> bool:
    return outer is None or (domain.tier <= outer.tier and bool(outer.mask[domain.rows[0]]))
