"""A cluster in virtual time: its API, its kubelets and owners, and the live scheduler on it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from schedspec.scheduler.kube.errors import Gone
from schedspec.virtual.cluster import VirtualCluster, store
from schedspec.virtual.cluster.server import ApiServer
from schedspec.virtual.cluster.virtual_cluster import VirtualHttp

NODE = "/api/v1/nodes"
PODS = "/api/v1/namespaces/spec/pods"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/spec/jobs"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/spec/podgroups"
DEPLOYMENTS = "/apis/apps/v1/namespaces/spec/deployments"
BATCH = "/apis/batch/v1/namespaces/spec/jobs"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"


class Api:
    """The API of a virtual cluster, and every version of every object that a watch has shown."""

    def __init__(self) -> None:
        self.cluster = VirtualCluster()
        self.seen: list[tuple[str, str, str, Any]] = []
        self.cluster.watch(lambda kind, change, item: self.seen.append((kind, change, item["metadata"]["name"], item)))
        self.cluster.advance(1)
        self.send("POST", "/api/v1/namespaces", {"metadata": {"name": "spec"}})

    def send(self, method: str, path: str, body: Any = None, content_type: str = "") -> tuple[int, Any]:
        data = b"" if body is None else json.dumps(body).encode()
        status, answer = self.cluster.request(method, path, data, content_type)
        return status, json.loads(answer)

    def node(self, cpus: int, name: str = "n") -> None:
        has = {"cpu": str(cpus), "memory": "64Gi", "pods": "110"}
        self.send("POST", NODE, {"metadata": {"name": name}, "status": {"allocatable": has, "capacity": has}})
        self.cluster.advance(0.1)

    def names(self, path: str, phase: str = "") -> list[str]:
        items = self.send("GET", path)[1]["items"]
        return [it["metadata"]["name"] for it in items if phase in ("", it.get("status", {}).get("phase"))]

    def phases(self, name: str) -> list[str]:
        """Return the phases of a Volcano Job so far."""
        found: list[str] = []
        for kind, _, own, item in self.seen:
            phase = (item.get("status") or {}).get("state", {})
            if kind.startswith("batch.volcano") and own == name and isinstance(phase, dict) and phase.get("phase"):
                found += [] if found[-1:] == [phase["phase"]] else [phase["phase"]]
        return found


@pytest.fixture
def api() -> Iterator[Api]:
    api = Api()
    yield api
    api.cluster.close()


def pod_spec(**annotations: str) -> dict[str, Any]:
    keys = {f"schedspec.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
    container = {"name": "x", "image": "i", "resources": {"limits": {"cpu": "1"}}}
    spec = {"schedulerName": "schedspec", "restartPolicy": "Never", "containers": [container]}
    return {"metadata": {"annotations": keys}, "spec": spec}


def job(name: str, replicas: int = 2, policies: Any = (), **annotations: str) -> dict[str, Any]:
    tasks = [{"name": "t", "replicas": replicas, "template": pod_spec(**annotations)}]
    spec = {"schedulerName": "schedspec", "queue": "default", "minAvailable": replicas, "tasks": tasks, "maxRetry": 3}
    return {"metadata": {"name": name}, "spec": {**spec, "policies": list(policies)}}


def test_a_job_is_admitted_bound_run_and_completed(api: Api) -> None:
    api.node(4)
    api.send("POST", JOBS, job("a", run_for="1h"))
    api.cluster.advance(60)
    assert api.names(PODS, "Running") == ["a-t-0", "a-t-1"]
    api.cluster.advance(3600)
    assert api.phases("a") == ["Pending", "Running", "Completed"]


def test_the_server_forgets_what_was_applied_to_a_deleted_object() -> None:
    objects = store.Store(lambda: 0.0)
    server = ApiServer(objects, lambda _seconds, _action: None)
    server.create(store.NAMESPACES, "", {"metadata": {"name": "spec"}})
    body = json.dumps({"metadata": {"name": "a"}, "spec": {"minMember": 3}}).encode()
    for query in ("fieldManager=one", "fieldManager=two&force=true"):
        status, answer = server.request("PATCH", f"{GROUPS}/a?{query}", body, APPLY)
        assert status < 300, answer
    uid = json.loads(answer)["metadata"]["uid"]
    assert uid in str(vars(server))
    assert server.request("DELETE", f"{GROUPS}/a")[0] == 200
    assert uid not in str(vars(server))


def test_an_idle_day_takes_less_than_30_seconds(api: Api) -> None:
    began = time.process_time()
    api.cluster.advance(86_400)
    assert api.cluster.now() == pytest.approx(86_401)
    assert time.process_time() - began < 30


def test_the_podgroup_of_a_job_that_does_not_fit_has_the_reason(api: Api) -> None:
    api.node(1)
    api.send("POST", JOBS, job("a"))
    api.cluster.advance(5)
    (group,) = api.send("GET", GROUPS)[1]["items"]
    (condition,) = [it for it in group["status"]["conditions"] if it["type"] == "Unschedulable"]
    assert "cpu" in condition["message"]


def test_a_deleted_pod_stops_and_its_job_follows_its_policy(api: Api) -> None:
    api.node(4)
    api.send("POST", JOBS, job("a", policies=[{"event": "PodEvicted", "action": "RestartJob"}]))
    api.cluster.advance(5)
    api.send("DELETE", f"{PODS}/a-t-0")
    api.cluster.advance(30)
    assert api.phases("a") == ["Pending", "Running", "Restarting", "Pending", "Running"]


def test_annotations_delay_the_start_and_the_end_of_a_pod(api: Api) -> None:
    api.node(4)
    body = pod_spec(start_after="10s", stop_after="5s")
    body["metadata"]["name"] = "p"
    api.send("POST", PODS, body)
    api.cluster.advance(9)
    assert api.names(PODS, "Pending") == ["p"]
    api.cluster.advance(3)
    assert api.names(PODS, "Running") == ["p"]
    api.send("DELETE", f"{PODS}/p")
    api.cluster.advance(4)
    assert api.names(PODS) == ["p"]
    api.cluster.advance(3)
    assert api.names(PODS) == []


def test_a_pod_ends_with_the_exit_code_of_its_annotation(api: Api) -> None:
    api.node(4)
    body = pod_spec()
    body["metadata"]["name"] = "p"
    api.send("POST", PODS, body)
    api.cluster.advance(5)
    finish = {"schedspec.dev/run-for": "0s", "schedspec.dev/exit-code": "3"}
    api.send("PATCH", f"{PODS}/p", {"metadata": {"annotations": finish}}, MERGE)
    api.cluster.advance(1)
    assert api.names(PODS, "Failed") == ["p"]


def test_a_deployment_replaces_a_deleted_pod(api: Api) -> None:
    api.node(4)
    template = pod_spec()
    template["metadata"]["labels"] = {"app": "web"}
    template["spec"]["restartPolicy"] = "Always"
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    api.send("POST", DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
    api.cluster.advance(5)
    first = api.names(PODS, "Running")
    api.send("DELETE", f"{PODS}/{first[0]}")
    api.cluster.advance(5)
    second = api.names(PODS, "Running")
    assert (len(first), len(second)) == (2, 2)
    assert set(first) != set(second)
    api.send("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": 1}}, MERGE)
    api.cluster.advance(5)
    assert len(api.names(PODS)) == 1
    api.send("DELETE", f"{DEPLOYMENTS}/web")
    api.cluster.advance(40)
    assert api.names(PODS) == []


ROLLOUTS: dict[str, tuple[dict[str, Any], int, int]] = {
    "a quarter more, and a quarter fewer, by default": ({}, 5, 3),
    "one more at a time": ({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}, 5, 4),
    "one fewer at a time": ({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}, 4, 3),
    "one fewer although both are 0": ({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}, 4, 3),
    "all new ones first": ({"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}}, 8, 4),
    "half of them fewer": ({"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "50%"}}, 4, 2),
    "none before all others are gone": ({"type": "Recreate"}, 4, 0),
}
"""Strategy of a Deployment → the most pods, and the fewest ready ones, while its 4 pods are replaced."""


@pytest.mark.parametrize(("strategy", "most", "fewest"), ROLLOUTS.values(), ids=ROLLOUTS)
def test_a_deployment_replaces_its_pods_by_its_strategy(
    api: Api, strategy: dict[str, Any], most: int, fewest: int
) -> None:
    api.node(8)
    spec = {"replicas": 4, "selector": {"matchLabels": {"app": "web"}}, "template": pod_spec(), "strategy": strategy}
    spec["template"]["metadata"]["labels"] = {"app": "web"}
    api.send("POST", DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
    api.cluster.advance(30)
    newer = {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}}
    api.send("PATCH", f"{DEPLOYMENTS}/web", newer, MERGE)
    numbers = set()
    for _ in range(1200):
        api.cluster.advance(0.05)
        live = [it for it in api.send("GET", PODS)[1]["items"] if "deletionTimestamp" not in it["metadata"]]
        numbers.add((len(live), sum(it["status"]["phase"] == "Running" for it in live)))
    assert (max(pods for pods, _ in numbers), min(ready for _, ready in numbers)) == (most, fewest)
    assert [it["metadata"]["labels"].get("version") for it in live] == ["2"] * 4


STATEFUL_SETS = "/apis/apps/v1/namespaces/spec/statefulsets"
MEMBERS = ["db-0", "db-1", "db-2"]
UPDATES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "from the last pod to the first": ({}, ["db-2", "db-1", "db-0"]),
    "down to a partition": ({"rollingUpdate": {"partition": 2}}, ["db-2"]),
    "on deletion only": ({"type": "OnDelete"}, []),
}


@pytest.mark.parametrize("management", ["OrderedReady", "Parallel"])
@pytest.mark.parametrize(("strategy", "replaced"), UPDATES.values(), ids=UPDATES)
def test_a_stateful_set_updates_one_pod_at_a_time(
    api: Api, strategy: dict[str, Any], replaced: list[str], management: str
) -> None:
    api.node(8)
    own = {"serviceName": "db", "podManagementPolicy": management, "updateStrategy": strategy}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "db"}}, "template": pod_spec(), **own}
    spec["template"]["metadata"]["labels"] = {"app": "db"}
    api.send("POST", STATEFUL_SETS, {"metadata": {"name": "db"}, "spec": spec})
    api.cluster.advance(30)
    assert api.names(PODS, "Running") == MEMBERS
    since = len(api.seen)
    newer = {"spec": {"template": {"metadata": {"labels": {"version": "2"}}}}}
    api.send("PATCH", f"{STATEFUL_SETS}/db", newer, MERGE)
    api.cluster.advance(300)
    gone = [name for _, change, name, _ in api.seen[since:] if name in MEMBERS and change == "DELETED"]
    assert gone == replaced
    assert api.names(PODS, "Running") == MEMBERS
    pods = api.send("GET", PODS)[1]["items"]
    assert [it["metadata"]["name"] for it in pods if "version" in it["metadata"]["labels"]] == sorted(replaced)


def test_a_kubernetes_job_completes(api: Api) -> None:
    api.node(4)
    spec = {"parallelism": 2, "completions": 2, "template": pod_spec(run_for="10s")}
    api.send("POST", BATCH, {"metadata": {"name": "b"}, "spec": spec})
    api.cluster.advance(30)
    status = api.send("GET", f"{BATCH}/b")[1]["status"]
    assert (status["succeeded"], status["conditions"][0]["type"]) == (2, "Complete")


def test_the_deletion_of_a_namespace_deletes_its_objects(api: Api) -> None:
    api.node(4)
    api.send("POST", JOBS, job("a"))
    api.cluster.advance(5)
    api.send("DELETE", "/api/v1/namespaces/spec")
    assert api.send("POST", JOBS, job("b"))[0] == 403
    api.cluster.advance(40)
    assert (api.names(PODS), api.send("GET", "/api/v1/namespaces/spec")[0]) == ([], 404)


def test_a_conflict_is_refused_as_by_the_api_server(api: Api) -> None:
    api.node(4)
    assert api.send("POST", NODE, {"metadata": {"name": "n"}})[0] == 409
    stale = {"metadata": {"resourceVersion": "1"}, "spec": {"unschedulable": True}}
    assert api.send("PATCH", f"{NODE}/n", stale, MERGE)[0] == 409
    assert api.send("GET", f"{NODE}/m")[0] == 404
    assert api.send("DELETE", f"{NODE}/n", {"preconditions": {"uid": "another"}})[0] == 409
    assert api.send("GET", "/apis/example.com/v1/things")[0] == 404


def test_a_pod_gets_the_priority_of_its_class(api: Api) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    api.send("POST", path, {"metadata": {"name": "high"}, "value": 7})
    body = pod_spec()
    body["metadata"]["name"] = "p"
    body["spec"]["priorityClassName"] = "high"
    assert api.send("POST", PODS, body)[1]["spec"]["priority"] == 7
    body["metadata"]["name"], body["spec"]["priorityClassName"] = "q", "absent"
    assert api.send("POST", PODS, body)[0] == 403


def test_an_apply_leaves_the_fields_of_other_managers(api: Api) -> None:
    path = "/apis/scheduling.volcano.sh/v1beta1/queues/q"
    body = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}}
    api.send("PATCH", f"{path}?fieldManager=me", {**body, "spec": {"weight": 2, "reclaimable": True}}, APPLY)
    api.cluster.advance(1)
    _, after = api.send("PATCH", f"{path}?fieldManager=me", {**body, "spec": {"weight": 3}}, APPLY)
    assert (after["spec"], after["status"]["state"]) == ({"weight": 3}, "Open")


def test_an_invalid_policy_is_refused(api: Api) -> None:
    with pytest.raises(ValueError, match="actions"):
        api.cluster.use_policy("actions: 3")


def test_the_same_requests_give_the_same_versions() -> None:
    def versions() -> str:
        api = Api()
        api.node(3)
        for name in ("a", "b", "c"):
            api.send("POST", JOBS, job(name, run_for="30s"))
        api.cluster.advance(120)
        api.cluster.close()
        return json.dumps(api.seen)

    first = versions()
    assert "Completed" in first
    assert first == versions()


def watched(api: Api, version: str) -> list[tuple[str, str]]:
    """Return the nodes that a watch from a version shows at once, with their changes."""

    async def read() -> list[tuple[str, str]]:
        found, http = [], VirtualHttp(api.cluster._server)
        async with http.stream(f"{NODE}?watch=true&resourceVersion={version}") as pieces:
            with contextlib.suppress(TimeoutError):
                while True:
                    event = json.loads(await asyncio.wait_for(anext(pieces), 0.05))
                    found.append((event["type"], event["object"]["metadata"]["name"]))
        return found

    return asyncio.run(read())


def test_a_watch_shows_every_change_after_the_version_that_it_names(api: Api) -> None:
    """Between a list and the watch that follows it, the cluster may have changed."""
    api.node(4, "a")
    version = api.send("GET", NODE)[1]["metadata"]["resourceVersion"]
    api.send("POST", NODE, {"metadata": {"name": "b"}})
    api.send("PATCH", f"{NODE}/a", {"metadata": {"labels": {"x": "y"}}}, MERGE)
    api.send("DELETE", f"{NODE}/b")
    assert watched(api, version) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


def test_a_watch_without_a_version_begins_with_all_objects(api: Api) -> None:
    api.node(4, "a")
    assert watched(api, "") == [("ADDED", "a")]


def test_a_watch_from_a_version_that_is_too_old_is_refused(api: Api) -> None:
    api.node(4, "a")
    version = api.send("GET", NODE)[1]["metadata"]["resourceVersion"]
    for number in range(1001):
        api.send("PATCH", f"{NODE}/a", {"metadata": {"labels": {"x": str(number)}}}, MERGE)
    with pytest.raises(Gone):
        watched(api, version)
