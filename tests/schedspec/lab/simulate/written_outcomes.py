"""Handwritten inputs and outcomes of a simulation, which the monitors judge as a stream and as a history."""

from __future__ import annotations

import pickle

import msgspec

from schedspec.lab.simulate.monitored import MonitoredRun
from schedspec.monitors import Rules, judge
from schedspec.monitors.protection import PREEMPTABLE
from schedspec.scheduler.framework.decisions import Decisions, Evict
from schedspec.scheduler.inputs import ObjectGone, ObjectSeen
from schedspec.scheduler.model import objects
from schedspec.scheduler.model.names import GROUP_NAME
from schedspec.scheduler.reasons import VictimReason
from schedspec.virtual import node, outcomes
from tests.support.core.play_history import Recorder
from tests.support.core.virtual import queue

POLICY = """
actions: "allocate, preempt, reclaim"
tiers:
- plugins: [{name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity, enableHierarchy: true}]
"""
SECONDS = 10.0
"""Time between two cycles: longer than what counts as one burst of a gang."""


class Story:
    """Outcomes on two nodes of four cpus, and the findings of the monitors in them.

    Owners create released pods again. The end of a story is quiet.
    """

    def __init__(self, policy: str = POLICY, **queues: objects.QueueSpec) -> None:
        self._rules, self._recorder = Rules(policy), Recorder()
        self._monitors = MonitoredRun(self._rules)
        self._cycle = 0
        self._created = 0
        self._groups: dict[str, objects.PodGroup] = {}
        self._pods: dict[str, objects.Pod] = {}
        for name in ("n0", "n1"):
            self.node(name)
        for name, spec in queues.items():
            self.queue(name, spec)
        for item in (queue("red"), queue("blue")):
            self._tell(ObjectSeen("Queue", item))

    def _tell(self, happened: object) -> None:
        self._monitors.observe(self._at, happened)
        self._recorder.record(self._at, happened)

    @property
    def _at(self) -> float:
        return self._cycle * SECONDS

    def lose(self, kind: str, name: str) -> None:
        self._tell(ObjectGone(kind, name))

    def queue(self, name: str, spec: objects.QueueSpec) -> None:
        self._tell(ObjectSeen("Queue", objects.Queue(objects.ObjectMeta(name=name), spec)))

    def node(self, name: str, cpu: int = 4) -> None:
        self._tell(ObjectSeen("Node", node(name, {"cpu": str(cpu)})))

    def job(
        self,
        name: str,
        queue_name: str = "red",
        *,
        pods: int = 1,
        minimum: int = 1,
        cpu: int = 1,
        protected: bool = False,
        **annotations: str,
    ) -> None:
        """Submit a job, whose pods request the same."""
        key, requests = f"ns/{name}", {"cpu": str(cpu)}
        self._tell(outcomes.Submitted(self._at, key, queue_name, pods, minimum, requests, 60, 0, ""))
        meta = objects.ObjectMeta(name=name, namespace="ns", annotations=annotations)
        self._groups[key] = objects.PodGroup(meta, objects.PodGroupSpec(minimum, queue=queue_name))
        self._tell(ObjectSeen("PodGroup", self._groups[key]))
        for index in range(pods):
            self.pod(name, index, cpu=cpu, **({PREEMPTABLE: "false"} if protected else {}))

    def pod(self, job: str, index: int = 0, *, cpu: int = 1, node: str = "", **annotations: str) -> None:
        """Show a pod that waits; with a node, one that runs. It is one of no job if the job was not submitted."""
        meta = objects.ObjectMeta(name=f"{job}-{index}", namespace="ns", annotations={GROUP_NAME: job} | annotations)
        container = objects.Container(resources=objects.Resources(requests={"cpu": str(cpu)}))
        self._create(objects.Pod(meta, objects.PodSpec(containers=[container])), node)

    def _create(self, pod: objects.Pod, node: str = "") -> None:
        self._created += 1
        meta = msgspec.structs.replace(pod.metadata, uid=f"uid-{self._created}")
        self._show(objects.Pod(meta, pod.spec, pod.status), node)

    def _show(self, pod: objects.Pod, node: str = "") -> None:
        spec = msgspec.structs.replace(pod.spec, node_name=node)
        shown = objects.Pod(pod.metadata, spec, objects.PodStatus("Running" if node else "Pending"))
        self._pods[pod.metadata.key] = shown
        self._tell(ObjectSeen("Pod", shown))

    def delete(self, job: str, index: int = 0) -> None:
        """Let the owner delete a pod, which terminates from now on."""
        pod = self._pods[f"ns/{job}-{index}"]
        meta = msgspec.structs.replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
        self._show(objects.Pod(meta, pod.spec, pod.status), pod.spec.node_name)

    def cycle(self, *victims: str) -> None:
        """Begin a cycle; `victims` are jobs of which its decisions evict the first pod, after their binds."""
        self._cycle += 1
        reason = VictimReason("reclaim", "", "", "", "")
        evictions = [Evict(f"ns/{job}-0", "", f"ns/{job}", reason) for job in victims]
        self._tell(outcomes.Cycle(self._at, self._cycle, Decisions(evictions=evictions)))

    def bind(self, job: str, *nodes: str, first: int = 0) -> None:
        for index, name in enumerate(nodes, first):
            key = f"ns/{job}-{index}"
            self._tell(outcomes.Placed(self._at, f"ns/{job}", key, name))
            self._show(self._pods[key], name)

    def evict(self, job: str, preemptor: str, *, pods: int = 1, action: str = "reclaim", first: int = 0) -> None:
        queues = [self._groups[f"ns/{name}"].spec.queue for name in (preemptor, job)]
        reason = VictimReason(action, f"ns/{preemptor}", f"ns/{preemptor}-0", *queues)
        for index in range(first, first + pods):
            self._tell(outcomes.Evicted(self._at, f"ns/{job}", f"ns/{job}-{index}", reason))

    def release(self, job: str, *, pods: int = 1, first: int = 0) -> None:
        for index in range(first, first + pods):
            key = f"ns/{job}-{index}"
            self._tell(outcomes.Released(self._at, f"ns/{job}", key, ""))
            self._tell(ObjectGone("Pod", key))
            self._create(self._pods[key])

    def evict_and_bind(self, preemptor: str, *nodes: str, action: str = "reclaim") -> None:
        """Evict the job `victim`, and bind pods of the preemptor on nodes (default: one on n0) after it is released."""
        self.cycle()
        self.evict("victim", preemptor, action=action)
        self.release("victim")
        self.cycle()
        self.bind(preemptor, *(nodes or ("n0",)))

    def end(self, job: str) -> None:
        for key in [key for key in self._pods if key.rpartition("-")[0] == f"ns/{job}"]:
            self._tell(outcomes.Released(self._at, f"ns/{job}", key, ""))
            self._tell(ObjectGone("Pod", key))
            del self._pods[key]
        self._tell(ObjectGone("PodGroup", f"ns/{job}"))
        self._tell(outcomes.Ended(self._at, f"ns/{job}", "completed", 1))

    def memory(self) -> int:
        """Return the size of what the monitors of the stream remember."""
        return len(pickle.dumps(self._monitors))

    def found(self) -> list[str]:
        """Return the findings in the stream."""
        return [f"{it.monitor}: {it.job} {it.text}".replace("ns/", "") for it in self._monitors.close()]

    def found_in_history(self) -> set[str]:
        """Return the names of the monitors that find something in the history."""
        self._cycle += 1
        self.pod("end")
        return {violation.monitor for violation in judge(self._recorder.versions, self._rules)}
