"""An in-memory cluster for the controllers' pure parts: it keeps objects in a dictionary and carries out writes.

The cluster schedules nothing: a test decides when a PodGroup is admitted, and when a pod runs, fails, is evicted or is
deleted.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from schedspec.scheduler.controllers.job import reconcile as job
from schedspec.scheduler.controllers.job.state import ObservedJob as JobSeen
from schedspec.scheduler.controllers.queue.state import queue_for
from schedspec.scheduler.controllers.runtime.objects import COMMANDS, JOBS
from schedspec.scheduler.controllers.runtime.pod_batches import NO_LIMITS
from schedspec.scheduler.controllers.runtime.writes import (
    ApplyObject,
    Create,
    EmitEvent,
    ReconcileResult,
    Remove,
    Write,
)
from schedspec.scheduler.kube.resource import PODGROUPS, PODS, PRIORITY_CLASSES, Resource
from schedspec.scheduler.model.objects import Namespace
from schedspec.scheduler.model.times import timestamp

Body = dict[str, Any]
START = 1_800_000_000.0


class FakeCluster:
    """`settle` runs a controller until it writes nothing more; only tests advance `now`."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Body] = {}
        self.events: list[EmitEvent] = []
        self.created: list[str] = []
        """The names of pods, in the order of their creation."""
        self.now = START
        self.again: float | None = None
        self.namespace: Namespace | None = None
        """The namespace's object, if the test needs it."""
        self.queue_problem = ""
        self.limits = NO_LIMITS
        self._numbers = itertools.count(1)

    # -------------------------------------------------------------------------------------------------------- objects

    def put(self, resource: Resource[Any], body: Body) -> Body:
        """Create an object as a user does."""
        meta = body.setdefault("metadata", {})
        meta.setdefault("namespace", "ns")
        meta["uid"] = f"uid-{next(self._numbers)}"
        meta.setdefault("generation", 1)
        meta.setdefault("creationTimestamp", timestamp(self.now))
        self._stamp(body)
        self.objects[resource.id, meta["name"]] = body
        if resource is PODS:
            self.created.append(meta["name"])
            body["status"] = {"phase": "Pending"}
        return body

    def _stamp(self, body: Body) -> None:
        body["metadata"]["resourceVersion"] = str(next(self._numbers))

    def get(self, resource: Resource[Any], name: str) -> Body | None:
        return self.objects.get((resource.id, name))

    def get_uid(self, pod: str) -> str:
        """Return the uid of a live pod; empty if there is none."""
        meta = (self.get(PODS, pod) or {"metadata": {"deletionTimestamp": ""}})["metadata"]
        return "" if "deletionTimestamp" in meta else str(meta["uid"])

    def all(self, resource: Resource[Any]) -> list[Any]:
        """Return all objects of a kind as the controllers read them."""
        found = [body for (kind, _), body in sorted(self.objects.items()) if kind == resource.id]
        return [msgspec.convert(body, resource.struct) for body in found]

    @property
    def group(self) -> Any:
        return next(iter(self.all(PODGROUPS)), None)

    def pods(self, phase: str = "") -> list[str]:
        """Return the names of live pods (in a phase)."""
        return [
            pod.metadata.name
            for pod in self.all(PODS)
            if pod.metadata.deletion_timestamp is None and phase in ("", pod.status.phase)
        ]

    # ----------------------------------------------------------------------------------------- scheduler and kubelets

    def admit(self, phase: str = "Inqueue") -> None:
        """Set the phase of the PodGroup, as the scheduler does."""
        for (kind, _), body in self.objects.items():
            if kind == PODGROUPS.id:
                body.setdefault("status", {})["phase"] = phase

    def set_phase(self, phase: str, pods: Iterable[str] | None = None, exit_code: int | None = None) -> None:
        """Set the phase of pods, by default of all live ones."""
        for name in list(pods) if pods is not None else self.pods():
            status = self.objects[PODS.id, name]["status"]
            status["phase"] = phase
            if exit_code is not None:
                status["containerStatuses"] = [{"name": "x", "state": {"terminated": {"exitCode": exit_code}}}]

    def evict(self, *names: str) -> None:
        """Delete pods gracefully; `remove_terminating` removes them."""
        for name in names:
            self.objects[PODS.id, name]["metadata"]["deletionTimestamp"] = timestamp(self.now)

    def remove_terminating(self) -> None:
        """Remove the pods that terminate."""
        for key, body in list(self.objects.items()):
            if key[0] == PODS.id and "deletionTimestamp" in body["metadata"]:
                del self.objects[key]

    def change_spec(self, resource: Resource[Any], name: str, change: Callable[[Body], None]) -> None:
        """Change a spec as a user does."""
        body = self.objects[resource.id, name]
        change(body["spec"])
        body["metadata"]["generation"] += 1
        self._stamp(body)

    # -------------------------------------------------------------------------------------------------- carrying out

    def carry_out(self, writes: Iterable[Write]) -> None:
        for write in writes:
            match write:
                case Create():
                    body = msgspec.json.decode(msgspec.json.encode(write.body))
                    existing = self.get(write.resource, write.name)
                    if existing is None:
                        self.put(write.resource, body)
                    elif write.update:
                        _merge(existing, body)
                case ApplyObject():
                    self._change(write)
                case Remove():
                    self._remove(write)
                case EmitEvent():
                    self.events.append(write)

    def _change(self, write: ApplyObject) -> None:
        body = self.objects.get((write.resource.id, write.name))
        if body is None:
            if write.manager:
                given = msgspec.json.decode(msgspec.json.encode(write.body))
                self.put(write.resource, {**given, "metadata": {**given.get("metadata", {}), "name": write.name}})
            return
        assert not write.version or write.version == body["metadata"]["resourceVersion"], (
            "the write is based on an outdated version"
        )
        change = msgspec.json.decode(msgspec.json.encode(write.body))
        if write.sub == "status":
            body["status"] = change["status"]
        else:
            _merge(body, change)
        self._stamp(body)

    def _remove(self, write: Remove) -> None:
        body = self.objects.get((write.resource.id, write.name))
        if body is None or body["metadata"]["uid"] != write.uid:
            return
        if write.resource is PODS:
            self.evict(write.name)
        else:
            del self.objects[write.resource.id, write.name]

    def reconcile_once(self, decide: Callable[[], ReconcileResult], most: int | None = None) -> int:
        """Reconcile once and carry out at most `most` of the writes; return how many writes were wanted."""
        outcome = decide()
        self.again = outcome.again
        self.carry_out(list(outcome.writes)[:most])
        return len(outcome.writes)

    def settle(self, decide: Callable[[], ReconcileResult]) -> None:
        for _ in range(20):
            if not self.reconcile_once(decide):
                return
        raise AssertionError("the controller never settles: it still writes after 20 turns")


def _merge(into: Body, change: Body) -> None:
    for key, value in change.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


class FakeJobCluster(FakeCluster):
    """An in-memory cluster with one Job, called `j`."""

    def __init__(self, spec: Body, **metadata: Any) -> None:
        super().__init__()
        for task in spec["tasks"]:
            task.setdefault("template", template())
        self.put(JOBS, {"metadata": {"name": "j", **metadata}, "spec": {"queue": "default", **spec}})

    @property
    def job(self) -> Any:
        return next(iter(self.all(JOBS)), None)

    @property
    def phase(self) -> str:
        phase: str = self.job.status.state.phase
        return phase

    @property
    def phases(self) -> list[str]:
        """Return all phases of the Job so far."""
        return [condition.status for condition in self.job.status.conditions or ()]

    def decide(self) -> ReconcileResult:
        if self.job is None:
            return ReconcileResult()
        return job.reconcile(
            JobSeen(
                self.job,
                self.all(PODS),
                self.group,
                {found.metadata.name: found for found in self.all(PRIORITY_CLASSES)},
                self.all(COMMANDS),
                queue=queue_for(self.job.spec.queue, self.group, self.namespace),
                limits=self.limits,
                queue_problem=self.queue_problem,
                scheduler_name="schedspec",
                now=self.now,
            )
        )

    def work(self) -> FakeJobCluster:
        self.settle(self.decide)
        return self

    def run(self) -> FakeJobCluster:
        """Bring the job and all of its pods to Running."""
        self.work()
        self.admit()
        self.work()
        self.set_phase("Running")
        self.admit("Running")
        return self.work()

    def command(self, action: str) -> FakeJobCluster:
        body = {"action": action, "target": {"kind": "Job", "name": "j", "uid": self.job.metadata.uid}}
        self.put(COMMANDS, {"metadata": {"name": f"c{next(self._numbers)}"}, **body})
        return self.work()


def template(container: str = "x", cpu: str = "1", **spec: Any) -> Body:
    """Return a pod template of one container that requests cpu and 1Gi of memory."""
    requests = {"cpu": cpu, "memory": "1Gi"}
    return {"spec": {"containers": [{"name": container, "image": "i", "resources": {"requests": requests}}], **spec}}


def task(name: str = "a", replicas: int = 2, **more: Any) -> Body:
    return {"name": name, "replicas": replicas, "template": template(), **more}
