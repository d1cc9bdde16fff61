"""Run simulations for tests: a small cluster, a policy, and the outcomes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from schedspec.scheduler.model import objects
from schedspec.scheduler.policy.loader import load_policy
from schedspec.virtual import Arrival, Settings, Simulation, Workload, node
from schedspec.virtual.outcomes import Started
from tests.support.core.queueing import Job

START = 1_500_000_000.0
CARDS = "nvidia.com/gpu"

POLICY = """
actions: "{actions}"
tiers:
- plugins: [{first}]
- plugins: [{{name: gang}}, {{name: predicates}}, {{name: {queue}}}, {{name: nodeorder}}]
"""
STRICT = "{name: sla, arguments: {sla-waiting-time: 1ns}}"
"""First come, first served: the first waiting job reserves the free capacity."""

T = TypeVar("T")


def policy(actions: str = "allocate", first: str = "{name: priority}", queue: str = "capacity") -> Any:
    """Return a policy with these actions, this plugin in tier 1 and this queue plugin in tier 2."""
    return load_policy(POLICY.format(actions=actions, first=first, queue=queue), "test")


def queue(name: str, **spec: Any) -> objects.Queue:
    """Return an open queue."""
    return objects.Queue(objects.ObjectMeta(name=name), objects.QueueSpec(**spec), objects.QueueStatus("Open"))


class Run:
    """A simulation with all of its outcomes."""

    def __init__(
        self,
        by: Any,
        nodes: Mapping[str, Mapping[str, str]],
        queues: Iterable[objects.Queue] = (),
        *,
        start: float = START,
        on_input: Callable[[Any], None] | None = None,
        **settings: float,
    ) -> None:
        self.outcomes: list[Any] = []
        self.simulation = Simulation(
            by, emit=self.outcomes.append, settings=Settings(**settings), start=start, on_input=on_input
        )
        for name, has in nodes.items():
            self.simulation.put("Node", node(name, has))
        for each in [*queues] or [queue("default")]:
            self.simulation.put("Queue", each)

    def of(self, kind: type[T], job: str = "") -> list[T]:
        """Return the outcomes of a kind (and of a job)."""
        return [it for it in self.outcomes if type(it) is kind and (not job or getattr(it, "job", "") == f"load/{job}")]

    def times(self, kind: type[Any], job: str = "") -> list[float]:
        """Return the times of these outcomes, in seconds since the start."""
        return [it.at - START for it in self.of(kind, job)]

    def play(self, *arrivals: tuple[float, Any], until: float = math.inf) -> Run:
        """Simulate these inputs; their times, and `until`, are seconds since the start."""
        self.simulation.run((Arrival(START + at, item) for at, item in arrivals), START + until)
        return self


def serve(jobs: Iterable[Job], by: Any, quotas: Mapping[str, int], *, shortest: bool = False) -> dict[str, float]:
    """Return when each job starts on nodes of eight cards. All queues share the nodes, each within its quota."""
    resource, total, alone = CARDS, sum(quotas.values()), len(quotas) == 1
    nodes = {f"n{at:03}": {resource: str(min(8, total - 8 * at)), "pods": "1000"} for at in range(-(-total // 8))}
    queues = [queue(name, capability=None if alone else {resource: str(cards)}) for name, cards in quotas.items()]
    jobs, started = list(jobs), dict[str, float]()

    def keep(outcome: Any) -> None:
        if type(outcome) is Started:  # the other outcomes of a whole trace would not fit into memory
            started[outcome.job.partition("/")[2]] = outcome.at

    simulation = Simulation(by, emit=keep, start=min((job.submitted for job in jobs), default=START))
    for name, has in nodes.items():
        simulation.put("Node", node(name, has))
    for each in queues:
        simulation.put("Queue", each)
    simulation.run(Arrival(job.submitted, workload(job, shortest=shortest)) for job in jobs)
    return started


def workload(job: Job, *, shortest: bool = False) -> Workload:
    """Return the job as a gang of one-card pods; if `shortest`, shorter jobs have higher priority."""
    priority = -int(job.duration) if shortest else None
    return Workload(job.name, job.duration, {CARDS: "1"}, job.cards, queue=job.queue, priority=priority)
