"""Prometheus series of each shared card, with Volcano's names and units.

A card has series while its node announces it. A scrape builds the series in its own thread, from the pods on the nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from ..model.card_demand import Scheme
from ..model.card_notation import Share, cards_of, shares_of
from ..model.nodes import NodeInfo
from ..model.task import COMPLETED

_SCHEMES: tuple[Scheme, ...] = ("vgpu", "memory")
"""The two schemes in which nodes announce cards."""


class CardSeries(Collector):
    """The series of all shared cards of `nodes`.

    `is_shown` is False until the first cycle, because a replica that does not schedule exports no series.
    """

    def __init__(self, nodes: Callable[[], Mapping[str, NodeInfo]]) -> None:
        self._nodes = nodes
        self.is_shown = False

    def describe(self) -> Iterator[Metric]:
        """Yield the metric families without samples; scrapes by name need them."""
        return self._families([])

    def collect(self) -> Iterator[Metric]:
        """Yield the series of all cards."""
        if self.is_shown:
            yield from self._families([*self._nodes().values()])

    def _families(self, nodes: list[NodeInfo]) -> Iterator[Metric]:
        total, memory, cores, pods = (
            _gauge("memory_limit", "Memory of a shared card, in MiB"),
            _gauge("allocated_memory", "Memory of a shared card that is allocated to pods, in MiB"),
            _gauge("allocated_cores", "Cores of a shared card that are allocated to pods, in percent"),
            _gauge("shared_number", "Parts of a shared card that are allocated to pods"),
        )
        for node, scheme in ((node, scheme) for node in nodes for scheme in _SCHEMES):
            cards = cards_of(node.object, scheme)
            held: dict[str, list[Share]] = {card.name: [] for card in cards}
            for task in [*node.tasks.values()] if cards else ():
                if task.cards is None or task.status & COMPLETED or (task.cards.scheme == "vgpu") != (scheme == "vgpu"):
                    continue
                for share in shares_of(task.placed_with, task.cards, cards):
                    held.get(share.card, []).append(share)
            for card in cards:
                labels, shares = [card.name, node.name], held[card.name]
                total.add_metric(labels, card.memory)
                memory.add_metric(labels, sum(share.memory for share in shares))
                cores.add_metric(labels, sum(share.cores for share in shares))
                pods.add_metric(labels, len(shares))
        yield from (total, memory, cores, pods)


def _gauge(what: str, help_: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"volcano_vgpu_device_{what}", help_, labels=["devID", "NodeName"])
