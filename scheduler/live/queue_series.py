"""Prometheus series of each queue, with Volcano's names and units.

A queue has series while it exists. A scrape builds the series in its own thread, from the numbers of the last cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from ..framework.decisions import QueueNumbers
from ..model.job import PodGroupPhase
from ..model.queue import Queue
from ..model.resources import CPU, MEMORY, PODS

_PHASES = (
    PodGroupPhase.PENDING,
    PodGroupPhase.INQUEUE,
    PodGroupPhase.RUNNING,
    PodGroupPhase.UNKNOWN,
    PodGroupPhase.COMPLETED,
)


class QueueSeries(Collector):
    """The series of all `queues`.

    `phases` returns the number of PodGroups by queue and phase. `numbers` has the numbers of the last cycle, for queues
    that a plugin accounts for. It is None before the first cycle; until then, no series are exported.
    """

    def __init__(
        self, queues: Callable[[], Mapping[str, Queue]], phases: Callable[[], Mapping[tuple[str, str], int]]
    ) -> None:
        self.numbers: Mapping[str, QueueNumbers] | None = None
        self._queues = queues
        self._phases = phases

    def collect(self) -> Iterator[Metric]:
        """Yield the series of all queues."""
        if self.numbers is not None:
            yield from self._families(dict(self._queues()), self.numbers, self._phases())

    def describe(self) -> Iterator[Metric]:
        """Yield the metric families without samples; scrapes by name need them."""
        return self._families({}, {}, {})

    def _families(
        self, queues: Mapping[str, Queue], numbers: Mapping[str, QueueNumbers], groups: Mapping[tuple[str, str], int]
    ) -> Iterator[Metric]:
        for phase in _PHASES:
            of_phase = {name: groups.get((name, phase), 0) for name in queues}
            yield _gauge(f"pod_group_{phase.lower()}_count", f"PodGroups of a queue that are {phase}", of_phase)
        yield _gauge("weight", "Weight of a queue", {name: queue.weight for name, queue in queues.items()})
        known = {name: numbers[name] for name in queues if name in numbers}
        shares = {name: it.share for name, it in known.items() if it.share is not None}
        yield _gauge("share", "Share of a queue: held divided by deserved, in the largest dimension", shares)
        overused = {name: it.overused for name, it in known.items() if it.overused is not None}
        yield _gauge("overused", "1 if a queue is not entitled to more", overused)
        resources = {name: _resources_of(it) for name, it in known.items()}
        for what, help_, amounts in (
            ("allocated", "held by its jobs", {name: it.allocated for name, it in known.items()}),
            ("deserved", "deserved", {name: it.deserved for name, it in known.items()}),
            ("request", "held or requested by its jobs", {name: it.request for name, it in known.items()}),
        ):
            with_zeros = {name: dict.fromkeys(resources[name], 0.0) | held for name, held in amounts.items()}
            yield from _amounts(what, help_, with_zeros)
        yield from _amounts("capacity", "its capability", {name: queues[name].capability for name in known})
        limits = {name: it.capability for name, it in known.items()}
        yield from _amounts("real_capacity", "the most it may hold beside the guarantees of other queues", limits)


def _resources_of(numbers: QueueNumbers) -> set[str]:
    """Return the resources with series, even if their amount is 0: those that the queue may hold."""
    held = (numbers.allocated, numbers.deserved, numbers.request, numbers.guarantee, numbers.capability)
    return {CPU, MEMORY}.union(*held)


def _gauge(what: str, help_: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"volcano_queue_{what}", help_, labels=["queue_name"])
    for name, value in values.items():
        family.add_metric([name], value)
    return family


def _amounts(what: str, help_: str, amounts: Mapping[str, Mapping[str, float]]) -> Iterator[Metric]:
    """Yield amounts by queue and resource as Volcano's three metrics: CPU, memory, and all other resources."""
    cpu = {name: held[CPU] for name, held in amounts.items() if CPU in held}
    memory = {name: held[MEMORY] for name, held in amounts.items() if MEMORY in held}
    yield _gauge(f"{what}_milli_cpu", f"CPU of a queue: {help_}, in thousandths of a core", cpu)
    yield _gauge(f"{what}_memory_bytes", f"Memory of a queue: {help_}, in bytes", memory)
    others = GaugeMetricFamily(
        f"volcano_queue_{what}_scalar_resources",
        f"Other resources of a queue: {help_}, in thousandths",
        labels=["queue_name", "resource"],
    )
    for name, held in amounts.items():
        for resource in sorted(held.keys() - {CPU, MEMORY, PODS}):  # the number of pods is not a quota
            others.add_metric([name, resource], held[resource])
    yield others
