"""Run the controllers on a live cluster, with a namespace in which a test acts as user, scheduler and kubelet."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from schedspec.api.client import MERGE, Api
from schedspec.api.errors import RejectedError
from schedspec.clusters.embedded import EmbeddedCluster
from schedspec.scheduler.controllers import KNOWN, run_controllers
from schedspec.scheduler.kube import Client, EventRecorder, Http, connect
from tests.support.fake_server import SAFETY_NET

SCHEDULER = "by-hand"
PLACES = {
    "Pod": ("v1", "pods"),
    "Service": ("v1", "services"),
    "ConfigMap": ("v1", "configmaps"),
    "Event": ("v1", "events"),
    "ResourceQuota": ("v1", "resourcequotas"),
    "Deployment": ("apps/v1", "deployments"),
    "NetworkPolicy": ("networking.k8s.io/v1", "networkpolicies"),
    "PodGroup": ("scheduling.volcano.sh/v1beta1", "podgroups"),
    "Gang": ("scheduling.k8s.io/v1alpha2", "podgroups"),
    "Queue": ("scheduling.volcano.sh/v1beta1", "queues"),
    "Job": ("batch.volcano.sh/v1alpha1", "jobs"),
    "Command": ("bus.volcano.sh/v1alpha1", "commands"),
    "PyTorchJob": ("kubeflow.org/v1", "pytorchjobs"),
}
_numbers = count(1)
Body = dict[str, Any]


class Controllers:
    """All controllers in a separate thread, which a test can stop and start."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        begun = threading.Event()

        async def main() -> None:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
            begun.set()
            http = Http(connect(self.cluster.kubeconfig, self.cluster.context))
            client = Client(http)
            recorder = EventRecorder(client, "controllers")
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(recorder.run())
                    await run_controllers(
                        client, recorder, KNOWN, scheduler_names=[SCHEDULER], queue_command_namespace="kube-system"
                    )
            except asyncio.CancelledError:
                pass
            finally:
                await http.close()

        self._thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
        self._thread.start()
        begun.wait(10)

    def stop(self) -> None:
        if self._loop is not None and self._task is not None:
            self._loop.call_soon_threadsafe(self._task.cancel)
        if self._thread is not None:
            self._thread.join(10)
        self._thread = self._loop = self._task = None


class LiveControllers:
    """One namespace, in which a test acts as user, scheduler and kubelet."""

    def __init__(self, api: Api, controllers: Controllers) -> None:
        self.api, self.controllers = api, controllers
        self.namespace = f"place-{next(_numbers)}"
        api.call("POST", "/api/v1/namespaces", body={"metadata": {"name": self.namespace}})

    def path(self, kind: str, name: str = "", sub: str = "") -> str:
        version, plural = PLACES[kind]
        head = f"/apis/{version}" if "/" in version else f"/api/{version}"
        place = "" if kind == "Queue" else f"/namespaces/{self.namespace}"
        return "/".join(part for part in (f"{head}{place}/{plural}", name, sub) if part)

    def create(self, kind: str, name: str, spec: Body | None = None, **more: Any) -> Body:
        body = {"apiVersion": PLACES[kind][0], "kind": kind, "metadata": {"name": name, **more.pop("metadata", {})}}
        return self.api.call("POST", self.path(kind), body={**body, **({"spec": spec} if spec else {}), **more})

    def get(self, kind: str, name: str) -> Body | None:
        try:
            return self.api.call("GET", self.path(kind, name))
        except RejectedError as problem:
            if problem.status == 404:
                return None
            raise

    def all(self, kind: str) -> list[Body]:
        items: list[Body] = self.api.call("GET", self.path(kind))["items"]
        return items

    def patch(self, kind: str, name: str, change: Body, sub: str = "") -> Body:
        return self.api.call("PATCH", self.path(kind, name, sub), body=change, content_type=MERGE)

    def delete(self, kind: str, name: str, grace: int | None = None) -> None:
        self.api.delete(self.path(kind, name), grace=grace)

    # ---------------------------------------------------------------------------------------------------- scheduler

    def admit(self, phase: str = "Inqueue") -> None:
        """Set the phase of every PodGroup, once one exists."""
        until(lambda: self.all("PodGroup"), "a PodGroup")
        for group in self.all("PodGroup"):
            self.patch("PodGroup", group["metadata"]["name"], {"status": {"phase": phase}}, "status")

    def bind(self, number: int) -> None:
        """Wait for this number of pods, bind them, and wait until they run."""
        until(lambda: len(self.pods()) >= number, f"{number} pods")
        for pod in self.all("Pod"):
            if not pod["spec"].get("nodeName"):
                target = {"kind": "Node", "name": "by-hand"}
                body = {"apiVersion": "v1", "kind": "Binding", "metadata": pod["metadata"], "target": target}
                body["metadata"] = {"name": pod["metadata"]["name"]}
                self.api.call("POST", self.path("Pod", pod["metadata"]["name"], "binding"), body=body)
        until(lambda: self.pods("Running") == self.pods(), "every pod to run")

    def run(self, number: int) -> None:
        """Admit and bind, and wait until the pods run."""
        self.admit()
        self.bind(number)

    # ------------------------------------------------------------------------------------------------------ queries

    def pods(self, phase: str = "") -> dict[str, str]:
        """Return live pods (in a phase): name → uid."""
        return {
            pod["metadata"]["name"]: pod["metadata"]["uid"]
            for pod in self.all("Pod")
            if "deletionTimestamp" not in pod["metadata"] and phase in ("", pod["status"].get("phase"))
        }

    def finish(self, *names: str, exit_code: int = 0) -> None:
        """Let pods end by themselves, with this exit code."""
        for name in names:
            marks = {"schedspec.dev/exit-code": str(exit_code), "schedspec.dev/run-for": "0s"}
            self.patch("Pod", name, {"metadata": {"annotations": marks}})

    def phase(self, job: str) -> str:
        found = self.get("Job", job) or {}
        phase: str = found.get("status", {}).get("state", {}).get("phase", "")
        return phase

    def phases(self, job: str) -> list[str]:
        found = self.get("Job", job) or {}
        return [condition["status"] for condition in found.get("status", {}).get("conditions", ())]

    def state(self, job: str) -> str:
        """Return the state of a PyTorchJob, as `kubectl get` shows it."""
        found = self.get("PyTorchJob", job) or {}
        conditions = found.get("status", {}).get("conditions") or [{"type": ""}]
        state: str = conditions[-1]["type"]
        return state

    def events(self, reason: str) -> list[str]:
        return [event["message"] for event in self.all("Event") if event["reason"] == reason]


def until(check: Callable[[], Any], what: str) -> Any:
    """Return the first true value of a check that is made every 20 ms. Fails with the name of the check."""
    deadline = time.monotonic() + SAFETY_NET
    while True:
        if found := check():
            return found
        assert time.monotonic() < deadline, f"{what}: not within {SAFETY_NET:g} s"
        time.sleep(0.02)


def container(name: str = "x") -> dict[str, Any]:
    return {"name": name, "image": "i", "resources": {"requests": {"cpu": "1"}}}


def template(name: str = "x") -> dict[str, Any]:
    return {"spec": {"containers": [container(name)], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}}


def task(replicas: int = 3, name: str = "a", **more: Any) -> dict[str, Any]:
    return {"name": name, "replicas": replicas, "template": template(), **more}


def send_command(place: LiveControllers, action: str, kind: str, name: str) -> None:
    target = {"apiVersion": "x/y", "kind": kind, "name": name, "uid": ""}
    body = {"apiVersion": PLACES["Command"][0], "kind": "Command", "action": action, "target": target}
    space = "kube-system" if kind == "Queue" else place.namespace
    path = place.path("Command").replace(f"/{place.namespace}/", f"/{space}/")
    place.api.call("POST", path, body={**body, "metadata": {"name": f"{action.lower()}-{name}"}})


def renewed(place: LiveControllers, before: dict[str, str], name: str = "j-a-2") -> dict[str, str] | None:
    now = place.pods()
    return now if name in now and now[name] != before[name] else None
