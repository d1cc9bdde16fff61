"""Send the requests of live tests to an API server: plain objects, raw answers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import urllib3
import yaml

from schedspec.clusters.protocol import Cluster
from tests.support.fake_server import SAFETY_NET

Object = dict[str, Any]


class ApiError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


class Api:
    """One namespace of an embedded cluster."""

    def __init__(self, cluster: Cluster, namespace: str = "default") -> None:
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        user, server = config["users"][0]["user"], config["clusters"][0]["cluster"]
        self._pool = urllib3.connection_from_url(
            server["server"],
            maxsize=4,
            ca_certs=server["certificate-authority"],
            cert_file=user["client-certificate"],
            key_file=user["client-key"],
        )
        self.namespace = namespace

    def close(self) -> None:
        self._pool.close()

    def call(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> Any:
        """Send a request and return the decoded answer. Raises ApiError for any status above 299."""
        data = None if body is None else json.dumps(body)
        answer = self._pool.request(method, path, body=data, headers={"Content-Type": kind})
        if answer.status > 299:
            raise ApiError(answer.status, answer.data.decode())
        return json.loads(answer.data)

    @property
    def pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def create(self, path: str, body: Object) -> Object:
        made: Object = self.call("POST", path, body)
        return made

    def get(self, path: str) -> Object | None:
        try:
            seen: Object = self.call("GET", path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise
        return seen

    def patch(self, path: str, body: Object) -> None:
        self.call("PATCH", path, body, "application/merge-patch+json")

    def delete(self, path: str, grace: int | None = None) -> None:
        self.call("DELETE", path, None if grace is None else {"gracePeriodSeconds": grace})

    def bind(self, pod: str, node: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        self.create(f"{self.pods}/{pod}/binding", {"metadata": {"name": pod}, "target": target})


def within(value: Callable[[], Any], what: Callable[[Any], bool] = bool) -> Any:
    """Return the first value for which `what` holds, read every 10 ms. Fails with the last value."""
    end = time.monotonic() + SAFETY_NET
    while not what(seen := value()):
        assert time.monotonic() < end, f"not within {SAFETY_NET:g} s; last seen: {seen}"
        time.sleep(0.01)
    return seen


def node(name: str, **allocatable: str) -> Object:
    status = {"allocatable": allocatable, "capacity": allocatable}
    return {"metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}}, "status": status}


def pod(name: str, on: str = "", restart: str = "Never", **annotations: str) -> Object:
    spec: Object = {"containers": [{"name": "main", "image": "none"}], "restartPolicy": restart}
    if on:
        spec["nodeName"] = on
    keys = {f"schedspec.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return {"metadata": {"name": name, "annotations": keys}, "spec": spec}


@contextmanager
def a_node(api: Api, name: str) -> Iterator[str]:
    """Create a Ready node that fits 400 pods; delete it with its pods at the end."""
    api.create("/api/v1/nodes", node(name, **{"cpu": "64", "memory": "256Gi", "pods": "400", "nvidia.com/gpu": "8"}))
    within(lambda: condition(api.get(f"/api/v1/nodes/{name}"), "Ready"), lambda seen: seen == "True")
    yield name
    for left in api.call("GET", f"{api.pods}?fieldSelector=spec.nodeName%3D{name}")["items"]:
        api.delete(f"{api.pods}/{left['metadata']['name']}", grace=0)
    api.delete(f"/api/v1/nodes/{name}")


def condition(thing: Object | None, kind: str) -> str | None:
    for each in ((thing or {}).get("status") or {}).get("conditions") or []:
        if each["type"] == kind:
            return str(each["status"])
    return None


def make_not_ready(api: Api, node_name: str, status: str = "False") -> None:
    """Write a fault of the node into its status, as a kubelet would; `Unknown` as the controller manager would."""
    broken = [{"type": "Ready", "status": status, "reason": "Broken"}]
    path = f"/api/v1/nodes/{node_name}/status"
    api.call("PATCH", path, {"status": {"conditions": broken}}, "application/strategic-merge-patch+json")


def heartbeat(api: Api, node_name: str) -> str:
    """Return the time of the node's last heartbeat, as the API server writes times."""
    conditions = api.call("GET", f"/api/v1/nodes/{node_name}")["status"]["conditions"]
    return max(str(each["lastHeartbeatTime"]) for each in conditions)


def phase(thing: Object | None) -> str | None:
    return None if thing is None else str(thing["status"].get("phase"))
