"""The controllers of PodGroups, Queues and PyTorchJobs against a real API server."""

from __future__ import annotations

import time
from typing import Any

import pytest

from schedspec.api.client import MERGE
from schedspec.scheduler.model.times import timestamp
from tests.support.controllers.live_controllers import (
    SCHEDULER,
    LiveControllers,
    container,
    renewed,
    send_command,
    task,
    template,
    until,
)

pytestmark = pytest.mark.embedded


class TestPodGroups:
    def test_a_deployment_has_a_podgroup_that_is_deleted_with_it(self, place: LiveControllers) -> None:
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
        until(lambda: [_group(pod) for pod in place.all("Pod")] == [name] * 3, "three pods that name the PodGroup")
        place.patch("Deployment", "web", {"spec": {"replicas": 0}})
        until(lambda: not place.all("PodGroup"), "the PodGroup to be deleted")
        place.patch("Deployment", "web", {"spec": {"replicas": 1}})
        until(lambda: place.all("PodGroup"), "a new PodGroup")
        place.delete("Deployment", "web")
        until(lambda: not place.all("PodGroup"), "the PodGroup to be deleted with the deployment")

    def test_a_pod_without_an_owner_has_a_podgroup_of_its_own(self, place: LiveControllers) -> None:
        place.create("Pod", "alone", {**template()["spec"], "schedulerName": SCHEDULER})
        (group,) = until(lambda: place.all("PodGroup"), "a PodGroup")
        pod = place.get("Pod", "alone") or {}
        assert group["metadata"]["name"] == f"podgroup-{pod['metadata']['uid']}"
        place.delete("Pod", "alone", grace=0)
        until(lambda: not place.all("PodGroup"), "the PodGroup to be deleted")

    def test_a_pod_of_another_scheduler_has_no_podgroup(self, place: LiveControllers) -> None:
        place.create("Pod", "other", {**template()["spec"], "schedulerName": "somebody"})
        place.create("Pod", "mine", {**template()["spec"], "schedulerName": SCHEDULER})
        until(lambda: place.all("PodGroup"), "a PodGroup")
        assert _group(place.get("Pod", "other") or {}) == ""


class TestGangsOfKubernetes:
    def test_a_gang_has_a_podgroup_as_long_as_it_has_pods(self, place: LiveControllers) -> None:
        self._gang(place, "g", minCount=2)
        self._pod(place, "a", "g")
        group = until(lambda: place.get("PodGroup", "g"), "a PodGroup")
        assert (group["spec"]["minMember"], group["spec"]["minResources"]) == (2, {"cpu": "2"})
        assert group["metadata"]["annotations"]["schedspec.dev/disruption-mode"] == "group"
        assert group["metadata"]["ownerReferences"][0]["apiVersion"] == "scheduling.k8s.io/v1alpha2"
        assert _group(place.get("Pod", "a") or {}) == ""
        place.delete("Pod", "a", grace=0)
        until(lambda: place.get("PodGroup", "g") is None, "the PodGroup to be deleted with the last pod")
        self._pod(place, "b", "g")
        until(lambda: place.get("PodGroup", "g"), "a new PodGroup")
        place.delete("Pod", "b", grace=0)
        place.delete("Gang", "g")
        until(lambda: not place.all("PodGroup"), "the PodGroup to be deleted with the gang")

    def test_the_conditions_of_the_podgroup_are_copied_to_the_gang(self, place: LiveControllers) -> None:
        self._gang(place, "g", minCount=1)
        self._pod(place, "a", "g")
        until(lambda: place.get("PodGroup", "g"), "a PodGroup")
        for kind, word, message in (
            ("Unschedulable", ("False", "Unschedulable"), "no room"),
            ("Scheduled", ("True", "Scheduled"), "ready"),
        ):
            condition = {"type": kind, "status": "True", "reason": "r", "message": message}
            condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
            place.patch("PodGroup", "g", {"status": {"conditions": [condition]}}, "status")
            until(lambda content=(*word, message): self._condition_of(place) == content, f"the condition {message}")

    def test_a_preempted_gang_has_a_disruption_condition_until_it_has_new_pods(self, place: LiveControllers) -> None:
        self._gang(place, "g", minCount=1)
        self._pod(place, "a", "g")
        until(lambda: place.get("PodGroup", "g"), "a PodGroup")
        expected = ("True", "PreemptionByScheduler", "for ns/grand")
        condition = dict(zip(("status", "reason", "message"), expected, strict=True))
        now = timestamp(time.time())  # Kubernetes removes old conditions
        condition |= {"type": "DisruptionTarget", "lastTransitionTime": now}
        place.patch("Pod", "a", {"status": {"conditions": [condition]}}, "status")
        until(lambda: self._condition_of(place, "DisruptionTarget") == expected, "the condition of the gang")
        place.delete("Pod", "a", grace=0)
        until(lambda: place.get("PodGroup", "g") is None, "the PodGroup to be deleted with the last pod")
        assert self._condition_of(place, "DisruptionTarget") == expected
        self._pod(place, "b", "g")
        until(lambda: self._condition_of(place, "DisruptionTarget") == ("", "", ""), "the condition to be removed")

    def test_a_podgroup_of_its_name_that_is_no_mirror_is_kept(self, place: LiveControllers) -> None:
        place.create("PodGroup", "g", {"minMember": 5})
        self._gang(place, "g", minCount=1)
        self._pod(place, "a", "g")
        until(lambda: place.events("PodGroupExists"), "an event")
        until(lambda: self._condition_of(place)[1] == "SchedulerError", "the condition of the gang")
        assert (place.get("PodGroup", "g") or {})["spec"]["minMember"] == 5

    def test_a_gang_of_another_schedulers_pods_is_left_alone(self, place: LiveControllers) -> None:
        self._gang(place, "theirs", minCount=1)
        self._pod(place, "other", "theirs", "somebody")
        self._gang(place, "ours", minCount=1)
        self._pod(place, "mine", "ours")
        until(lambda: place.get("PodGroup", "ours"), "a PodGroup")
        assert place.get("PodGroup", "theirs") is None

    @staticmethod
    def _gang(place: LiveControllers, name: str, **gang: Any) -> None:
        spec = {"schedulingPolicy": {"gang": gang}, "disruptionMode": "PodGroup"}
        place.api.call("POST", place.path("Gang"), body={"metadata": {"name": name}, "spec": spec})

    @staticmethod
    def _pod(place: LiveControllers, name: str, gang: str, scheduler: str = SCHEDULER) -> None:
        group = {"schedulerName": scheduler, "schedulingGroup": {"podGroupName": gang}}
        place.create("Pod", name, {**template()["spec"], **group})

    @staticmethod
    def _condition_of(place: LiveControllers, kind: str = "PodGroupScheduled") -> tuple[str, str, str]:
        conditions = (place.get("Gang", "g") or {}).get("status", {}).get("conditions") or []
        found = next((it for it in conditions if it["type"] == kind), {})
        return found.get("status", ""), found.get("reason", ""), found.get("message", "")


class TestDeletedJobs:
    def test_the_pods_of_a_deleted_job_are_deleted(self, place: LiveControllers) -> None:
        place.create("Job", "j", {"tasks": [task(2)]})
        place.run(2)
        place.delete("Job", "j")
        until(lambda: not place.pods() and not place.all("PodGroup"), "pods and PodGroup to be deleted")

    def test_a_successor_of_a_deleted_job_starts_anew(self, place: LiveControllers) -> None:
        place.create("Job", "j", {"tasks": [task(2)]})
        place.run(2)
        before = place.pods()
        place.delete("Job", "j")
        place.create("Job", "j", {"tasks": [task(2)]})
        until(lambda: not set(before.values()) & set(place.pods().values()), "the old pods to be deleted")
        place.run(2)
        until(lambda: place.phase("j") == "Running", "the job to run")


def _group(pod: dict[str, Any]) -> str:
    found: str = pod["metadata"].get("annotations", {}).get("scheduling.k8s.io/group-name", "")
    return found


class TestQueues:
    def test_root_and_default_exist(self, place: LiveControllers) -> None:
        for name in ("root", "default"):
            until(lambda name=name: _state(place, name) == "Open", f"queue {name}")

    def test_closing_a_parent_closes_its_children_until_it_opens(self, place: LiveControllers) -> None:
        place.create("Queue", "parent", {"weight": 1})
        place.create("Queue", "child", {"parent": "parent"})
        try:
            until(lambda: _state(place, "child") == "Open", "the child to be open")
            send_command(place, "CloseQueue", "Queue", "parent")
            until(lambda: _state(place, "child") == "Closed", "the child to close")
            send_command(place, "OpenQueue", "Queue", "parent")
            until(lambda: _state(place, "child") == "Open", "the child to open")
        finally:
            place.delete("Queue", "child")
            place.delete("Queue", "parent")

    def test_a_queue_closes_when_its_last_podgroup_is_deleted(self, place: LiveControllers) -> None:
        place.create("Queue", "busy", {"weight": 1})
        try:
            place.create("Job", "j", {"tasks": [task()], "queue": "busy"})
            place.run(3)
            place.admit("Running")
            until(lambda: _status(place, "busy").get("running") == 1, "the PodGroup to be counted")
            send_command(place, "CloseQueue", "Queue", "busy")
            until(lambda: _state(place, "busy") == "Closing", "the queue to be closing")
            place.delete("Job", "j")
            until(lambda: _state(place, "busy") == "Closed", "the queue to be closed")
        finally:
            place.delete("Queue", "busy")

    def test_the_problem_of_a_queue_is_reported_and_blocks_no_other_queue(self, place: LiveControllers) -> None:
        """Problems that concern other objects, beside a job in a valid queue."""
        queues: dict[str, dict[str, Any]] = {
            "lost": {"parent": "nowhere"},
            "ring-a": {"parent": "ring-b"},
            "ring-b": {"parent": "ring-a"},
            "small": {"deserved": {"cpu": 1}},
            "large": {"parent": "small", "deserved": {"cpu": 2}},
            "good": {"weight": 1},
        }
        for name, spec in queues.items():
            place.create("Queue", name, spec)
        try:
            place.create("Job", "inside", {"tasks": [task(1)], "queue": "small"})
            reasons = {
                "lost": "ParentMissing",
                "ring-a": "Cycle",
                "ring-b": "Cycle",
                "small": "ChildrenDeservedExceed",
                "large": "Ready",
                "good": "Ready",
            }
            until(lambda: {name: _reason(place, name) for name in queues} == reasons, f"the reasons {reasons}")
            until(
                lambda: "1 PodGroups are in this queue" in _ready(place, "small")["message"],
                "both problems to be reported",
            )
            until(lambda: "queue small has child queues" in _waits(place, "inside"), "the reason of the job")
            place.delete("Job", "inside")
            until(lambda: not place.all("PodGroup"), "the PodGroup to be deleted")
            place.create("Job", "j", {"tasks": [task(1)], "queue": "good"})
            place.run(1)
            until(lambda: place.phase("j") == "Running", "a job of another queue to run")
            place.create("Queue", "nowhere", {"weight": 1})
            until(lambda: _reason(place, "lost") == "Ready", "the parent to be noticed")
        finally:
            for name in (*queues, "nowhere"):
                place.delete("Queue", name)


def _ready(place: LiveControllers, name: str) -> dict[str, Any]:
    conditions = _status(place, name).get("conditions", ())
    return next((one for one in conditions if one["type"] == "Ready"), {"reason": "", "message": ""})


def _reason(place: LiveControllers, name: str) -> str:
    reason: str = _ready(place, name)["reason"]
    return reason


def _waits(place: LiveControllers, job: str) -> str:
    message: str = (place.get("Job", job) or {}).get("status", {}).get("state", {}).get("message", "")
    return message


def _status(place: LiveControllers, name: str) -> dict[str, Any]:
    found: dict[str, Any] = (place.get("Queue", name) or {}).get("status", {})
    return found


def _state(place: LiveControllers, name: str) -> str:
    found: str = _status(place, name).get("state", "")
    return found


def _created(place: LiveControllers, name: str) -> dict[str, Any]:
    conditions = (place.get("PyTorchJob", name) or {}).get("status", {}).get("conditions")
    found: dict[str, Any] = conditions[-1] if conditions else {"reason": ""}
    return found


def training(workers: int = 2) -> dict[str, Any]:
    worker = {"replicas": workers, "restartPolicy": "ExitCode", "template": template("pytorch")}
    return {"pytorchReplicaSpecs": {"Master": {"template": template("pytorch")}, "Worker": worker}}


class TestPyTorchJobs:
    def test_a_job_from_its_podgroup_to_its_completion(self, place: LiveControllers) -> None:
        place.create("PyTorchJob", "t", training())
        group = until(lambda: place.get("PodGroup", "t"), "a PodGroup of the same name")
        assert group["spec"]["minMember"] == 3
        assert until(lambda: place.get("Service", "t-master-0"), "a service")
        assert place.state("t") == "Created"
        place.run(3)
        until(lambda: place.state("t") == "Running", "the job to run")
        place.finish("t-master-0")
        until(lambda: place.state("t") == "Succeeded", "the job to succeed")
        until(lambda: not place.all("PodGroup"), "the PodGroup to be deleted")

    def test_a_worker_that_was_killed_is_restarted(self, place: LiveControllers) -> None:
        place.create("PyTorchJob", "t", training())
        place.run(3)
        until(lambda: place.state("t") == "Running", "the job to run")
        before = place.pods()
        place.finish("t-worker-0", exit_code=137)
        until(lambda: renewed(place, before, "t-worker-0"), "a new worker")
        place.bind(3)
        until(lambda: place.state("t") == "Running", "the job to run again")

    def test_a_queue_that_cannot_be_used_is_named_until_it_can(self, place: LiveControllers) -> None:
        place.create("PyTorchJob", "t", {**training(), "runPolicy": {"schedulingPolicy": {"queue": "later"}}})
        until(lambda: _created(place, "t")["reason"] == "QueueNotUsable", "the reason")
        assert "queue later does not exist" in _created(place, "t")["message"]
        place.create("Queue", "later", {"weight": 1})
        try:
            until(lambda: _created(place, "t")["reason"] == "PyTorchJobCreated", "the reason to be removed")
            place.run(3)
            until(lambda: place.state("t") == "Running", "the job to run")
        finally:
            place.delete("Queue", "later")

    def test_objects_without_a_queue_use_the_queue_of_their_namespace(self, place: LiveControllers) -> None:
        mark = {"metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "team"}}}
        place.api.call("PATCH", f"/api/v1/namespaces/{place.namespace}", body=mark, content_type=MERGE)
        place.create("PyTorchJob", "t", training())
        place.create("Job", "j", {"tasks": [task(1)]})
        place.create("Pod", "alone", {**template()["spec"], "schedulerName": SCHEDULER})
        groups = until(lambda: len(place.all("PodGroup")) == 3 and place.all("PodGroup"), "three PodGroups")
        assert {group["spec"]["queue"] for group in groups} == {"team"}

    def test_finished_jobs_are_deleted_after_their_ttl(self, place: LiveControllers) -> None:
        policy = {"activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 0}
        place.create("PyTorchJob", "t", {**training(), "runPolicy": policy})
        place.create("Job", "j", {"tasks": [task(1)], "ttlSecondsAfterFinished": 0})
        send_command(place, "TerminateJob", "Job", "j")
        until(lambda: not place.get("PyTorchJob", "t") and not place.get("Job", "j"), "both to be deleted")

    def test_pytorchjobs_are_left_alone_if_a_training_operator_is_installed(self, place: LiveControllers) -> None:
        labels = {"control-plane": "kubeflow-training-operator"}
        pod = {"metadata": {"labels": labels}, "spec": {"containers": [container()], "schedulerName": "somebody"}}
        spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": pod}
        place.create("Deployment", "training-operator", spec, metadata={"labels": labels})
        place.create("PyTorchJob", "t", training())
        place.create("Job", "j", {"tasks": [task()]})
        until(lambda: place.phase("j") == "Pending", "other controllers to keep working")
        assert place.state("t") == ""
        place.delete("Deployment", "training-operator")
        until(lambda: place.state("t") == "Created", "the job to be managed by us again")
