"""An embedded cluster with a real scheduler, and a recorder beside it with the rights of deploy/record only."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from schedspec.api import crds
from schedspec.api.client import Api
from schedspec.api.errors import RejectedError
from schedspec.api.kinds import WORLD
from schedspec.clusters import Settings
from schedspec.clusters.embedded import EmbeddedCluster
from schedspec.schedulers import Adapter, Site, find

ROOT = Path(__file__).parents[4]
SPACE = "team"
ACCOUNT = "/api/v1/namespaces/schedspec-record/serviceaccounts/schedspec-record"
Object = dict[str, Any]
_MANAGER = "test"


def named(api: str, kind: str, name: str, space: str = "", **parts: Any) -> Object:
    meta = {"name": name, "namespace": space} if space else {"name": name}
    return {"apiVersion": api, "kind": kind, "metadata": meta | parts.pop("metadata", {}), **parts}


def eventually(holds: Callable[[], Any], what: str, seconds: float = 120.0) -> Any:
    """Return the first true answer; wait for it."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := holds():
            return found
        time.sleep(0.1)
    raise AssertionError(f"not within {seconds:g} s: {what}")


class Production:
    """The cluster, its scheduler, and the recorder's process."""

    def __init__(self, cluster: EmbeddedCluster, api: Api, folder: Path) -> None:
        self.cluster, self.api, self.folder = cluster, api, folder
        self.recording = folder / "recording"
        self._recorder: subprocess.Popen[str] | None = None
        self._numbers = 0

    def apply(self, *objects: Object) -> None:
        for obj in objects:
            self.api.apply(obj, _MANAGER)

    def apply_files(self, *files: Path) -> None:
        for file in files:
            self.apply(*yaml.safe_load_all(file.read_text("utf-8")))

    def node(self, name: str, cpu: int, **devices: str) -> None:
        """Create a node that the harness lets its schedulers use."""
        has = {"cpu": str(cpu), "memory": "64Gi", "pods": "110", **devices}
        labels = {WORLD: "true", "kubernetes.io/hostname": name}
        meta = {"annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": labels}
        self.apply(named("v1", "Node", name, metadata=meta, status={"capacity": has, "allocatable": has}))

    def pod(
        self,
        name: str,
        number: int,
        resource: str = "cpu",
        *,
        group: str = "",
        scheduler: str = "schedspec",
        **spec: Any,
    ) -> None:
        meta = {"annotations": {"scheduling.k8s.io/group-name": group} if group else {}}
        amounts = {resource: str(number)}
        container = {"name": "work", "image": "work", "resources": {"requests": amounts, "limits": amounts}}
        body = {"containers": [container], "schedulerName": scheduler, "terminationGracePeriodSeconds": 1, **spec}
        self.apply(named("v1", "Pod", name, SPACE, metadata=meta, spec=body))

    def group(self, name: str, queue: str, minimum: int = 1) -> None:
        spec = {"queue": queue, "minMember": minimum}
        self.apply(named("scheduling.volcano.sh/v1beta1", "PodGroup", name, SPACE, spec=spec))

    def find(self, path: str) -> Object | None:
        try:
            return self.api.call("GET", path)
        except RejectedError as problem:
            if problem.status == 404:
                return None
            raise

    def node_of(self, pod: str) -> str:
        found = self.find(f"/api/v1/namespaces/{SPACE}/pods/{pod}")
        return str((found or {"spec": {}})["spec"].get("nodeName", ""))

    def runs(self, *pods: str) -> None:
        eventually(lambda: all(map(self.node_of, pods)), f"{', '.join(pods)} have nodes")

    def bind(self, pod: str, node: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        path = f"/api/v1/namespaces/{SPACE}/pods/{pod}/binding"
        self.api.call("POST", path, body={"metadata": {"name": pod}, "target": target})

    def evict(self, pod: str, message: str, kind: str = "DisruptionTarget") -> None:
        """Mark a pod as a victim by a condition of this kind, delete it, and wait for its end."""
        path = f"/api/v1/namespaces/{SPACE}/pods/{pod}"
        mark = {"type": kind, "status": "True", "reason": "PreemptionByScheduler", "message": message}
        body = {"status": {"conditions": [mark]}}
        self.api.call("PATCH", f"{path}/status", body=body, content_type="application/strategic-merge-patch+json")
        self.api.delete(path, grace=1)
        eventually(lambda: self.find(path) is None, f"{pod} has ended")

    # ------------------------------------------------------------------------------------------------------- recorder

    def record(self, *options: str) -> None:
        """Start the recorder with the account of deploy/record, and return when it records."""
        self._numbers += 1
        log = self.folder / f"recorder-{self._numbers}.log"
        command = [sys.executable, "-m", "schedspec", "record", "--kubeconfig", str(self._kubeconfig())]
        with log.open("w") as file:
            self._recorder = subprocess.Popen(
                [*command, "--out", str(self.recording), *options], stdout=file, stderr=subprocess.STDOUT, text=True
            )
        eventually(lambda: self._begun(log), f"the recorder records: {log}")

    def _begun(self, log: Path) -> str:
        assert self._recorder is not None
        assert self._recorder.poll() is None, log.read_text()
        found = log.read_text()
        return found if "\nrecording " in f"\n{found}" else ""

    @property
    def said(self) -> str:
        """What the recorder has printed."""
        return (self.folder / f"recorder-{self._numbers}.log").read_text()

    def kill(self) -> None:
        assert self._recorder is not None
        self._recorder.kill()
        self._recorder.wait()
        self._recorder = None

    def stop(self) -> None:
        """End the recorder as a node that shuts down does."""
        if self._recorder is not None:
            self._recorder.send_signal(signal.SIGTERM)
            assert self._recorder.wait(30) == 0, self.said
            self._recorder = None

    def _kubeconfig(self) -> Path:
        """Return a kubeconfig with a token of the recorder's account."""
        path = self.folder / "recorder.yaml"
        if not path.exists():
            answer = self.api.call("POST", f"{ACCOUNT}/token", body={"spec": {"expirationSeconds": 7200}})
            found = yaml.safe_load(self.cluster.kubeconfig.read_text())
            found["users"] = [{"name": "recorder", "user": {"token": answer["status"]["token"]}}]
            context = {"cluster": found["clusters"][0]["name"], "user": "recorder"}
            found["contexts"] = [{"name": "recorder", "context": context}]
            found["current-context"] = "recorder"
            path.touch(mode=0o600)
            path.write_text(json.dumps(found))
        return path


def subject_of(kubeconfig: Path) -> str:
    """Return the name in a kubeconfig's token."""
    token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    part = token.split(".")[1]
    return str(json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))["sub"])


@contextmanager
def production(folder: Path, name: str, policy: str) -> Iterator[Production]:
    """Start a cluster, the scheduler of an adapter by a policy, and grant the rights of deploy/record."""
    adapter: Adapter = find(name)
    cluster = EmbeddedCluster(Settings(kind="embedded", gang_api=name == "kube-scheduler"))
    cluster.up(lambda _: None)
    api, scheduler = Api(cluster.kubeconfig, cluster.context), None
    made = Production(cluster, api, folder)
    try:
        site = Site(folder, api, cluster.kubeconfig, cluster.context, cluster, None, None, 3.0, lambda _: None)
        definitions = adapter.definitions(site)
        if definitions is not None:
            crds.install(api, definitions)
        made.apply(named("v1", "Namespace", SPACE))
        record = ROOT / "deploy" / "record"
        account, *_ = yaml.safe_load_all((record / "recorder.yaml").read_text())
        made.apply_files(record / "namespace.yaml", record / "rbac.yaml")
        made.apply(account)
        for file in sorted((record / "policy").glob("*.yaml")):
            role, _ = yaml.safe_load_all(file.read_text())
            made.apply(named("v1", "Namespace", role["metadata"]["namespace"]))
            made.apply_files(file)
        scheduler = adapter.scheduler(site)
        assert scheduler is not None
        scheduler.start(policy)
        yield made
    finally:
        if made._recorder is not None:
            made.kill()
        if scheduler is not None:
            scheduler.stop()
        api.close()
        cluster.down()
