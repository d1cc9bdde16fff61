"""The controllers on a real API server; the tests are the scheduler, KWOK is the kubelet."""

from __future__ import annotations

from typing import Any

import pytest

from tests.controllers.place import SCHEDULER, Place, until

pytestmark = pytest.mark.embedded


def container(name: str = "x") -> dict[str, Any]:
    return {"name": name, "image": "i", "resources": {"requests": {"cpu": "1"}}}


def template(name: str = "x") -> dict[str, Any]:
    return {"spec": {"containers": [container(name)], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}}


def task(replicas: int = 3, name: str = "a", **more: Any) -> dict[str, Any]:
    return {"name": name, "replicas": replicas, "template": template(), **more}


def order(place: Place, action: str, kind: str, name: str) -> None:
    target = {"apiVersion": "x/y", "kind": kind, "name": name, "uid": ""}
    place.create("Command", f"{action.lower()}-{name}", action=action, target=target)


class TestJobs:
    def test_a_job_from_its_gang_to_its_end(self, place: Place) -> None:
        place.create("Job", "j", {"tasks": [task()], "ttlSecondsAfterFinished": 600})
        until(lambda: place.phase("j") == "Pending", "the job to be Pending")
        (group,) = until(lambda: place.all("PodGroup"), "a PodGroup")
        assert group["spec"]["minMember"] == 3
        assert place.pods() == {}
        place.run(3)
        until(lambda: place.phase("j") == "Running", "the job to run")
        place.finish("j-a-0", "j-a-1", "j-a-2")
        until(lambda: place.phase("j") == "Completed", "the job to complete")
        until(lambda: not place.all("PodGroup"), "the PodGroup to go")
        assert place.phases("j") == ["Pending", "Running", "Completed"]
        assert place.get("Job", "j")["status"]["succeeded"] == 3  # type: ignore[index]

    def test_an_evicted_pod_is_created_anew(self, place: Place) -> None:
        place.create("Job", "j", {"minAvailable": 1, "tasks": [task()]})
        place.run(3)
        until(lambda: place.phase("j") == "Running", "the job to run")
        before = place.pods()
        for _ in range(5):
            place.delete("Pod", "j-a-2", grace=0)
            old, before = before, until(lambda old=before: _renewed(place, old), "a new pod j-a-2")
            assert before["j-a-2"] != old["j-a-2"]
            assert (before["j-a-0"], before["j-a-1"]) == (old["j-a-0"], old["j-a-1"])
        place.bind(3)
        until(lambda: place.get("Job", "j")["status"].get("running") == 3, "three to run")  # type: ignore[index]
        assert place.phases("j") == ["Pending", "Running"]
        assert place.get("Job", "j")["status"].get("retryCount", 0) == 0  # type: ignore[index]

    @pytest.mark.parametrize(
        ("action", "phases"),
        [("RestartJob", ["Restarting", "Pending"]), ("AbortJob", ["Aborting", "Aborted"])],
    )
    def test_a_policy_on_eviction(self, place: Place, action: str, phases: list[str]) -> None:
        policies = [{"event": "PodEvicted", "action": action}]
        place.create("Job", "j", {"tasks": [task()], "policies": policies})
        place.run(3)
        until(lambda: place.phase("j") == "Running", "the job to run")
        place.delete("Pod", "j-a-1")
        until(lambda: place.phases("j") == ["Pending", "Running", *phases], f"the job to go through {phases}")
        until(lambda: place.pods() == {}, "all pods to go")
        assert [m for m in until(lambda: place.events("ExecuteAction"), "an event") if "PodEvicted (j-a-1)" in m]
        if action == "RestartJob":
            place.run(3)
            until(lambda: place.phase("j") == "Running", "the job to run again")
        else:
            order(place, "ResumeJob", "Job", "j")
            place.run(3)
            until(lambda: place.phase("j") == "Running", "the job to resume")
            assert until(lambda: not place.all("Command"), "the command to be taken up")

    def test_a_finished_task_completes_the_job(self, place: Place) -> None:
        policies = [{"event": "TaskCompleted", "action": "CompleteJob"}]
        place.create("Job", "j", {"tasks": [task(1, "main", policies=policies), task(2, "helper")]})
        place.run(3)
        until(lambda: place.phase("j") == "Running", "the job to run")
        place.finish("j-main-0")
        until(lambda: place.phase("j") == "Completed", "the job to complete")
        until(lambda: set(place.pods()) == {"j-main-0"}, "the helpers to go")

    def test_an_exit_code_restarts_one_pod(self, place: Place) -> None:
        place.create("Job", "j", {"tasks": [task()], "policies": [{"exitCode": 137, "action": "RestartPod"}]})
        place.run(3)
        until(lambda: place.phase("j") == "Running", "the job to run")
        before = place.pods()
        place.finish("j-a-1", exit_code=137)
        after = until(lambda: _renewed(place, before, "j-a-1"), "a new pod j-a-1")
        assert (after["j-a-0"], after["j-a-2"]) == (before["j-a-0"], before["j-a-2"])
        place.bind(3)
        until(lambda: place.phase("j") == "Running", "the job to run again")
        assert place.phases("j") == ["Pending", "Running", "Restarting", "Pending", "Running"]

    def test_what_happened_while_no_controller_ran_is_made_up_for(self, place: Place) -> None:
        place.create("Job", "j", {"tasks": [task()], "policies": [{"event": "PodEvicted", "action": "AbortJob"}]})
        place.run(3)
        until(lambda: place.phase("j") == "Running", "the job to run")
        place.controllers.stop()
        try:
            place.delete("Pod", "j-a-0", grace=0)
            until(lambda: len(place.pods()) == 2, "the pod to go")
        finally:
            place.controllers.start()
        until(lambda: place.phase("j") == "Aborted", "the job to be aborted")

    def test_scaling(self, place: Place) -> None:
        place.create("Job", "j", {"tasks": [task(2)], "policies": [{"event": "PodEvicted", "action": "AbortJob"}]})
        place.run(2)
        until(lambda: place.phase("j") == "Running", "the job to run")
        place.patch("Job", "j", {"spec": {"tasks": [task(4)]}})
        place.bind(4)
        place.patch("Job", "j", {"spec": {"tasks": [task(1)]}})
        until(lambda: set(place.pods()) == {"j-a-0"}, "one pod to stay")
        (group,) = place.all("PodGroup")
        until(lambda: place.all("PodGroup")[0]["spec"]["minMember"] == 1, "the gang to shrink")
        assert group["metadata"]["uid"] == place.all("PodGroup")[0]["metadata"]["uid"]
        assert place.phase("j") == "Running"

    def test_the_objects_of_the_svc_plugin(self, place: Place) -> None:
        place.create("Job", "j", {"tasks": [task(2, "ps"), task(1, "wk")], "plugins": {"svc": []}})
        service = until(lambda: place.get("Service", "j"), "a service")
        assert service["spec"]["clusterIP"] == "None"
        hosts = until(lambda: place.get("ConfigMap", "j-svc"), "the hosts")
        assert hosts["data"]["VC_PS_HOSTS"] == "j-ps-0.j,j-ps-1.j"
        assert until(lambda: place.get("NetworkPolicy", "j"), "a network policy")
        place.run(3)

    def test_a_pod_that_cannot_be_created_is_told_and_stops_no_other_job(self, place: Place) -> None:
        place.create("ResourceQuota", "few", {"hard": {"pods": "2"}})
        until(lambda: "hard" in place.get("ResourceQuota", "few")["status"], "the quota")  # type: ignore[index]
        place.create("Job", "big", {"tasks": [task(3)]})
        place.admit()
        messages = until(lambda: place.events("FailedCreatePod"), "an event")
        assert "exceeded quota" in messages[0]
        place.delete("Job", "big")
        until(lambda: not place.pods(), "its pods to go")
        place.create("Job", "small", {"tasks": [task(1)]})
        until(lambda: [g for g in place.all("PodGroup") if g["metadata"]["name"].startswith("small")], "a PodGroup")
        place.run(1)

    def test_a_pod_of_somebody_else_in_its_place_is_named(self, place: Place) -> None:
        place.create("Pod", "j-a-0", {**template()["spec"], "schedulerName": "somebody"})
        place.create("Job", "j", {"tasks": [task(2)]})
        place.admit()
        (message,) = until(lambda: place.events("FailedCreatePod"), "an event")
        assert "Pod j-a-0 exists and belongs to somebody else" in message
        place.delete("Pod", "j-a-0", grace=0)
        place.bind(2)
        until(lambda: place.phase("j") == "Running", "the job to run")

    def test_a_queue_that_cannot_be_used_is_named_on_the_job(self, place: Place) -> None:
        place.create("Job", "j", {"tasks": [task()], "queue": "nowhere"})
        job = until(lambda: _reason(place) and place.get("Job", "j"), "a reason")
        assert job["status"]["state"]["reason"] == "QueueNotUsable"
        assert "queue nowhere does not exist" in job["status"]["state"]["message"]
        place.create("Queue", "nowhere", {"weight": 1})
        try:
            until(lambda: not _reason(place), "the reason to pass")
        finally:
            place.delete("Queue", "nowhere")

    def test_a_job_of_another_scheduler_is_left_alone(self, place: Place) -> None:
        place.create("Job", "other", {"tasks": [task()], "schedulerName": "somebody"})
        place.create("Job", "mine", {"tasks": [task()]})
        until(lambda: place.phase("mine"), "my job to be taken up")
        assert place.phase("other") == ""


def _renewed(place: Place, before: dict[str, str], name: str = "j-a-2") -> dict[str, str] | None:
    now = place.pods()
    return now if name in now and now[name] != before[name] else None


def _reason(place: Place) -> str:
    found: str = (place.get("Job", "j") or {}).get("status", {}).get("state", {}).get("reason", "")
    return found


class TestPodGroups:
    def test_a_deployment_has_one_that_goes_with_it(self, place: Place) -> None:
        spec = {"containers": [container()], "schedulerName": SCHEDULER}
        meta = {"labels": {"app": "web"}, "annotations": {"scheduling.volcano.sh/queue-name": "q"}}
        wanted = {
            "selector": {"matchLabels": {"app": "web"}},
            "replicas": 3,
            "template": {"metadata": meta, "spec": spec},
        }
        annotations = {"volcano.sh/service.type": "inference"}
        place.create("Deployment", "web", wanted, metadata={"annotations": annotations})
        (group,) = until(lambda: place.all("PodGroup"), "a PodGroup")
        assert (group["spec"]["minMember"], group["spec"]["queue"]) == (1, "q")
        assert group["metadata"]["annotations"] == annotations
        name = group["metadata"]["name"]
        until(lambda: [_group(pod) for pod in place.all("Pod")] == [name] * 3, "three pods that know it")
        place.patch("Deployment", "web", {"spec": {"replicas": 0}})
        until(lambda: not place.all("PodGroup"), "the PodGroup to go")
        place.patch("Deployment", "web", {"spec": {"replicas": 1}})
        until(lambda: place.all("PodGroup"), "a new PodGroup")
        place.delete("Deployment", "web")
        until(lambda: not place.all("PodGroup"), "the PodGroup to go with the deployment")

    def test_a_lone_pod_has_its_own(self, place: Place) -> None:
        place.create("Pod", "alone", {**template()["spec"], "schedulerName": SCHEDULER})
        (group,) = until(lambda: place.all("PodGroup"), "a PodGroup")
        pod = place.get("Pod", "alone") or {}
        assert group["metadata"]["name"] == f"podgroup-{pod['metadata']['uid']}"
        place.delete("Pod", "alone", grace=0)
        until(lambda: not place.all("PodGroup"), "the PodGroup to go")

    def test_a_pod_of_another_scheduler_has_none(self, place: Place) -> None:
        place.create("Pod", "other", {**template()["spec"], "schedulerName": "somebody"})
        place.create("Pod", "mine", {**template()["spec"], "schedulerName": SCHEDULER})
        until(lambda: place.all("PodGroup"), "a PodGroup")
        assert _group(place.get("Pod", "other") or {}) == ""


class TestTheGarbageCollectorsWork:
    def test_a_deleted_job_takes_its_pods_along(self, place: Place) -> None:
        place.create("Job", "j", {"tasks": [task(2)]})
        place.run(2)
        place.delete("Job", "j")
        until(lambda: not place.pods() and not place.all("PodGroup"), "pods and PodGroup to go", 5.0)

    def test_a_successor_of_a_deleted_job_starts_anew(self, place: Place) -> None:
        place.create("Job", "j", {"tasks": [task(2)]})
        place.run(2)
        before = place.pods()
        place.delete("Job", "j")
        place.create("Job", "j", {"tasks": [task(2)]})
        until(lambda: not set(before.values()) & set(place.pods().values()), "the old pods to go")
        place.run(2)
        until(lambda: place.phase("j") == "Running", "the job to run")


def _group(pod: dict[str, Any]) -> str:
    found: str = pod["metadata"].get("annotations", {}).get("scheduling.k8s.io/group-name", "")
    return found


class TestQueues:
    def test_root_and_default_are_there(self, place: Place) -> None:
        for name in ("root", "default"):
            until(lambda name=name: _state(place, name) == "Open", f"queue {name}")

    def test_closing_a_parent_closes_its_children_until_it_opens(self, place: Place) -> None:
        place.create("Queue", "parent", {"weight": 1})
        place.create("Queue", "child", {"parent": "parent"})
        try:
            until(lambda: _state(place, "child") == "Open", "the child to be open")
            order(place, "CloseQueue", "Queue", "parent")
            until(lambda: _state(place, "child") == "Closed", "the child to close")
            order(place, "OpenQueue", "Queue", "parent")
            until(lambda: _state(place, "child") == "Open", "the child to open")
        finally:
            place.delete("Queue", "child")
            place.delete("Queue", "parent")

    def test_a_queue_closes_when_its_last_podgroup_has_gone(self, place: Place) -> None:
        place.create("Queue", "busy", {"weight": 1})
        try:
            place.create("Job", "j", {"tasks": [task()], "queue": "busy"})
            place.run(3)
            place.admit("Running")
            until(lambda: _status(place, "busy").get("running") == 1, "the PodGroup to be counted")
            order(place, "CloseQueue", "Queue", "busy")
            until(lambda: _state(place, "busy") == "Closing", "the queue to be closing")
            place.delete("Job", "j")
            until(lambda: _state(place, "busy") == "Closed", "the queue to be closed")
        finally:
            place.delete("Queue", "busy")


def _status(place: Place, name: str) -> dict[str, Any]:
    found: dict[str, Any] = (place.get("Queue", name) or {}).get("status", {})
    return found


def _state(place: Place, name: str) -> str:
    found: str = _status(place, name).get("state", "")
    return found


def training(workers: int = 2) -> dict[str, Any]:
    worker = {"replicas": workers, "restartPolicy": "ExitCode", "template": template("pytorch")}
    return {"pytorchReplicaSpecs": {"Master": {"template": template("pytorch")}, "Worker": worker}}


class TestPyTorchJobs:
    def test_a_job_from_its_gang_to_its_end(self, place: Place) -> None:
        place.create("PyTorchJob", "t", training())
        group = until(lambda: place.get("PodGroup", "t"), "a PodGroup of the same name")
        assert group["spec"]["minMember"] == 3
        assert until(lambda: place.get("Service", "t-master-0"), "a service")
        assert place.state("t") == "Created"
        place.run(3)
        until(lambda: place.state("t") == "Running", "the job to run")
        place.finish("t-master-0")
        until(lambda: place.state("t") == "Succeeded", "the job to succeed")
        until(lambda: not place.all("PodGroup"), "the PodGroup to go")

    def test_a_worker_that_was_killed_is_started_anew(self, place: Place) -> None:
        place.create("PyTorchJob", "t", training())
        place.run(3)
        until(lambda: place.state("t") == "Running", "the job to run")
        before = place.pods()
        place.finish("t-worker-0", exit_code=137)
        until(lambda: _renewed(place, before, "t-worker-0"), "a new worker")
        place.bind(3)
        until(lambda: place.state("t") == "Running", "the job to run again")

    def test_where_a_training_operator_is_installed_nothing_is_done(self, place: Place) -> None:
        labels = {"control-plane": "kubeflow-training-operator"}
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [container()], "schedulerName": "somebody"}}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod}
        place.create("Deployment", "training-operator", spec, metadata={"labels": labels})
        place.create("PyTorchJob", "t", training())
        place.create("Job", "j", {"tasks": [task()]})
        until(lambda: place.phase("j") == "Pending", "other controllers to go on")
        assert place.state("t") == ""
        place.delete("Deployment", "training-operator")
        until(lambda: place.state("t") == "Created", "the job to be ours again")
