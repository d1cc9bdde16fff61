"""Recordings of what Kueue and kube-scheduler do, written by the test as the recorder would."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

import msgspec

from schedspec.lab.recorder.writer import VersionWriter
from schedspec.scheduler.inputs import Noted, ObjectGone, ObjectSeen, PolicyLoaded, Started, Taken
from schedspec.scheduler.model import objects
from schedspec.scheduler.model.times import timestamp
from schedspec.scheduler.recording.segments import VERSION

START = 1_790_000_000.0
SPACE = "team"
KUEUE = "kueue.x-k8s.io/v1beta2"
Object = dict[str, Any]


def uid_of_workload(job: str) -> str:
    return str(uuid5(NAMESPACE_DNS, job))


class Recorded:
    """Writes the versions of objects into a recording, with a clock that the test moves."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now, self._written = folder, START, 0
        self._writer = VersionWriter(folder, 1e9, 1 << 30, lambda: self.now)
        self._pods: dict[str, objects.Pod] = {}
        self._uids: dict[str, str] = {}
        self._writer.begin([Started(VERSION, [], {}), PolicyLoaded("", ""), Taken(self.now)])

    def close(self) -> None:
        """End the recording after the minutes in which a finding becomes certain."""
        self.pass_time(300.0)
        self._writer.flush()
        self._writer.close()

    def pass_time(self, seconds: float) -> None:
        """Let time pass, in the steps of the recorder."""
        for _ in range(int(seconds)):
            self.now += 1.0
            self._writer.flush()

    def _meta(self, name: str, space: str = SPACE, uid: str = "", **more: Any) -> Object:
        self._written += 1
        made = {"name": name, "namespace": space, "uid": uid or f"{name}-{self._written}"}
        version, born = str(self._written), timestamp(self.now)
        return {**made, "resourceVersion": version, "creationTimestamp": born, **more}

    def node(self, name: str, cpu: int) -> None:
        has = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
        meta = msgspec.convert(self._meta(name, ""), objects.ObjectMeta)
        status = objects.NodeStatus(allocatable={**has}, capacity={**has})
        self._writer.write(ObjectSeen("Node", objects.Node(meta, status=status)))

    def priority(self, name: str, value: int) -> None:
        meta = msgspec.convert(self._meta(name, ""), objects.ObjectMeta)
        self._writer.write(ObjectSeen("PriorityClass", objects.PriorityClass(meta, value)))

    def queue(self, name: str, **spec: Any) -> None:
        """Create a queue of Volcano's API."""
        meta = msgspec.convert(self._meta(name, ""), objects.ObjectMeta)
        self._writer.write(ObjectSeen("Queue", objects.Queue(meta, msgspec.convert(spec, objects.QueueSpec))))

    def group(self, name: str, queue: str, minimum: int = 1) -> None:
        """Create a PodGroup of Volcano's API."""
        meta = msgspec.convert(self._meta(name), objects.ObjectMeta)
        self._writer.write(ObjectSeen("PodGroup", objects.PodGroup(meta, objects.PodGroupSpec(minimum, queue=queue))))

    def gang(self, name: str, *, api_version: str = "scheduling.k8s.io/v1beta1", **spec: Any) -> None:
        """Create a PodGroup of Kubernetes; its pods name it by `schedulingGroup`."""
        self.note("PodGroup", name, SPACE, api_version=api_version, spec=spec)

    def pod(self, name: str, cpu: int, *, owner: str = "", workload: str = "", group: str = "", **spec: Any) -> None:
        """Create a pod that waits."""
        by = [{"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": f"uid-of-{owner}", "controller": True}]
        named = {"kueue.x-k8s.io/workload": workload, "scheduling.k8s.io/group-name": group}
        marks = {"annotations": {key: value for key, value in named.items() if value}}
        meta = self._meta(name, **({"ownerReferences": by} if owner else {}), **marks)
        box = {"name": "work", "resources": {"requests": {"cpu": str(cpu)}}}
        whole = {"metadata": meta, "spec": {"containers": [box], "schedulerName": "default-scheduler", **spec}}
        self._seen(msgspec.convert({**whole, "status": {"phase": "Pending"}}, objects.Pod))

    def _seen(self, pod: objects.Pod) -> None:
        self._written += 1
        meta = msgspec.structs.replace(pod.metadata, resource_version=str(self._written))
        self._pods[meta.name] = found = objects.Pod(meta, pod.spec, pod.status)
        self._writer.write(ObjectSeen("Pod", found))

    def bind(self, name: str, node: str = "n1") -> None:
        pod = self._pods[name]
        status = objects.PodStatus("Running", start_time=timestamp(self.now))
        self._seen(objects.Pod(pod.metadata, msgspec.structs.replace(pod.spec, node_name=node), status))
        self.pass_time(1.0)

    def nominate(self, name: str, node: str = "n1") -> None:
        pod = self._pods[name]
        self._seen(objects.Pod(pod.metadata, pod.spec, msgspec.structs.replace(pod.status, nominated_node_name=node)))

    def refuse(self, name: str, message: str) -> None:
        """Publish why a pod waits."""
        pod, why = self._pods[name], objects.Condition("PodScheduled", "False", "Unschedulable", message)
        self._seen(objects.Pod(pod.metadata, pod.spec, msgspec.structs.replace(pod.status, conditions=[why])))

    def uid(self, name: str) -> str:
        return self._pods[name].metadata.uid

    def event(self, victim: str, annotations: dict[str, str] | None = None, **parts: Any) -> None:
        """Write an event about a pod, as anyone may who may create events in its namespace."""
        about = {"kind": "Pod", "namespace": SPACE, "name": victim, "uid": self.uid(victim)}
        event = {"apiVersion": "v1", "kind": "Event", "involvedObject": about, "reason": "Preempted", **parts}
        meta = self._meta(f"{victim}.{self._written}", annotations=annotations or {})
        self._writer.write(Noted({"metadata": meta, **event}))

    def runs(self, name: str, cpu: int, node: str = "n1", **more: Any) -> None:
        self.pod(name, cpu, **more)
        self.pass_time(1.0)
        self.bind(name, node)

    def evict(self, name: str, message: str, kind: str = "DisruptionTarget") -> None:
        """Mark a pod as a victim, and delete it."""
        pod = self._pods.pop(name)
        mark = objects.Condition(kind, "True", "PreemptionByScheduler", message)
        meta = msgspec.structs.replace(pod.metadata, deletion_timestamp=timestamp(self.now))
        status = objects.PodStatus("Running", conditions=[mark])
        self._seen(objects.Pod(meta, pod.spec, status))
        self.pass_time(1.0)
        self.delete(name)

    def delete(self, name: str) -> None:
        """End a pod at once."""
        self._writer.write(ObjectGone("Pod", f"{SPACE}/{name}", self._pods.pop(name).metadata.uid))

    # ---------------------------------------------------------------------------------------------------------- Kueue

    def note(
        self, kind: str, name: str, space: str = "", uid: str = "", api_version: str = KUEUE, **parts: Any
    ) -> None:
        meta = {key: value for key, value in self._meta(name, space, uid).items() if value}
        meta |= parts.pop("meta", {})
        self._writer.write(Noted({"apiVersion": api_version, "kind": kind, "metadata": meta, **parts}))

    def cluster_queue(self, name: str, cpu: int, cohort: str = "all", **preemption: str) -> None:
        """Create a ClusterQueue, and its LocalQueue."""
        flavors = [{"name": "any", "resources": [{"name": "cpu", "nominalQuota": str(cpu)}]}]
        groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
        spec = {"cohortName": cohort, "namespaceSelector": {}, "preemption": preemption, "resourceGroups": groups}
        self.note("ClusterQueue", name, spec=spec)
        self.note("LocalQueue", name, SPACE, spec={"clusterQueue": name})

    def workload(self, job: str, queue: str, cpu: int, *, pods: int = 1, is_admitted: bool = False) -> None:
        """Write a version of the Workload of a Job."""
        template = {"spec": {"containers": [{"name": "work", "resources": {"requests": {"cpu": str(cpu)}}}]}}
        spec = {"queueName": queue, "podSets": [{"name": "main", "count": pods, "template": template}]}
        use = {"name": "main", "flavors": {"cpu": "any"}, "resourceUsage": {"cpu": str(cpu * pods)}, "count": pods}
        admission = {"clusterQueue": queue, "podSetAssignments": [use]}
        status = {"admission": admission, "conditions": [{"type": "Admitted", "status": "True"}]} if is_admitted else {}
        owners = [{"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"uid-of-{job}", "controller": True}]
        name, uid = f"job-{job}-1a2b3", uid_of_workload(job)
        self.note("Workload", name, SPACE, uid, spec=spec, status=status, meta={"ownerReferences": owners})

    def kueue_runs(self, job: str, queue: str, cpu: int, node: str = "n1") -> None:
        """Admit a Workload of one pod, which runs."""
        self.workload(job, queue, cpu, is_admitted=True)
        self.pod(f"{job}-x", cpu, owner=job, workload=f"job-{job}-1a2b3")
        self.pass_time(1.0)
        self.bind(f"{job}-x", node)

    def kueue_evicts(self, job: str, queue: str, cpu: int, preemptor: str) -> None:
        """Evict the pod of a Workload in Kueue's words."""
        why = f"Preempted to accommodate a workload (UID: {uid_of_workload(preemptor)}, JobUID: j) due to reclamation"
        self.evict(f"{job}-x", why, "TerminationTarget")
        self.workload(job, queue, cpu)
