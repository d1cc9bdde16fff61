"""Prometheus series of each queue, job and shared card, with Volcano's names and units.

Each has series while it exists; a card, while its node announces it. A scrape builds the series in its own thread, from
the numbers of the last cycle and the pods on the nodes; only the event loop changes the data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from ..framework.decisions import QueueNumbers
from ..model.card_demand import Scheme
from ..model.card_notation import Share, cards_of, shares_of
from ..model.job import Job, PodGroupPhase
from ..model.nodes import NodeInfo
from ..model.queue import Queue
from ..model.resources import CPU, MEMORY, PODS
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
            _gauge_of_card("memory_limit", "Memory of a shared card, in MiB"),
            _gauge_of_card("allocated_memory", "Memory of a shared card that is allocated to pods, in MiB"),
            _gauge_of_card("allocated_cores", "Cores of a shared card that are allocated to pods, in percent"),
            _gauge_of_card("shared_number", "Parts of a shared card that are allocated to pods"),
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


def _gauge_of_card(what: str, help_: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"volcano_vgpu_device_{what}", help_, labels=["devID", "NodeName"])


_NOT_STARTED = ("", PodGroupPhase.PENDING, PodGroupPhase.INQUEUE)


@dataclass(slots=True)
class _JobNumbers:
    """The numbers of one job, while its PodGroup has this `uid`."""

    uid: str
    created: float
    queue: str
    phase: str
    started: bool
    """Whether the job has ever started, by the phase of its PodGroup."""
    lacking: int | None = None
    """Number of tasks for which the gang still needs a node; None if the job does not wait."""
    bound_at: float | None = None
    """When the last bind of one of its pods succeeded, in seconds since the epoch."""


class JobSeries(Collector):
    """The series of all jobs, by key (`namespace/name`).

    Args:
        exists: Returns True if the job's PodGroup still exists.
        on_start: Receives, once per job, the seconds from its creation to the last bind that it needed to start.
    """

    def __init__(self, exists: Callable[[str], bool], on_start: Callable[[float], None]) -> None:
        self._exists = exists
        self._on_start = on_start
        self._jobs: dict[str, _JobNumbers] = {}

    def bound(self, job: Job, at: float) -> None:
        """Record that a pod of the job was bound at `at`, in seconds since the epoch."""
        self._numbers_of(job).bound_at = at

    def note(self, job: Job, phase: str, *, waits: bool) -> None:
        """Record a cycle's findings: the PodGroup's phase, and whether a part of the job waits with a reason."""
        numbers = self._numbers_of(job)
        numbers.queue, numbers.phase = job.queue, phase
        numbers.lacking = max(job.min_available - job.ready, 0) if waits else None
        if not numbers.started and phase in (PodGroupPhase.RUNNING, PodGroupPhase.COMPLETED):
            numbers.started = True
            if numbers.bound_at is not None:
                self._on_start(max(numbers.bound_at - numbers.created, 0.0))

    def forget_all_but(self, jobs: Mapping[str, object]) -> None:
        """Remove the jobs that no longer exist. Their series ended earlier, with their PodGroups."""
        if len(self._jobs) > len(jobs):
            for key in self._jobs.keys() - jobs.keys():
                del self._jobs[key]

    def phases(self) -> Counter[tuple[str, str]]:
        """Return the number of PodGroups by queue and phase."""
        return Counter((numbers.queue, numbers.phase or PodGroupPhase.PENDING) for _, numbers in self._existing())

    def describe(self) -> Iterator[Metric]:
        """Yield the metric families; scrapes by name need them."""
        return self.collect()

    def collect(self) -> Iterator[Metric]:
        """Yield the series of all jobs."""
        lacking = GaugeMetricFamily(
            "volcano_unschedule_task_count",
            "Number of tasks for which the gang of a waiting job still needs a node",
            labels=["job_ns", "job_id"],
        )
        took = GaugeMetricFamily(
            "volcano_e2e_job_scheduling_duration",
            "From the creation of a job's PodGroup to its last bind, in milliseconds",
            labels=["job_namespace", "job_name", "queue"],
        )
        for key, numbers in self._existing():
            namespace, _, name = key.partition("/")
            if numbers.lacking is not None:
                lacking.add_metric([namespace, name], numbers.lacking)
            if numbers.bound_at is not None:
                took.add_metric([namespace, name, numbers.queue], max(numbers.bound_at - numbers.created, 0.0) * 1000)
        yield from (lacking, took)

    def _numbers_of(self, job: Job) -> _JobNumbers:
        uid = job.group.metadata.uid if job.group is not None else ""
        numbers = self._jobs.get(job.key)
        if numbers is None or numbers.uid != uid:
            started = job.phase not in _NOT_STARTED
            numbers = self._jobs[job.key] = _JobNumbers(uid, job.creation, job.queue, job.phase, started)
        return numbers

    def _existing(self) -> Iterator[tuple[str, _JobNumbers]]:
        return ((key, numbers) for key, numbers in self._jobs.copy().items() if self._exists(key))


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
