"""The guarantees that queues do not use: a branch is guaranteed the larger of its own and the sum of its children's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from ..amounts import NONE, Amounts

CLUSTER = ""
"""The parent of the queues that have no other."""


class UnusedGuarantees:
    """What is guaranteed to queues and not used.

    Args:
        parents: Queue → parent, `CLUSTER` for the topmost queues.
        guarantees: The guarantees in the queues' specs.
        held: Returns what a queue holds with all queues below it.
    """

    def __init__(
        self, parents: Mapping[str, str], guarantees: Mapping[str, Amounts], held: Callable[[str], Amounts]
    ) -> None:
        self._parents, self._guarantees, self._held = parents, guarantees, held
        self._children: dict[str, list[str]] = {}
        for name, parent in parents.items():
            self._children.setdefault(parent, []).append(name)

    def below(self, pool: str, dimension: str) -> Decimal:
        """Return the sum of what the children of a queue, or of the cluster, are guaranteed and do not use."""
        return sum((self._unused(child, dimension) for child in self._children.get(pool, ())), NONE)

    def beside(self, line: Sequence[str], dimension: str) -> dict[str, Decimal]:
        """Return the unused guarantees beside a queue and its ancestors, up to one that uses its own guarantee.

        Args:
            line: The queue and its ancestors, the queue first.
            dimension: The resource.
        """
        found: dict[str, Decimal] = {}
        for name in line:
            used = self._held(name).get(dimension, NONE) + sum(found.values(), NONE)
            if used <= self._guaranteed(name, dimension):
                break
            for other in self._children.get(self._parents.get(name, CLUSTER), ()):
                if other != name and (unused := self._unused(other, dimension)) > 0:
                    found[other] = unused
        return found

    def would_be_free(self, free: Mapping[str, Decimal], more: Mapping[str, Decimal]) -> bool:
        """Whether all unused guarantees would be free if evicted pods still held `more` of the free amounts."""
        return all(
            free.get(name, NONE) - amount >= below
            for name, amount in more.items()
            if amount > 0 and (below := self.below(CLUSTER, name)) > 0
        )

    def _guaranteed(self, name: str, dimension: str) -> Decimal:
        below = sum((self._guaranteed(child, dimension) for child in self._children.get(name, ())), NONE)
        return max(self._guarantees.get(name, {}).get(dimension, NONE), below)

    def _unused(self, name: str, dimension: str) -> Decimal:
        own = self._guarantees.get(name, {}).get(dimension, NONE) - self._held(name).get(dimension, NONE)
        return max(own, self.below(name, dimension), NONE)


def largest(unused: Mapping[str, Decimal]) -> str:
    """Return the queue with the largest unused guarantee."""
    return min(unused, key=lambda name: (-unused[name], name))
