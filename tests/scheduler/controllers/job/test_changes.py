"""What happens to a Job that runs: evictions, scaling, commands, and a controller that ends in the middle."""

from __future__ import annotations

import pytest

from scheduler.controllers.runtime.objects import COMMANDS, JOBS
from tests.support.controllers.fake_cluster import JobDesk, task


class TestEviction:
    def test_the_missing_pod_is_created_again_once_the_old_one_is_gone(self) -> None:
        desk = JobDesk({"tasks": [task("test", 3)], "minAvailable": 1}).run()
        old = desk.objects["pods", "j-test-2"]["metadata"]["uid"]
        desk.evict("j-test-2")
        assert desk.work().pods() == ["j-test-0", "j-test-1"]
        desk.leave()
        desk.work()
        assert desk.pods("Pending") == ["j-test-2"]
        assert desk.objects["pods", "j-test-2"]["metadata"]["uid"] != old
        assert desk.phases == ["Pending", "Running"]

    def test_it_is_news_only_once(self) -> None:
        policy = {"event": "PodEvicted", "action": "RestartJob"}
        desk = JobDesk({"tasks": [task("a", 3)], "policies": [policy]}).run()
        desk.evict("j-a-0", "j-a-1")
        for _ in range(3):
            desk.work()
        desk.leave()
        desk.work()
        desk.admit()
        desk.work()
        desk.become("Running")
        desk.work()
        assert desk.job.status.retry_count == 1
        assert desk.phase == "Running"


class TestScaling:
    def test_up(self) -> None:
        desk = JobDesk({"tasks": [task("a", 2)]}).run()
        desk.change_spec(JOBS, "j", lambda spec: spec["tasks"][0].update(replicas=4))
        desk.work()
        assert desk.pods() == ["j-a-0", "j-a-1", "j-a-2", "j-a-3"]
        assert desk.group.spec.min_member == 4
        assert desk.group.spec.min_resources == {"cpu": "4", "memory": "4Gi"}

    def test_down_deletes_the_highest_and_is_no_eviction(self) -> None:
        desk = JobDesk({"tasks": [task("a", 4)], "policies": [{"event": "PodEvicted", "action": "AbortJob"}]}).run()
        desk.change_spec(JOBS, "j", lambda spec: spec["tasks"][0].update(replicas=2))
        desk.work()
        desk.leave()
        desk.work()
        assert desk.pods() == ["j-a-0", "j-a-1"]
        assert desk.phase == "Running"
        assert desk.group.spec.min_member == 2

    def test_down_and_up_at_once_is_no_eviction(self) -> None:
        desk = JobDesk({"tasks": [task("a", 4)], "policies": [{"event": "PodEvicted", "action": "AbortJob"}]}).run()
        desk.change_spec(JOBS, "j", lambda spec: spec["tasks"][0].update(replicas=2))
        desk.work()
        desk.change_spec(JOBS, "j", lambda spec: spec["tasks"][0].update(replicas=4))
        desk.work()
        desk.leave()
        desk.work()
        assert len(desk.pods()) == 4
        assert desk.job.status.version == 0

    def test_to_nothing_keeps_the_phase(self) -> None:
        desk = JobDesk({"tasks": [task("a", 2)]}).run()
        desk.change_spec(JOBS, "j", lambda spec: spec["tasks"][0].update(replicas=0))
        desk.work()
        desk.leave()
        assert desk.work().phase == "Running"


class TestCommands:
    @pytest.mark.parametrize(
        ("action", "phase"), [("AbortJob", "Aborted"), ("TerminateJob", "Terminated"), ("CompleteJob", "Completed")]
    )
    def test_end_a_job(self, action: str, phase: str) -> None:
        desk = JobDesk({"tasks": [task()]}).run().command(action)
        desk.leave()
        assert desk.work().phase == phase
        assert [key for key in desk.objects if key[0].startswith("commands")] == []

    def test_an_aborted_job_resumes(self) -> None:
        desk = JobDesk({"tasks": [task("a", 2)]}).run()
        desk.become("Succeeded", ["j-a-0"])
        desk.work()
        desk.command("AbortJob")
        desk.leave()
        desk.work()
        assert desk.pods() == ["j-a-0"], "what had finished stays"
        desk.command("ResumeJob")
        desk.admit()
        desk.work()
        desk.become("Running", ["j-a-1"])
        desk.work()
        assert desk.phases[-4:] == ["Aborted", "Restarting", "Pending", "Running"]
        assert desk.created.count("j-a-0") == 1
        assert desk.created.count("j-a-1") == 2

    def test_one_is_taken_up_once_even_if_its_removal_was_lost(self) -> None:
        desk = JobDesk({"tasks": [task()]}).run()
        body = {"action": "RestartJob", "target": {"kind": "Job", "name": "j", "uid": desk.job.metadata.uid}}
        desk.put(COMMANDS, {"metadata": {"name": "c"}, **body})
        for _ in range(6):
            desk.turn(desk.decide, most=1)  # the status is written, then the controller dies
            desk.evict(*desk.pods())
            desk.leave()
        desk.work()
        assert desk.job.status.retry_count == 1

    def test_one_that_means_nothing_now_is_removed(self) -> None:
        desk = JobDesk({"tasks": [task()]}).run().command("ResumeJob")
        assert desk.phase == "Running"
        assert [key for key in desk.objects if key[0].startswith("commands")] == []


def crash_after(desk: JobDesk, event: str, written: int) -> None:
    """A pod is evicted or fails, and the controller dies after so many of its writes."""
    if event == "evicted":
        desk.evict("j-a-0")
    else:
        desk.become("Failed", ["j-a-0"])
    desk.turn(desk.decide, most=written)


class TestCrashes:
    """A controller that dies after any write is continued by the next one."""

    def test_before_it_removed_the_old_podgroup(self) -> None:
        desk = JobDesk({"tasks": [task()]}).work()
        old = desk.group.metadata.uid
        body = {"action": "RestartJob", "target": {"kind": "Job", "name": "j", "uid": desk.job.metadata.uid}}
        desk.put(COMMANDS, {"metadata": {"name": "c"}, **body})
        desk.turn(desk.decide, most=1)
        desk.work()
        assert desk.phase == "Pending"
        assert desk.group.metadata.uid != old
        assert desk.group.metadata.annotations["volcano.sh/job-version"] == "1"

    @pytest.mark.parametrize("event", ["evicted", "failed"])
    @pytest.mark.parametrize("action", ["RestartJob", "AbortJob", "CompleteJob"])
    @pytest.mark.parametrize("written", range(7))
    def test_at_any_point(self, event: str, action: str, written: int) -> None:
        policies = [{"events": ["PodEvicted", "PodFailed"], "action": action}]
        desk = JobDesk({"tasks": [task("a", 3)], "policies": policies}).run()
        crash_after(desk, event, written)
        for _ in range(4):
            desk.work()
            desk.leave()
            desk.admit()
        expected = {"RestartJob": "Pending", "AbortJob": "Aborted", "CompleteJob": "Completed"}[action]
        assert desk.phase == expected
        assert desk.job.status.version == 1
        assert len(desk.pods("Pending")) == (3 if action == "RestartJob" else 0)

    @pytest.mark.parametrize("event", ["evicted", "failed"])
    @pytest.mark.parametrize("action", ["RestartTask", "RestartPod"])
    @pytest.mark.parametrize("written", range(8))
    def test_while_it_restarts_a_part(self, event: str, action: str, written: int) -> None:
        policies = [{"events": ["PodEvicted", "PodFailed"], "action": action}]
        desk = JobDesk({"tasks": [task("a", 3), task("b", 1)], "policies": policies}).run()
        crash_after(desk, event, written)
        for _ in range(4):
            desk.work()
            desk.leave()
        assert desk.job.status.retry_count == 1, "a restart that was interrupted is one restart"
        twice = {name for name in desk.pods() if desk.created.count(name) == 2}
        assert twice == ({"j-a-0"} if action == "RestartPod" else {"j-a-0", "j-a-1", "j-a-2"})
        assert len(desk.created) == 4 + len(twice)
        assert desk.job.status.restarting is None
        desk.become("Running")
        assert desk.work().phase == "Running"
