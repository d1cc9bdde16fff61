"""A cluster in virtual time: its API, its kubelets and owners, and the live scheduler on it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from scheduler.simulation.cluster import VirtualCluster

NODE = "/api/v1/nodes"
PODS = "/api/v1/namespaces/spec/pods"
JOBS = "/apis/batch.volcano.sh/v1alpha1/namespaces/spec/jobs"
GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/spec/podgroups"
DEPLOYMENTS = "/apis/apps/v1/namespaces/spec/deployments"
BATCH = "/apis/batch/v1/namespaces/spec/jobs"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"


class Desk:
    """A virtual cluster, and every version of every object that it showed."""

    def __init__(self) -> None:
        self.cluster = VirtualCluster()
        self.seen: list[tuple[str, str, str, Any]] = []
        self.cluster.watch(lambda kind, change, item: self.seen.append((kind, change, item["metadata"]["name"], item)))
        self.cluster.advance(1)
        self.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "spec"}})

    def ask(self, method: str, path: str, body: Any = None, content_type: str = "") -> tuple[int, Any]:
        data = b"" if body is None else json.dumps(body).encode()
        status, answer = self.cluster.request(method, path, data, content_type)
        return status, json.loads(answer)

    def node(self, cpus: int, name: str = "n") -> None:
        has = {"cpu": str(cpus), "memory": "64Gi", "pods": "110"}
        self.ask("POST", NODE, {"metadata": {"name": name}, "status": {"allocatable": has, "capacity": has}})
        self.cluster.advance(0.1)

    def names(self, path: str, phase: str = "") -> list[str]:
        items = self.ask("GET", path)[1]["items"]
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
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.cluster.close()


def pod_spec(**annotations: str) -> dict[str, Any]:
    keys = {f"schedspec.dev/{name.replace('_', '-')}": value for name, value in annotations.items()}
    container = {"name": "x", "image": "i", "resources": {"limits": {"cpu": "1"}}}
    spec = {"schedulerName": "schedspec", "restartPolicy": "Never", "containers": [container]}
    return {"metadata": {"annotations": keys}, "spec": spec}


def job(name: str, replicas: int = 2, policies: Any = (), **annotations: str) -> dict[str, Any]:
    tasks = [{"name": "t", "replicas": replicas, "template": pod_spec(**annotations)}]
    spec = {"schedulerName": "schedspec", "queue": "default", "minAvailable": replicas, "tasks": tasks, "maxRetry": 3}
    return {"metadata": {"name": name}, "spec": {**spec, "policies": list(policies)}}


def test_a_job_is_admitted_bound_run_and_completed(desk: Desk) -> None:
    desk.node(4)
    desk.ask("POST", JOBS, job("a", run_for="1h"))
    desk.cluster.advance(60)
    assert desk.names(PODS, "Running") == ["a-t-0", "a-t-1"]
    desk.cluster.advance(3600)
    assert desk.phases("a") == ["Pending", "Running", "Completed"]


def test_hours_pass_in_no_time(desk: Desk) -> None:
    began = time.process_time()
    desk.cluster.advance(86_400)
    assert desk.cluster.now() == pytest.approx(86_401)
    assert time.process_time() - began < 30


def test_work_that_does_not_fit_says_why(desk: Desk) -> None:
    desk.node(1)
    desk.ask("POST", JOBS, job("a"))
    desk.cluster.advance(5)
    (group,) = desk.ask("GET", GROUPS)[1]["items"]
    (condition,) = [it for it in group["status"]["conditions"] if it["type"] == "Unschedulable"]
    assert "cpu" in condition["message"]


def test_a_deleted_pod_stops_and_its_job_follows_its_policy(desk: Desk) -> None:
    desk.node(4)
    desk.ask("POST", JOBS, job("a", policies=[{"event": "PodEvicted", "action": "RestartJob"}]))
    desk.cluster.advance(5)
    desk.ask("DELETE", f"{PODS}/a-t-0")
    desk.cluster.advance(30)
    assert desk.phases("a") == ["Pending", "Running", "Restarting", "Pending", "Running"]


def test_a_pod_takes_its_time_to_start_and_to_stop(desk: Desk) -> None:
    desk.node(4)
    body = pod_spec(start_after="10s", stop_after="5s")
    body["metadata"]["name"] = "p"
    desk.ask("POST", PODS, body)
    desk.cluster.advance(9)
    assert desk.names(PODS, "Pending") == ["p"]
    desk.cluster.advance(3)
    assert desk.names(PODS, "Running") == ["p"]
    desk.ask("DELETE", f"{PODS}/p")
    desk.cluster.advance(4)
    assert desk.names(PODS) == ["p"]
    desk.cluster.advance(3)
    assert desk.names(PODS) == []


def test_a_pod_that_is_told_to_finish_ends_with_its_exit_code(desk: Desk) -> None:
    desk.node(4)
    body = pod_spec()
    body["metadata"]["name"] = "p"
    desk.ask("POST", PODS, body)
    desk.cluster.advance(5)
    finish = {"schedspec.dev/run-for": "0s", "schedspec.dev/exit-code": "3"}
    desk.ask("PATCH", f"{PODS}/p", {"metadata": {"annotations": finish}}, MERGE)
    desk.cluster.advance(1)
    assert desk.names(PODS, "Failed") == ["p"]


def test_a_deployment_makes_a_deleted_pod_again(desk: Desk) -> None:
    desk.node(4)
    template = pod_spec()
    template["metadata"]["labels"] = {"app": "web"}
    template["spec"]["restartPolicy"] = "Always"
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    desk.ask("POST", DEPLOYMENTS, {"metadata": {"name": "web"}, "spec": spec})
    desk.cluster.advance(5)
    first = desk.names(PODS, "Running")
    desk.ask("DELETE", f"{PODS}/{first[0]}")
    desk.cluster.advance(5)
    second = desk.names(PODS, "Running")
    assert (len(first), len(second)) == (2, 2)
    assert set(first) != set(second)
    desk.ask("PATCH", f"{DEPLOYMENTS}/web", {"spec": {"replicas": 1}}, MERGE)
    desk.cluster.advance(5)
    assert len(desk.names(PODS)) == 1
    desk.ask("DELETE", f"{DEPLOYMENTS}/web")
    desk.cluster.advance(40)
    assert desk.names(PODS) == []


def test_a_kubernetes_job_completes(desk: Desk) -> None:
    desk.node(4)
    spec = {"parallelism": 2, "completions": 2, "template": pod_spec(run_for="10s")}
    desk.ask("POST", BATCH, {"metadata": {"name": "b"}, "spec": spec})
    desk.cluster.advance(30)
    status = desk.ask("GET", f"{BATCH}/b")[1]["status"]
    assert (status["succeeded"], status["conditions"][0]["type"]) == (2, "Complete")


def test_a_namespace_goes_with_all_that_is_in_it(desk: Desk) -> None:
    desk.node(4)
    desk.ask("POST", JOBS, job("a"))
    desk.cluster.advance(5)
    desk.ask("DELETE", "/api/v1/namespaces/spec")
    assert desk.ask("POST", JOBS, job("b"))[0] == 403
    desk.cluster.advance(40)
    assert (desk.names(PODS), desk.ask("GET", "/api/v1/namespaces/spec")[0]) == ([], 404)


def test_a_conflict_is_refused_as_by_the_api_server(desk: Desk) -> None:
    desk.node(4)
    assert desk.ask("POST", NODE, {"metadata": {"name": "n"}})[0] == 409
    stale = {"metadata": {"resourceVersion": "1"}, "spec": {"unschedulable": True}}
    assert desk.ask("PATCH", f"{NODE}/n", stale, MERGE)[0] == 409
    assert desk.ask("GET", f"{NODE}/m")[0] == 404
    assert desk.ask("DELETE", f"{NODE}/n", {"preconditions": {"uid": "another"}})[0] == 409
    assert desk.ask("GET", "/apis/example.com/v1/things")[0] == 404


def test_a_pod_gets_the_priority_of_its_class(desk: Desk) -> None:
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    desk.ask("POST", path, {"metadata": {"name": "high"}, "value": 7})
    body = pod_spec()
    body["metadata"]["name"] = "p"
    body["spec"]["priorityClassName"] = "high"
    assert desk.ask("POST", PODS, body)[1]["spec"]["priority"] == 7
    body["metadata"]["name"], body["spec"]["priorityClassName"] = "q", "absent"
    assert desk.ask("POST", PODS, body)[0] == 403


def test_what_one_manager_applies_leaves_the_fields_of_others(desk: Desk) -> None:
    path = "/apis/scheduling.volcano.sh/v1beta1/queues/q"
    body = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "q"}}
    desk.ask("PATCH", f"{path}?fieldManager=me", {**body, "spec": {"weight": 2, "reclaimable": True}}, APPLY)
    desk.cluster.advance(1)
    _, after = desk.ask("PATCH", f"{path}?fieldManager=me", {**body, "spec": {"weight": 3}}, APPLY)
    assert (after["spec"], after["status"]["state"]) == ({"weight": 3}, "Open")


def test_a_policy_that_contradicts_itself_is_refused(desk: Desk) -> None:
    with pytest.raises(ValueError, match="actions"):
        desk.cluster.use_policy("actions: 3")


def test_the_same_requests_give_the_same_versions() -> None:
    def versions() -> str:
        desk = Desk()
        desk.node(3)
        for name in ("a", "b", "c"):
            desk.ask("POST", JOBS, job(name, run_for="30s"))
        desk.cluster.advance(120)
        desk.cluster.close()
        return json.dumps(desk.seen)

    first = versions()
    assert "Completed" in first
    assert first == versions()
