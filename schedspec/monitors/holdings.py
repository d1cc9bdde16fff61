"""Sum up what queues hold, each alone and with its descendants."""

from __future__ import annotations

from .amounts import NONE, Amounts
from .rules import lineage


class QueueSums:
    """The holdings of each queue, alone and, if queues form a tree (`is_tree`), with its descendants."""

    def __init__(self, *, is_tree: bool = False) -> None:
        self.own: dict[str, Amounts] = {}
        """Without descendants. A sum that changes is a new object."""
        self.below: dict[str, Amounts] = {}
        """With descendants."""
        self._is_tree = is_tree
        self._parents: dict[str, str] = {}
        self._lines: dict[str, tuple[str, ...]] = {}

    def line(self, queue: str) -> tuple[str, ...]:
        found = self._lines.get(queue)
        if found is None:
            found = self._lines[queue] = tuple(lineage(queue, lambda name: self._parents.get(name, "")))
        return found

    def hold(self, queue: str, held: Amounts, sign: int) -> None:
        """Add to a queue and its ancestors."""
        add(self.own, queue, held, sign)
        for name in self.line(queue):
            add(self.below, name, held, sign)

    def put(self, queue: str, parent: str) -> None:
        """Place a queue in the tree; without a parent, it has no place."""
        if not self._is_tree or self._parents.get(queue, "") == parent:
            return
        self._parents[queue] = parent
        if not parent:
            del self._parents[queue]
        self._lines.clear()
        self.below = {}
        for own, held in self.own.items():
            for above in self.line(own):
                add(self.below, above, held, 1)


def change(held: Amounts, more: Amounts, sign: int) -> None:
    """Add amounts in place."""
    for dimension, amount in more.items():
        held[dimension] = held.get(dimension, NONE) + sign * amount


def add(sums: dict[str, Amounts], name: str, part: Amounts, sign: int) -> None:
    """Add to the sum of a queue or group, as a new object: yielded sums do not change. The name "" has no sum."""
    if not name:
        return
    after = {**sums.pop(name, {})}
    change(after, part, sign)
    if not all(after.values()):
        after = {dimension: amount for dimension, amount in after.items() if amount}
    if after:
        sums[name] = after
