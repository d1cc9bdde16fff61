"""Changes of a running Job: evictions, scaling, Commands, and controllers that crash."""

from __future__ import annotations

import pytest

from schedspec.scheduler.controllers.runtime.objects import COMMANDS, JOBS
from tests.support.controllers.fake_cluster import FakeJobCluster, task


class TestEviction:
    def test_the_missing_pod_is_created_again_once_the_old_one_is_gone(self) -> None:
        fake = FakeJobCluster({"tasks": [task("test", 3)], "minAvailable": 1}).run()
        old = fake.objects["pods", "j-test-2"]["metadata"]["uid"]
        fake.evict("j-test-2")
        assert fake.work().pods() == ["j-test-0", "j-test-1"]
        fake.remove_terminating()
        fake.work()
        assert fake.pods("Pending") == ["j-test-2"]
        assert fake.objects["pods", "j-test-2"]["metadata"]["uid"] != old
        assert fake.phases == ["Pending", "Running"]

    def test_an_eviction_is_handled_only_once(self) -> None:
        policy = {"event": "PodEvicted", "action": "RestartJob"}
        fake = FakeJobCluster({"tasks": [task("a", 3)], "policies": [policy]}).run()
        fake.evict("j-a-0", "j-a-1")
        for _ in range(3):
            fake.work()
        fake.remove_terminating()
        fake.work()
        fake.admit()
        fake.work()
        fake.set_phase("Running")
        fake.work()
        assert fake.job.status.retry_count == 1
        assert fake.phase == "Running"


class TestScaling:
    def test_scaling_up_adds_pods(self) -> None:
        fake = FakeJobCluster({"tasks": [task("a", 2)]}).run()
        fake.change_spec(JOBS, "j", lambda spec: spec["tasks"][0].update(replicas=4))
        fake.work()
        assert fake.pods() == ["j-a-0", "j-a-1", "j-a-2", "j-a-3"]
        assert fake.group.spec.min_member == 4
        assert fake.group.spec.min_resources == {"cpu": "4", "memory": "4Gi"}

    def test_scaling_down_deletes_the_highest_indexes_and_is_no_eviction(self) -> None:
        fake = FakeJobCluster(
            {"tasks": [task("a", 4)], "policies": [{"event": "PodEvicted", "action": "AbortJob"}]}
        ).run()
        fake.change_spec(JOBS, "j", lambda spec: spec["tasks"][0].update(replicas=2))
        fake.work()
        fake.remove_terminating()
        fake.work()
        assert fake.pods() == ["j-a-0", "j-a-1"]
        assert fake.phase == "Running"
        assert fake.group.spec.min_member == 2

    def test_scaling_down_and_up_at_once_is_no_eviction(self) -> None:
        fake = FakeJobCluster(
            {"tasks": [task("a", 4)], "policies": [{"event": "PodEvicted", "action": "AbortJob"}]}
        ).run()
        fake.change_spec(JOBS, "j", lambda spec: spec["tasks"][0].update(replicas=2))
        fake.work()
        fake.change_spec(JOBS, "j", lambda spec: spec["tasks"][0].update(replicas=4))
        fake.work()
        fake.remove_terminating()
        fake.work()
        assert len(fake.pods()) == 4
        assert fake.job.status.version == 0

    def test_scaling_to_zero_keeps_the_phase(self) -> None:
        fake = FakeJobCluster({"tasks": [task("a", 2)]}).run()
        fake.change_spec(JOBS, "j", lambda spec: spec["tasks"][0].update(replicas=0))
        fake.work()
        fake.remove_terminating()
        assert fake.work().phase == "Running"


class TestCommands:
    @pytest.mark.parametrize(
        ("action", "phase"), [("AbortJob", "Aborted"), ("TerminateJob", "Terminated"), ("CompleteJob", "Completed")]
    )
    def test_commands_end_a_job(self, action: str, phase: str) -> None:
        fake = FakeJobCluster({"tasks": [task()]}).run().command(action)
        fake.remove_terminating()
        assert fake.work().phase == phase
        assert [key for key in fake.objects if key[0].startswith("commands")] == []

    def test_an_aborted_job_resumes(self) -> None:
        fake = FakeJobCluster({"tasks": [task("a", 2)]}).run()
        fake.set_phase("Succeeded", ["j-a-0"])
        fake.work()
        fake.command("AbortJob")
        fake.remove_terminating()
        fake.work()
        assert fake.pods() == ["j-a-0"], "finished pods are kept"
        fake.command("ResumeJob")
        fake.admit()
        fake.work()
        fake.set_phase("Running", ["j-a-1"])
        fake.work()
        assert fake.phases[-4:] == ["Aborted", "Restarting", "Pending", "Running"]
        assert fake.created.count("j-a-0") == 1
        assert fake.created.count("j-a-1") == 2

    def test_a_command_is_carried_out_once_even_if_its_removal_was_lost(self) -> None:
        fake = FakeJobCluster({"tasks": [task()]}).run()
        body = {"action": "RestartJob", "target": {"kind": "Job", "name": "j", "uid": fake.job.metadata.uid}}
        fake.put(COMMANDS, {"metadata": {"name": "c"}, **body})
        for _ in range(6):
            fake.reconcile_once(fake.decide, most=1)  # the status is written, then the controller crashes
            fake.evict(*fake.pods())
            fake.remove_terminating()
        fake.work()
        assert fake.job.status.retry_count == 1

    def test_a_command_without_effect_is_removed(self) -> None:
        fake = FakeJobCluster({"tasks": [task()]}).run().command("ResumeJob")
        assert fake.phase == "Running"
        assert [key for key in fake.objects if key[0].startswith("commands")] == []


def crash_after(fake: FakeJobCluster, event: str, written: int) -> None:
    """Evict or fail a pod, and end the controller after this number of writes."""
    if event == "evicted":
        fake.evict("j-a-0")
    else:
        fake.set_phase("Failed", ["j-a-0"])
    fake.reconcile_once(fake.decide, most=written)


class TestCrashes:
    """After a crash at any write, the next controller continues the work."""

    def test_a_crash_before_the_old_podgroup_is_removed(self) -> None:
        fake = FakeJobCluster({"tasks": [task()]}).work()
        old = fake.group.metadata.uid
        body = {"action": "RestartJob", "target": {"kind": "Job", "name": "j", "uid": fake.job.metadata.uid}}
        fake.put(COMMANDS, {"metadata": {"name": "c"}, **body})
        fake.reconcile_once(fake.decide, most=1)
        fake.work()
        assert fake.phase == "Pending"
        assert fake.group.metadata.uid != old
        assert fake.group.metadata.annotations["volcano.sh/job-version"] == "1"

    @pytest.mark.parametrize("event", ["evicted", "failed"])
    @pytest.mark.parametrize("action", ["RestartJob", "AbortJob", "CompleteJob"])
    @pytest.mark.parametrize("written", range(7))
    def test_a_crash_after_any_write(self, event: str, action: str, written: int) -> None:
        policies = [{"events": ["PodEvicted", "PodFailed"], "action": action}]
        fake = FakeJobCluster({"tasks": [task("a", 3)], "policies": policies}).run()
        crash_after(fake, event, written)
        for _ in range(4):
            fake.work()
            fake.remove_terminating()
            fake.admit()
        expected = {"RestartJob": "Pending", "AbortJob": "Aborted", "CompleteJob": "Completed"}[action]
        assert fake.phase == expected
        assert fake.job.status.version == 1
        assert len(fake.pods("Pending")) == (3 if action == "RestartJob" else 0)

    @pytest.mark.parametrize("event", ["evicted", "failed"])
    @pytest.mark.parametrize("action", ["RestartTask", "RestartPod"])
    @pytest.mark.parametrize("written", range(8))
    def test_a_crash_during_a_partial_restart(self, event: str, action: str, written: int) -> None:
        policies = [{"events": ["PodEvicted", "PodFailed"], "action": action}]
        fake = FakeJobCluster({"tasks": [task("a", 3), task("b", 1)], "policies": policies}).run()
        crash_after(fake, event, written)
        for _ in range(4):
            fake.work()
            fake.remove_terminating()
        assert fake.job.status.retry_count == 1, "a restart that was interrupted is one restart"
        twice = {name for name in fake.pods() if fake.created.count(name) == 2}
        assert twice == ({"j-a-0"} if action == "RestartPod" else {"j-a-0", "j-a-1", "j-a-2"})
        assert len(fake.created) == 4 + len(twice)
        assert fake.job.status.restarting is None
        fake.set_phase("Running")
        assert fake.work().phase == "Running"
