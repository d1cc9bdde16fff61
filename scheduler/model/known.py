"""Which resources count in a cluster, and how much memory a request for some percent of a card counts as.

Amounts count only in resources that a node or a queue names. A request in percent counts as that part of the cluster's
smallest card, for waiting and for running pods. If the amount grew with the placement, it could lift a queue above its
share, and the pod would be evicted and placed again and again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from . import resources
from .card_demand import VGPU_MEMORY


class NamedResources:
    """Count the resources that nodes and queues name, and keep the smallest card of each node."""

    def __init__(self) -> None:
        self._names: Counter[str] = Counter(dict.fromkeys((resources.CPU, resources.MEMORY, resources.PODS), 1))
        """Resource → number of nodes and queues that name it."""
        self._memory_on: dict[str, int] = {}
        """Node → memory of its smallest card."""
        self._memories: Counter[int] = Counter()

    def __contains__(self, name: str) -> bool:
        return name in self._names

    @property
    def card_memory(self) -> int:
        """Memory of the smallest virtual GPU, in the unit of its resource; 0 if there is none or it does not count."""
        return min(self._memories, default=0) if VGPU_MEMORY in self._names else 0

    def update(self, now: Iterable[str], before: Iterable[str]) -> tuple[set[str], set[str]]:
        """Replace the resources that an object names; return the resources that became known, and became unknown."""
        more, less = set(now).difference(before), set(before).difference(now)
        added = {name for name in more if not self._names[name]}
        self._names.update(more)
        self._names.subtract(less)
        removed = {name for name in less if not self._names[name]}
        for name in removed:
            del self._names[name]
        return added, removed

    def set_card(self, node: str, memory: int) -> None:
        """Set the memory of the smallest card of a node; 0 if it has none."""
        before = self._memory_on.pop(node, 0)
        if before:
            self._memories[before] -= 1
            if not self._memories[before]:
                del self._memories[before]
        if memory:
            self._memory_on[node] = memory
            self._memories[memory] += 1
