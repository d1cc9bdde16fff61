"""Handwritten outcomes of a simulation, with which tests check the monitors of the stream of outcomes."""

from __future__ import annotations

from schedspec.lab.simulate.monitored import Monitors
from schedspec.monitors.protection import PREEMPTABLE
from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.model import objects
from schedspec.scheduler.model.names import GROUP_NAME
from schedspec.scheduler.reasons import VictimReason
from schedspec.scheduler.recording.events import ObjectGone, ObjectSeen
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

    def __init__(self, policy: str = POLICY, **queues: objects.QueueSpec) -> None:
        self._monitors = Monitors(policy)
        self._cycle = 0
        for name in ("n0", "n1"):
            self.node(name)
        for name, spec in queues.items():
            self.queue(name, spec)
        for item in (queue("red"), queue("blue")):
            self.see("Queue", item)

    def see(self, kind: str, item: object) -> None:
        self._monitors.observe(ObjectSeen(kind, item))

    def lose(self, kind: str, name: str) -> None:
        self._monitors.observe(ObjectGone(kind, name))

    def queue(self, name: str, spec: objects.QueueSpec) -> None:
        self.see("Queue", objects.Queue(objects.ObjectMeta(name=name), spec))

    def node(self, name: str, cpu: int = 4) -> None:
        self.see("Node", node(name, {"cpu": str(cpu)}))

    def pod(
        self, job: str, index: int = 0, *, cpu: int = 1, node: str = "", is_leaving: bool = False, **annotations: str
    ) -> None:
        """Show a pod; it is one of no job if the job was not submitted."""
        meta = objects.ObjectMeta(
            name=f"{job}-{index}",
            namespace="ns",
            deletion_timestamp="2026-01-01T00:00:00Z" if is_leaving else None,
            annotations={GROUP_NAME: job} | annotations,
        )
        container = objects.Container(resources=objects.Resources(requests={"cpu": str(cpu)}))
        spec = objects.PodSpec(node_name=node, containers=(container,))
        self.see("Pod", objects.Pod(meta, spec, objects.PodStatus("Running" if node else "Pending")))

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
        """Submit a job, whose pods request the same."""
        requests = {"cpu": str(cpu)}
        self._monitors.observe(outcomes.Submitted(0, f"ns/{name}", queue_name, pods, minimum, requests, 60, 0, ""))
        if protected:
            for index in range(pods):
                self.pod(name, index, cpu=cpu, **{PREEMPTABLE: "false"})

    def cycle(self) -> None:
        self._cycle += 1
        self._monitors.observe(outcomes.Cycle(float(self._cycle), self._cycle, Decisions()))

    def bind(self, job: str, *nodes: str, first: int = 0) -> None:
        for index, name in enumerate(nodes, first):
            self._monitors.observe(outcomes.Placed(self._cycle, f"ns/{job}", f"ns/{job}-{index}", name))

    def evict(self, job: str, preemptor: str, *, pods: int = 1, action: str = "reclaim", first: int = 0) -> None:
        reason = VictimReason(action, f"ns/{preemptor}", f"ns/{preemptor}-0", "blue", "red")
        for index in range(first, first + pods):
            self._monitors.observe(outcomes.Evicted(self._cycle, f"ns/{job}", f"ns/{job}-{index}", reason))

    def release(self, job: str, *, pods: int = 1, first: int = 0) -> None:
        for index in range(first, first + pods):
            self._monitors.observe(outcomes.Released(self._cycle, f"ns/{job}", f"ns/{job}-{index}", ""))

    def evict_and_bind(self, preemptor: str, *nodes: str, action: str = "reclaim") -> None:
        """Evict the job `victim`, and bind pods of the preemptor on nodes (default: one on n0) after it is released."""
        self.cycle()
        self.evict("victim", preemptor, action=action)
        self.release("victim")
        self.cycle()
        self.bind(preemptor, *(nodes or ("n0",)))

    def end(self, job: str) -> None:
        self._monitors.observe(outcomes.Ended(self._cycle, f"ns/{job}", "completed", 1))

    def found(self) -> list[str]:
        return [f"{it.monitor}: {it.about} {it.text}".replace("ns/", "") for it in self._monitors.close()]
