"""Handwritten outcomes of a simulation, with which tests check the monitors of the stream of outcomes."""

from __future__ import annotations

from schedspec.lab.simulate.monitored import Monitors
from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.model import objects
from schedspec.scheduler.reasons import VictimReason
from schedspec.virtual import node, outcomes
from tests.support.core.virtual import queue

POLICY = """
actions: "allocate, preempt, reclaim"
tiers:
- plugins: [{name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity, enableHierarchy: true}]
"""


class Story:
    """Handwritten outcomes on two nodes of four cpus, and the findings of the monitors in them."""

    def __init__(self, **queues: objects.QueueSpec) -> None:
        named = [objects.Queue(objects.ObjectMeta(name=name), spec) for name, spec in queues.items()]
        nodes = [node(name, {"cpu": "4"}) for name in ("n0", "n1")]
        self._monitors = Monitors(POLICY, nodes, [*named, queue("red"), queue("blue")])
        self._cycle = 0

    def job(
        self,
        name: str,
        queue_name: str = "red",
        *,
        pods: int = 1,
        minimum: int = 1,
        cpu: int = 1,
        protected: bool = False,
    ) -> None:
        requests = {"cpu": str(cpu)}
        self._monitors.observe(
            outcomes.Submitted(0, name, queue_name, pods, minimum, requests, 60, 0, "", not protected)
        )

    def cycle(self) -> None:
        self._cycle += 1
        self._monitors.observe(outcomes.Cycle(float(self._cycle), self._cycle, Decisions()))

    def bind(self, job: str, *nodes: str, first: int = 0) -> None:
        for index, name in enumerate(nodes, first):
            self._monitors.observe(outcomes.Placed(self._cycle, job, f"{job}-{index}", name))

    def evict(self, job: str, preemptor: str, *, pods: int = 1, action: str = "reclaim", first: int = 0) -> None:
        reason = VictimReason(action, preemptor, f"{preemptor}-0", "blue", "red")
        for index in range(first, first + pods):
            self._monitors.observe(outcomes.Evicted(self._cycle, job, f"{job}-{index}", reason))

    def release(self, job: str, *, pods: int = 1, first: int = 0) -> None:
        for index in range(first, first + pods):
            self._monitors.observe(outcomes.Released(self._cycle, job, f"{job}-{index}", ""))

    def evict_and_bind(self, preemptor: str, *nodes: str, action: str = "reclaim") -> None:
        """Evict the job `victim`, and bind pods of the preemptor on nodes (default: one on n0) after it is released."""
        self.cycle()
        self.evict("victim", preemptor, action=action)
        self.release("victim")
        self.cycle()
        self.bind(preemptor, *(nodes or ("n0",)))

    def end(self, job: str) -> None:
        self._monitors.observe(outcomes.Ended(self._cycle, job, "completed", 1))

    def found(self) -> list[str]:
        return [f"{it.monitor}: {it.about} {it.text}" for it in self._monitors.close()]
