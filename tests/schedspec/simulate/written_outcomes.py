"""Outcomes that tests of the stream's monitors write by hand, and what the monitors find in them."""

from __future__ import annotations

from schedspec.simulate.monitored import Monitors
from scheduler.framework.decisions import Decisions
from scheduler.model import objects
from scheduler.reasons import VictimReason
from scheduler.simulation import node, outcomes
from tests.support.core.virtual import queue

POLICY = """
actions: "allocate, preempt, reclaim"
tiers:
- plugins: [{name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity, enableHierarchy: true}]
"""


class Story:
    """Outcomes on two nodes of four cpus, written by hand, and the findings of the monitors."""

    def __init__(self, **queues: objects.QueueSpec) -> None:
        named = [objects.Queue(objects.ObjectMeta(name=name), spec) for name, spec in queues.items()]
        nodes = [node(name, {"cpu": "4"}) for name in ("n0", "n1")]
        self._monitors = Monitors(POLICY, nodes, [*named, queue("red"), queue("blue")])
        self._cycle = 0

    def job(
        self, name: str, of: str = "red", *, pods: int = 1, least: int = 1, cpu: int = 1, keep: bool = False
    ) -> None:
        self._take(outcomes.Submitted(0, name, of, pods, least, {"cpu": str(cpu)}, 60, 0, "", not keep))

    def cycle(self) -> None:
        self._cycle += 1
        self._take(outcomes.Cycle(float(self._cycle), self._cycle, Decisions()))

    def bind(self, job: str, *nodes: str, first: int = 0) -> None:
        for index, name in enumerate(nodes, first):
            self._take(outcomes.Placed(self._cycle, job, f"{job}-{index}", name))

    def evict(self, job: str, preemptor: str, *, pods: int = 1, action: str = "reclaim", first: int = 0) -> None:
        reason = VictimReason(action, preemptor, f"{preemptor}-0", "blue", "red")
        for index in range(first, first + pods):
            self._take(outcomes.Evicted(self._cycle, job, f"{job}-{index}", reason))

    def gone(self, job: str, *, pods: int = 1, first: int = 0) -> None:
        for index in range(first, first + pods):
            self._take(outcomes.Released(self._cycle, job, f"{job}-{index}", ""))

    def give_room(self, preemptor: str, *nodes: str, action: str = "reclaim") -> None:
        """Evict the job `victim`, and bind pods of the preemptor on nodes (one on n0) once the victim is gone."""
        self.cycle()
        self.evict("victim", preemptor, action=action)
        self.gone("victim")
        self.cycle()
        self.bind(preemptor, *(nodes or ("n0",)))

    def end(self, job: str) -> None:
        self._take(outcomes.Ended(self._cycle, job, "completed", 1))

    def _take(self, outcome: outcomes.Outcome) -> None:
        self._monitors.take(outcome)

    def found(self) -> list[str]:
        return [f"{it['monitor']}: {it['about']} {it['text']}" for it in self._monitors.close()]
