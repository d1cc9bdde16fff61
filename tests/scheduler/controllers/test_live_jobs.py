"""The controller of Jobs against a real API server."""

from __future__ import annotations

import pytest

from tests.support.controllers.live_controllers import LiveControllers, renewed, send_command, task, template, until

pytestmark = pytest.mark.embedded


class TestJobs:
    def test_a_job_from_its_podgroup_to_its_completion(self, place: LiveControllers) -> None:
        place.create("Job", "j", {"tasks": [task()], "ttlSecondsAfterFinished": 600})
        until(lambda: place.phase("j") == "Pending", "the job to be Pending")
        (group,) = until(lambda: place.all("PodGroup"), "a PodGroup")
        assert group["spec"]["minMember"] == 3
        assert place.pods() == {}
        place.run(3)
        until(lambda: place.phase("j") == "Running", "the job to run")
        place.finish("j-a-0", "j-a-1", "j-a-2")
        until(lambda: place.phase("j") == "Completed", "the job to complete")
        until(lambda: not place.all("PodGroup"), "the PodGroup to be deleted")
        assert place.phases("j") == ["Pending", "Running", "Completed"]
        assert place.get("Job", "j")["status"]["succeeded"] == 3  # type: ignore[index]

    def test_an_evicted_pod_is_created_anew(self, place: LiveControllers) -> None:
        place.create("Job", "j", {"minAvailable": 1, "tasks": [task()]})
        place.run(3)
        until(lambda: place.phase("j") == "Running", "the job to run")
        before = place.pods()
        for _ in range(5):
            place.delete("Pod", "j-a-2", grace=0)
            old, before = before, until(lambda old=before: renewed(place, old), "a new pod j-a-2")
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
    def test_a_policy_on_eviction(self, place: LiveControllers, action: str, phases: list[str]) -> None:
        policies = [{"event": "PodEvicted", "action": action}]
        place.create("Job", "j", {"tasks": [task()], "policies": policies})
        place.run(3)
        until(lambda: place.phase("j") == "Running", "the job to run")
        place.delete("Pod", "j-a-1")
        until(lambda: place.phases("j") == ["Pending", "Running", *phases], f"the job to go through {phases}")
        until(lambda: place.pods() == {}, "all pods to be deleted")
        assert [m for m in until(lambda: place.events("ExecuteAction"), "an event") if "PodEvicted (j-a-1)" in m]
        if action == "RestartJob":
            place.run(3)
            until(lambda: place.phase("j") == "Running", "the job to run again")
        else:
            send_command(place, "ResumeJob", "Job", "j")
            place.run(3)
            until(lambda: place.phase("j") == "Running", "the job to resume")
            assert until(lambda: not place.all("Command"), "the command to be carried out")

    def test_a_finished_task_completes_the_job(self, place: LiveControllers) -> None:
        policies = [{"event": "TaskCompleted", "action": "CompleteJob"}]
        place.create("Job", "j", {"tasks": [task(1, "main", policies=policies), task(2, "helper")]})
        place.run(3)
        until(lambda: place.phase("j") == "Running", "the job to run")
        place.finish("j-main-0")
        until(lambda: place.phase("j") == "Completed", "the job to complete")
        until(lambda: set(place.pods()) == {"j-main-0"}, "the helpers to be deleted")

    def test_an_exit_code_restarts_one_pod(self, place: LiveControllers) -> None:
        place.create("Job", "j", {"tasks": [task()], "policies": [{"exitCode": 137, "action": "RestartPod"}]})
        place.run(3)
        until(lambda: place.phase("j") == "Running", "the job to run")
        before = place.pods()
        place.finish("j-a-1", exit_code=137)
        after = until(lambda: renewed(place, before, "j-a-1"), "a new pod j-a-1")
        assert (after["j-a-0"], after["j-a-2"]) == (before["j-a-0"], before["j-a-2"])
        place.bind(3)
        until(lambda: place.phase("j") == "Running", "the job to run again")
        assert place.phases("j") == ["Pending", "Running", "Restarting", "Pending", "Running"]

    def test_an_eviction_while_no_controller_ran_is_handled_afterwards(self, place: LiveControllers) -> None:
        place.create("Job", "j", {"tasks": [task()], "policies": [{"event": "PodEvicted", "action": "AbortJob"}]})
        place.run(3)
        until(lambda: place.phase("j") == "Running", "the job to run")
        place.controllers.stop()
        try:
            place.delete("Pod", "j-a-0", grace=0)
            until(lambda: len(place.pods()) == 2, "the pod to be deleted")
        finally:
            place.controllers.start()
        until(lambda: place.phase("j") == "Aborted", "the job to be aborted")

    def test_scaling(self, place: LiveControllers) -> None:
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

    def test_the_objects_of_the_svc_plugin(self, place: LiveControllers) -> None:
        place.create("Job", "j", {"tasks": [task(2, "ps"), task(1, "wk")], "plugins": {"svc": []}})
        service = until(lambda: place.get("Service", "j"), "a service")
        assert service["spec"]["clusterIP"] == "None"
        hosts = until(lambda: place.get("ConfigMap", "j-svc"), "the hosts")
        assert hosts["data"]["VC_PS_HOSTS"] == "j-ps-0.j,j-ps-1.j"
        assert until(lambda: place.get("NetworkPolicy", "j"), "a network policy")
        place.run(3)

    def test_a_pod_that_cannot_be_created_is_reported_and_blocks_no_other_job(self, place: LiveControllers) -> None:
        place.create("ResourceQuota", "few", {"hard": {"pods": "2"}})
        until(lambda: "hard" in place.get("ResourceQuota", "few")["status"], "the quota")  # type: ignore[index]
        place.create("Job", "big", {"tasks": [task(3)]})
        place.admit()
        messages = until(lambda: place.events("FailedCreatePod"), "an event")
        assert "exceeded quota" in messages[0]
        place.delete("Job", "big")
        until(lambda: not place.pods(), "its pods to be deleted")
        place.create("Job", "small", {"tasks": [task(1)]})
        until(lambda: [g for g in place.all("PodGroup") if g["metadata"]["name"].startswith("small")], "a PodGroup")
        place.run(1)

    def test_a_service_that_cannot_be_created_is_reported_and_retried(self, place: LiveControllers) -> None:
        place.create("ResourceQuota", "none", {"hard": {"services": "0"}})
        until(lambda: "hard" in place.get("ResourceQuota", "none")["status"], "the quota")  # type: ignore[index]
        place.create("Job", "j", {"tasks": [task(1)], "plugins": {"svc": []}})
        messages = until(lambda: place.events("FailedApplyService"), "an event")
        assert "exceeded quota" in messages[0]
        place.delete("ResourceQuota", "none")
        until(lambda: place.get("Service", "j"), "the service")
        place.run(1)
        until(lambda: place.phase("j") == "Running", "the job to run")

    def test_a_pod_of_another_owner_that_has_a_needed_name_is_reported(self, place: LiveControllers) -> None:
        place.create("Pod", "j-a-0", {**template()["spec"], "schedulerName": "somebody"})
        place.create("Job", "j", {"tasks": [task(2)]})
        place.admit()
        (message,) = until(lambda: place.events("NameTaken"), "an event")
        assert "Pod j-a-0 exists and belongs to somebody else" in message
        place.delete("Pod", "j-a-0", grace=0)
        place.bind(2)
        until(lambda: place.phase("j") == "Running", "the job to run")

    def test_a_queue_that_cannot_be_used_is_named_on_the_job(self, place: LiveControllers) -> None:
        place.create("Job", "j", {"tasks": [task()], "queue": "nowhere"})
        job = until(lambda: _reason(place) and place.get("Job", "j"), "a reason")
        assert job["status"]["state"]["reason"] == "QueueNotUsable"
        assert "queue nowhere does not exist" in job["status"]["state"]["message"]
        place.create("Queue", "nowhere", {"weight": 1})
        try:
            until(lambda: not _reason(place), "the reason to be removed")
        finally:
            place.delete("Queue", "nowhere")

    def test_a_job_of_another_scheduler_is_left_alone(self, place: LiveControllers) -> None:
        place.create("Job", "other", {"tasks": [task()], "schedulerName": "somebody"})
        place.create("Job", "mine", {"tasks": [task()]})
        until(lambda: place.phase("mine"), "my job to be processed")
        assert place.phase("other") == ""


def _reason(place: LiveControllers) -> str:
    found: str = (place.get("Job", "j") or {}).get("status", {}).get("state", {}).get("reason", "")
    return found
