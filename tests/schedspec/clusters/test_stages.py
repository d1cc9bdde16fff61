"""Simulated pods follow their annotations, and otherwise behave as with a kubelet."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from datetime import datetime

import pytest

from schedspec.clusters.embedded import EmbeddedCluster
from tests.support.cluster_api import Api, Object, a_node, condition, make_not_ready, phase, pod, within

pytestmark = pytest.mark.embedded


@pytest.fixture(scope="module")
def api(embedded: EmbeddedCluster) -> Iterator[Api]:
    api = Api(embedded)
    yield api
    api.close()


@pytest.fixture(scope="module")
def here(api: Api) -> Iterator[str]:
    with a_node(api, "stage-node") as name:
        yield name


def _start(api: Api, body: Object) -> str:
    api.create(api.pods, body)
    path = f"{api.pods}/{body['metadata']['name']}"
    within(lambda: phase(api.get(path)), lambda seen: seen == "Running")
    return path


def _wait_for_later_pod(api: Api, here: str) -> None:
    """Return when a new pod has run and ended: KWOK has then processed all earlier pods again."""
    path = _start(api, pod(f"meanwhile-{uuid.uuid4().hex[:8]}", here, run_for="300ms"))
    within(lambda: phase(api.get(path)), lambda seen: seen == "Succeeded")


def _container(api: Api, path: str) -> Object:
    seen = api.get(path)
    assert seen is not None
    status: Object = seen["status"]["containerStatuses"][0]
    return status


def _since(api: Api, path: str) -> int:
    """Return the start of the pod's current state, in milliseconds of KWOK's clock."""
    seen = api.get(path)
    assert seen is not None
    return next(int(each["message"]) for each in seen["status"]["conditions"] if each["type"] == "schedspec.dev/Since")


def test_a_node_keeps_its_shape_and_gets_no_label(api: Api, here: str) -> None:
    seen = api.get(f"/api/v1/nodes/{here}")
    assert seen is not None
    assert seen["status"]["allocatable"] == {"cpu": "64", "memory": "256Gi", "pods": "400", "nvidia.com/gpu": "8"}
    assert "labels" not in seen["metadata"]
    within(lambda: (api.get(f"/api/v1/nodes/{here}") or {})["spec"].get("taints"), lambda taints: not taints)


def test_a_node_that_is_made_not_ready_stays_so(api: Api) -> None:
    with a_node(api, "broken-node") as name:
        make_not_ready(api, name)
        with a_node(api, "made-after-it"):  # KWOK has then processed the earlier change
            assert condition(api.get(f"/api/v1/nodes/{name}"), "Ready") == "False"


def test_a_simulated_node_works_without_a_lease(api: Api) -> None:
    """The lease of an earlier node of the same name would be deleted by the garbage collector soon afterwards."""
    with a_node(api, "without-lease") as name:
        assert api.get(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}") is None
        _start(api, pod("on-without-lease", name))


def test_a_bound_pod_runs_until_its_annotation_ends_it(api: Api, here: str) -> None:
    api.create(api.pods, pod("endless"))
    path = f"{api.pods}/endless"
    _wait_for_later_pod(api, here)
    assert phase(api.get(path)) == "Pending"
    api.bind("endless", here)
    within(lambda: phase(api.get(path)), lambda seen: seen == "Running")
    seen = api.get(path)
    assert seen is not None
    assert {kind: condition(seen, kind) for kind in ("Ready", "Initialized", "ContainersReady")} == {
        "Ready": "True",
        "Initialized": "True",
        "ContainersReady": "True",
    }
    assert seen["status"]["podIP"]
    assert seen["status"]["startTime"]
    _wait_for_later_pod(api, here)
    assert phase(api.get(path)) == "Running"
    api.patch(path, {"metadata": {"annotations": {"schedspec.dev/run-for": "0s"}}})
    within(lambda: phase(api.get(path)), lambda seen: seen == "Succeeded")


@pytest.mark.parametrize(("code", "ends", "reason"), [("0", "Succeeded", "Completed"), ("3", "Failed", "Error")])
def test_a_pod_completes_with_its_exit_code(api: Api, here: str, code: str, ends: str, reason: str) -> None:
    path = _start(api, pod(f"exits-{code}", here, run_for="300ms", exit_code=code))
    within(lambda: phase(api.get(path)), lambda seen: seen == ends)
    status = _container(api, path)
    assert status["state"]["terminated"]["exitCode"] == int(code)
    assert status["state"]["terminated"]["reason"] == reason
    assert (status["ready"], condition(api.get(path), "Ready")) == (False, "False")


def test_a_change_of_a_pod_does_not_restart_its_clock(api: Api, here: str) -> None:
    path = _start(api, pod("patched", here, run_for="1500ms"))
    began = _since(api, path)
    numbers = itertools.count()

    def touch_and_look() -> str | None:  # every 10 ms: a clock that restarts would never expire
        api.patch(path, {"metadata": {"labels": {"touched": str(next(numbers))}}})
        return phase(api.get(path))

    within(touch_and_look, lambda seen: seen == "Succeeded")
    finished = _container(api, path)["state"]["terminated"]["finishedAt"]
    assert datetime.fromisoformat(finished).timestamp() * 1000 - began >= 500  # 1.5 s, in whole seconds


def test_a_pod_that_starts_late_is_pending_first(api: Api, here: str) -> None:
    api.create(api.pods, pod("late", here, start_after="1h"))
    path = f"{api.pods}/late"
    within(lambda: (api.get(path) or {})["status"].get("containerStatuses"))
    assert _container(api, path)["state"] == {"waiting": {"reason": "ContainerCreating"}}
    assert phase(api.get(path)) == "Pending"
    began = _since(api, path)
    api.patch(path, {"metadata": {"annotations": {"schedspec.dev/start-after": "700ms"}}})
    within(lambda: phase(api.get(path)), lambda seen: seen == "Running")
    assert _since(api, path) - began >= 700 - 1  # both are truncated to whole milliseconds


def test_init_containers_have_completed_when_a_pod_runs(api: Api, here: str) -> None:
    body = pod("with-init", here)
    body["spec"]["initContainers"] = [{"name": "first", "image": "none"}]
    seen = api.get(_start(api, body))
    assert seen is not None
    assert seen["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


@pytest.mark.parametrize(("policy", "code", "restarts"), [("OnFailure", "1", True), ("OnFailure", "0", False)])
def test_containers_restart_according_to_the_restart_policy(
    api: Api, here: str, policy: str, code: str, restarts: bool
) -> None:
    path = _start(api, pod(f"policy-{code}", here, policy, run_for="200ms", exit_code=code))
    if not restarts:
        within(lambda: phase(api.get(path)), lambda seen: seen == "Succeeded")
        return
    within(lambda: _container(api, path)["restartCount"], lambda seen: seen == 1)
    assert phase(api.get(path)) == "Running"
    assert _container(api, path)["lastState"]["terminated"]["exitCode"] == 1
    _wait_for_later_pod(api, here)
    assert _container(api, path)["restartCount"] == 1  # the next restart is backed off


def test_an_invalid_duration_is_ignored(api: Api, here: str) -> None:
    path = _start(api, pod("unreadable", here, start_after="soon", run_for="-1", stop_after="never"))
    _wait_for_later_pod(api, here)
    assert phase(api.get(path)) == "Running"
    api.delete(path)
    within(lambda: api.get(path) is None)


def test_a_deleted_pod_ends_at_once_or_after_its_stop_after(api: Api, here: str) -> None:
    quick, slow, slower = (
        _start(api, pod(name, here, **more))
        for name, more in (("quick", {}), ("slow", {"stop_after": "300ms"}), ("slower", {"stop_after": "1h"}))
    )
    for path in (slower, slow, quick):
        api.delete(path)
    within(lambda: api.get(quick) is None)
    within(lambda: api.get(slow) is None)
    seen = api.get(slower)
    assert phase(seen) == "Running"
    assert seen is not None
    assert seen["metadata"]["deletionTimestamp"]
    api.patch(slower, {"metadata": {"annotations": {"schedspec.dev/stop-after": "0s"}}})
    within(lambda: api.get(slower) is None)


def test_the_grace_period_caps_a_slow_stop(api: Api, here: str) -> None:
    at_once, in_a_second = (_start(api, pod(name, here, stop_after="1h")) for name in ("force", "one-second"))
    api.delete(at_once, grace=0)
    within(lambda: api.get(at_once) is None)
    api.delete(in_a_second, grace=1)
    within(lambda: api.get(in_a_second) is None)


def test_a_pod_that_was_never_bound_is_deleted(api: Api) -> None:
    api.create(api.pods, pod("unbound"))
    api.delete(f"{api.pods}/unbound")
    within(lambda: api.get(f"{api.pods}/unbound") is None)


def test_a_hundred_new_pods_with_the_names_of_deleted_pods_run(api: Api, here: str) -> None:
    names = [f"again-{number}" for number in range(100)]
    for name in names:
        api.create(api.pods, pod(name, here))
    before = {
        name: within(lambda n=name: api.get(f"{api.pods}/{n}"), lambda p: phase(p) == "Running") for name in names
    }
    for name in names:
        api.delete(f"{api.pods}/{name}")
        within(lambda n=name: api.get(f"{api.pods}/{n}") is None)
        api.create(api.pods, pod(name, here))
    _wait_for_later_pod(api, here)
    listed = api.call("GET", api.pods)["items"]
    after = {each["metadata"]["name"]: each for each in listed if each["metadata"]["name"] in names}
    assert len(after) == 100
    assert not any(after[name]["metadata"]["uid"] == before[name]["metadata"]["uid"] for name in names)
    within(lambda: {phase(api.get(f"{api.pods}/{name}")) for name in names}, lambda seen: seen == {"Running"})


def test_the_pod_of_a_volcano_job_does_not_complete_by_itself(api: Api, here: str) -> None:
    body = pod("owned", here)
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "job", "uid": str(uuid.uuid4())}
    body["metadata"]["ownerReferences"] = [owner]
    path = _start(api, body)
    _wait_for_later_pod(api, here)
    assert phase(api.get(path)) == "Running"


def test_a_batch_job_runs_until_an_annotation_ends_its_pods(api: Api, here: str) -> None:
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    template = {"spec": {"containers": [{"name": "main", "image": "none"}], "restartPolicy": "Never", "nodeName": here}}
    body = {"metadata": {"name": "batch"}, "spec": {"parallelism": 2, "completions": 2, "template": template}}
    api.create(jobs, body)
    query = f"{api.pods}?labelSelector=job-name%3Dbatch"
    pods = within(lambda: api.call("GET", query)["items"], lambda p: len(p) == 2 and {*map(phase, p)} == {"Running"})
    _wait_for_later_pod(api, here)
    assert not (api.get(f"{jobs}/batch") or {})["status"].get("succeeded")
    for each in pods:
        done = {"metadata": {"annotations": {"schedspec.dev/run-for": "0s"}}}
        api.patch(f"{api.pods}/{each['metadata']['name']}", done)
    within(lambda: condition(api.get(f"{jobs}/batch"), "Complete"), lambda seen: seen == "True")
    api.delete(f"{jobs}/batch?propagationPolicy=Background")
    within(lambda: not api.call("GET", query)["items"])


def test_a_deleted_pod_of_a_job_with_a_failure_policy_ends_first(api: Api, here: str) -> None:
    """The Job controller counts such a pod only after its containers have ended; a deletion is not enough."""
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    template = {"spec": {"containers": [{"name": "main", "image": "none"}], "restartPolicy": "Never", "nodeName": here}}
    ignore = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    spec = {"parallelism": 1, "completions": 1, "template": template, "podFailurePolicy": {"rules": [ignore]}}
    api.create(jobs, {"metadata": {"name": "tracked"}, "spec": spec})
    query = f"{api.pods}?labelSelector=job-name%3Dtracked"
    (first,) = within(lambda: api.call("GET", query)["items"], lambda p: [phase(each) for each in p] == ["Running"])
    api.delete(f"{api.pods}/{first['metadata']['name']}")
    within(lambda: (api.get(f"{jobs}/tracked") or {})["status"].get("failed"), lambda seen: seen == 1)
    names = within(lambda: [each["metadata"]["name"] for each in api.call("GET", query)["items"]])
    assert first["metadata"]["name"] not in names
    api.delete(f"{jobs}/tracked?propagationPolicy=Background")
    within(lambda: not api.call("GET", query)["items"])


def test_a_deployment_becomes_available_and_replaces_a_deleted_pod(api: Api, here: str) -> None:
    deployments = "/apis/apps/v1/namespaces/default/deployments"
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "n"}], "nodeName": here}}
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    api.create(deployments, {"metadata": {"name": "web"}, "spec": spec})
    path = f"{deployments}/web"
    within(lambda: (api.get(path) or {})["status"].get("availableReplicas"), lambda seen: seen == 3)
    query = f"{api.pods}?labelSelector=app%3Dweb"
    first = {each["metadata"]["name"] for each in api.call("GET", query)["items"]}
    api.delete(f"{api.pods}/{min(first)}")
    within(lambda: {p["metadata"]["name"] for p in api.call("GET", query)["items"]}, lambda now: len(now - first) == 1)
    within(lambda: (api.get(path) or {})["status"].get("availableReplicas"), lambda seen: seen == 3)
    api.delete(path)
    within(lambda: not api.call("GET", query)["items"])
