"""Start an embedded cluster that others own: with their nodes, queues and work, an audit log, and a user for a run.

The user has only the rights of schedspec/scenario/rights.yaml. All writes of this user are writes of a run.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from schedspec import distribution
from schedspec.api.client import APPLY, Api, Object
from schedspec.api.errors import RejectedError
from schedspec.clusters import Settings
from schedspec.clusters.embedded import EmbeddedCluster
from schedspec.clusters.kwok import Kwok
from schedspec.clusters.protocol import SCENARIO
from schedspec.clusters.registry import Registry
from schedspec.clusters.subprocess_run import programs_of
from schedspec.scenario.preflight import RIGHTS
from tests.support.cluster_api import within

USER = "system:serviceaccount:team:tester"
CONTEXT = "theirs"
SERVED_BY_THEM = "example.org/served"
"""Label of the nodes that the foreign KWOK plays."""
SPARE = "spare"
"""A node that no KWOK plays, like a real node: a run can adopt it."""

_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: None
"""
_VOLCANO = "scheduling.volcano.sh/v1beta1"
_POD = {"containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}]}
_ON_WORKER = {**_POD, "nodeName": "worker-1"}


def _of(api_version: str, kind: str, name: str, namespace: str = "", **fields: Any) -> Object:
    meta = {"name": name, **({"namespace": namespace} if namespace else {}), **fields.pop("meta", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **fields}


def _node(name: str, ready: bool, **labels: str) -> Object:
    amounts = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    condition = {"type": "Ready", "status": "True", "reason": "x", "message": "x"}
    return _of(
        "v1",
        "Node",
        name,
        meta={"labels": {"kubernetes.io/hostname": name, **labels}, "annotations": {"example.org/rack": "7"}},
        spec={"taints": [{"key": "example.org/soft", "effect": "PreferNoSchedule"}]},
        status={"allocatable": amounts, "capacity": amounts, "conditions": [condition] * ready},
    )


def _workload(labels: dict[str, str], spec: Object) -> Object:
    return {"metadata": {"labels": labels}, "spec": spec}


THEIRS: list[Object] = [
    _of("v1", "Namespace", "team"),
    _of("v1", "Namespace", "spec-like-ours", meta={"labels": {"team": "x"}}),
    _node("worker-1", False, **{SERVED_BY_THEM: "true"}),
    _node(SPARE, True),
    _of("scheduling.k8s.io/v1", "PriorityClass", "team-critical", value=7),
    _of(_VOLCANO, "Queue", "root", spec={"weight": 1, "reclaimable": False}),
    _of(_VOLCANO, "Queue", "default", spec={"weight": 3, "capability": {"cpu": "1"}}),
    _of(_VOLCANO, "Queue", "team-a", spec={"weight": 9, "guarantee": {"resource": {"cpu": "9"}}}),
    _of(_VOLCANO, "Queue", "team-a-child", spec={"parent": "team-a", "deserved": {"cpu": "90"}}),
    _of(
        "apps/v1",
        "Deployment",
        "web",
        "team",
        spec={
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": _workload({"app": "web"}, _ON_WORKER),
        },
    ),
    _of("v1", "Pod", "waits", "team", spec={**_POD, "schedulerName": "volcano"}),
    _of("v1", "Pod", "like-ours", "spec-like-ours", spec=_ON_WORKER),
    _of(_VOLCANO, "PodGroup", "waits", "team", spec={"minMember": 1, "queue": "team-a"}),
    _of(_VOLCANO, "PodGroup", "in-default", "spec-like-ours", spec={"minMember": 1}),
    _of(
        "batch.volcano.sh/v1alpha1",
        "Job",
        "train",
        "team",
        spec={
            "schedulerName": "volcano",
            "minAvailable": 1,
            "queue": "team-a",
            "tasks": [{"name": "t", "replicas": 1, "template": _workload({}, {**_POD, "restartPolicy": "Never"})}],
        },
    ),
    _of(
        "batch.volcano.sh/v1alpha1",
        "Job",
        "names-no-scheduler",
        "spec-like-ours",
        spec={
            "minAvailable": 1,
            "tasks": [{"name": "t", "replicas": 1, "template": _workload({}, {**_POD, "restartPolicy": "Never"})}],
        },
    ),
    _of(
        "bus.volcano.sh/v1alpha1",
        "Command",
        "close",
        "kube-system",
        action="CloseQueue",
        target={"apiVersion": _VOLCANO, "kind": "Queue", "name": "team-a", "uid": "u"},
    ),
    _of(
        "policy/v1",
        "PodDisruptionBudget",
        "web",
        "team",
        spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    ),
]


class ForeignCluster:
    """The cluster, reached as its administrator, and the kubeconfig of the run's user."""

    def __init__(self, cluster: EmbeddedCluster, folder: Path) -> None:
        self.api = Api(cluster.kubeconfig, cluster.context)
        self.kubeconfig = folder / "kubeconfig"
        self._log = cluster.audit_log
        self._settle(cluster)

    def _settle(self, cluster: EmbeddedCluster) -> None:
        for path in sorted((distribution.folder("scheduler") / "crds").glob("*.yaml")):
            for definition in yaml.safe_load_all(path.read_text()):
                if (
                    definition["kind"] == "CustomResourceDefinition"
                    and definition["spec"]["names"]["kind"] != "PyTorchJob"
                ):
                    self.api.apply(definition, "them")
                    where = f"/apis/{definition['spec']['group']}/{definition['spec']['versions'][0]['name']}"
                    within(lambda it=definition, at=where: self._lists(f"{at}/{it['spec']['names']['plural']}"))
        for obj in THEIRS:
            within(lambda it=obj: self._refusal(it), lambda refusal: not refusal)
        queue = {"state": "Open", "allocated": {"cpu": "8"}}
        for name in ("root", "default", "team-a", "team-a-child"):
            path = f"/apis/{_VOLCANO}/queues/{name}/status"
            body = _of(_VOLCANO, "Queue", name, status=queue)
            self.api.call(
                "PATCH", path, query={"fieldManager": "volcano", "force": "true"}, body=body, content_type=APPLY
            )
        self._make_user(cluster)
        within(lambda: len([pod for pod in self.pods("team") if pod["status"]["phase"] == "Running"]), lambda n: n == 2)

    def _lists(self, path: str) -> bool:
        return self.api.raw("GET", path).status == 200

    def _refusal(self, obj: Object) -> str:
        """Apply an object; return the refusal, until its kind is served and its namespace has a service account."""
        try:
            self.api.apply(copy.deepcopy(obj), "them")
        except RejectedError as problem:
            return str(problem)
        return ""

    def _make_user(self, cluster: EmbeddedCluster) -> None:
        rbac = "rbac.authorization.k8s.io"
        role = yaml.safe_load(RIGHTS.read_text())
        subject = {"kind": "ServiceAccount", "name": "tester", "namespace": "team"}
        ref = {"apiGroup": rbac, "kind": "ClusterRole", "name": role["metadata"]["name"]}
        self.api.apply(_of("v1", "ServiceAccount", "tester", "team"), "them")
        self.api.apply(role, "them")
        self.api.apply(_of(f"{rbac}/v1", "ClusterRoleBinding", "tester", roleRef=ref, subjects=[subject]), "them")
        token_request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 7200},
        }
        path = "/api/v1/namespaces/team/serviceaccounts/tester/token"
        token = self.api.call("POST", path, body=token_request)["status"]["token"]
        config = yaml.safe_load(cluster.kubeconfig.read_text())
        config["users"] = [{"name": "tester", "user": {"token": token}}]
        config["contexts"] = [
            {"name": CONTEXT, "context": {"cluster": config["clusters"][0]["name"], "user": "tester"}}
        ]
        config["current-context"] = CONTEXT
        self.kubeconfig.write_text(yaml.safe_dump(config))

    def pods(self, namespace: str) -> list[Object]:
        found: list[Object] = self.api.call("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        return found

    def everything(self) -> dict[str, Object]:
        """Return every object by resource, namespace and name, except events and leases, which change by themselves."""
        found: dict[str, Object] = {}
        groups = self.api.call("GET", "/apis")["groups"]
        for version in ["v1", *(group["preferredVersion"]["groupVersion"] for group in groups)]:
            base = f"/apis/{version}" if "/" in version else f"/api/{version}"
            for resource in self.api.call("GET", base)["resources"]:
                if (
                    "/" in resource["name"]
                    or "list" not in resource["verbs"]
                    or resource["name"] in ("events", "leases")
                ):
                    continue
                answer = self.api.raw("GET", f"{base}/{resource['name']}")
                for obj in answer.json()["items"] if answer.status == 200 else ():
                    meta = obj["metadata"]
                    found[f"{resource['name']} {meta.get('namespace', '')}/{meta['name']}"] = obj
        return found

    def audited(self) -> list[Object]:
        """Return all writes of the run's user so far, including refused writes."""
        events = [json.loads(line) for line in self._log.read_text().splitlines()]
        return [event for event in events if event["user"]["username"] == USER]


def name_of(event: Object) -> str:
    """Return the key of an audited write's object, as in `ForeignCluster.everything`."""
    ref = event["objectRef"]
    return f"{ref['resource']} {ref.get('namespace', '')}/{ref.get('name', '')}"


def content(obj: Object) -> Object:
    """Return the fields that only the owner may change: not the status, and not those that the API server maintains."""
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("managedFields", "resourceVersion")}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": meta}


def has_our_label(obj: Object) -> bool:
    return SCENARIO in (obj["metadata"].get("labels") or {})


class _TheirKwok(Kwok):
    """Plays all nodes with its label, whatever their annotations."""

    def _command(self, program: Path, config: Path, port: int) -> list[str]:
        return [part for part in super()._command(program, config, port) if "annotation-selector" not in part]


@contextmanager
def foreign_cluster(folder: Path) -> Iterator[ForeignCluster]:
    """Yield a foreign cluster that runs while the context lasts."""
    policy = folder / "audit.yaml"
    policy.write_text(_POLICY)
    cluster = EmbeddedCluster(Settings(kind="embedded"), audit_policy=policy)
    cluster.up(print)
    record = Registry().find(cluster.name)
    assert record is not None
    for process in programs_of(record.home):
        if "kwok" in process.name():
            process.kill()  # it plays all existing nodes
    kwok = _TheirKwok(cluster.kubeconfig, folder, progress=print, label=SERVED_BY_THEM)
    try:
        kwok.start()
        foreign = ForeignCluster(cluster, folder)
        yield foreign
        foreign.api.close()
    finally:
        kwok.stop()
        cluster.down()


def names(objects: Sequence[Object]) -> list[str]:
    return sorted(obj["metadata"]["name"] for obj in objects)
