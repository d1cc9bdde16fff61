"""Policies of a Job: which one applies, when and how often, and what is not an event.

`test_policy_matrix.py` has each event with each action.
"""

from __future__ import annotations

import pytest

from schedspec.scheduler.controllers.runtime.objects import JOBS
from tests.support.controllers.fake_cluster import FakeJobCluster, task


def an_eviction(fake: FakeJobCluster) -> None:
    fake.evict("j-a-1")


def a_failure(fake: FakeJobCluster) -> None:
    fake.set_phase("Failed", ["j-a-1"], exit_code=3)


def an_update(fake: FakeJobCluster) -> None:
    fake.change_spec(JOBS, "j", lambda spec: spec.update(minAvailable=3))


def test_a_policy_of_the_task_precedes_one_of_the_job() -> None:
    tasks = [task("a", policies=[{"event": "PodFailed", "action": "CompleteJob"}]), task("b")]
    fake = FakeJobCluster({"tasks": tasks, "policies": [{"event": "*", "action": "AbortJob"}]}).run()
    a_failure(fake)
    assert fake.work().phase == "Completing"


def test_the_first_policy_that_matches_applies() -> None:
    policies = [{"exitCode": 4, "action": "TerminateJob"}, {"exitCode": 3, "action": "CompleteJob"}]
    fake = FakeJobCluster(
        {"tasks": [task()], "policies": [*policies, {"event": "PodFailed", "action": "AbortJob"}]}
    ).run()
    a_failure(fake)
    assert fake.work().phase == "Completing"


def test_a_policy_for_another_exit_code_does_not_apply() -> None:
    fake = FakeJobCluster({"tasks": [task(replicas=3)], "policies": [{"exitCode": 4, "action": "AbortJob"}]}).run()
    a_failure(fake)
    assert fake.work().phase == "Running"


@pytest.mark.parametrize("event", ["PodPending", "PodRunning", "JobUpdated"])
def test_any_event_excludes_the_events_of_every_healthy_job(event: str) -> None:
    fake = FakeJobCluster({"tasks": [task("a"), task("b")], "policies": [{"event": "*", "action": "AbortJob"}]}).run()
    if event == "JobUpdated":
        an_update(fake)
    assert fake.work().phase == "Running"


def test_several_events_share_an_action() -> None:
    policy = {"events": ["PodFailed", "PodEvicted"], "action": "AbortJob"}
    for trigger in (a_failure, an_eviction):
        fake = FakeJobCluster({"tasks": [task()], "policies": [policy]}).run()
        trigger(fake)
        assert fake.work().phase == "Aborting"


class TestTimeouts:
    """An action with a timeout waits for it, and is dropped if its cause ends earlier."""

    policies = ({"event": "PodFailed", "action": "AbortJob", "timeout": "1m30s"},)

    def test_the_action_waits_for_its_timeout(self) -> None:
        fake = FakeJobCluster({"tasks": [task()], "policies": list(self.policies)}).run()
        a_failure(fake)
        fake.work()
        assert fake.phase == "Running"
        assert fake.again == 90.0
        fake.now += 89
        assert fake.work().phase == "Running"
        fake.now += 1
        assert fake.work().phase == "Aborting"

    def test_a_pod_that_recovers_cancels_the_action(self) -> None:
        fake = FakeJobCluster({"tasks": [task()], "policies": list(self.policies)}).run()
        a_failure(fake)
        fake.work()
        fake.set_phase("Running")
        fake.now += 100
        fake.work()
        assert fake.phase == "Running"
        assert fake.job.status.delayed is None
        assert fake.again is None

    def test_an_evicted_pod_that_runs_again_in_time_cancels_the_action(self) -> None:
        policy = {"event": "PodEvicted", "action": "RestartJob", "timeout": "30s"}
        fake = FakeJobCluster({"tasks": [task(replicas=3)], "minAvailable": 1, "policies": [policy]}).run()
        an_eviction(fake)
        fake.work()
        fake.remove_terminating()
        fake.work()
        assert fake.pods("Pending") == ["j-a-1"]
        fake.set_phase("Running")
        fake.work()
        fake.now += 60
        assert fake.work().job.status.version == 0

    def test_the_timeout_of_a_pending_pod_starts_at_its_creation(self) -> None:
        policy = {"event": "PodPending", "action": "AbortJob", "timeout": "10m"}
        fake = FakeJobCluster({"tasks": [task()], "policies": [policy]})
        fake.work()
        fake.admit()
        fake.now += 60
        fake.work()
        fake.now += 300
        fake.work()
        assert fake.phase == "Pending"
        assert fake.again == 300.0
        fake.now += 300
        assert fake.work().phase == "Aborting"

    def test_a_delayed_restart_replaces_only_its_pod(self) -> None:
        policy = {"event": "PodFailed", "action": "RestartPod", "timeout": "30s"}
        fake = FakeJobCluster({"tasks": [task("a"), task("b")], "policies": [policy]}).run()
        a_failure(fake)
        fake.work()
        fake.now += 30
        fake.work()
        fake.remove_terminating()
        fake.work()
        assert [name for name in fake.pods() if fake.created.count(name) == 2] == ["j-a-1"]

    def test_a_restart_of_one_pod_keeps_the_delayed_actions_of_other_pods(self) -> None:
        policies = [
            {"event": "PodFailed", "action": "RestartPod", "timeout": "30s"},
            {"event": "PodEvicted", "action": "AbortJob", "timeout": "50s"},
        ]
        fake = FakeJobCluster({"tasks": [task("a"), task("b")], "policies": policies}).run()
        a_failure(fake)
        fake.evict("j-b-1")
        fake.work()
        fake.now += 30
        assert fake.work().phase == "Restarting"
        fake.now += 30
        assert fake.work().again is None, "a due action does not reconcile the job while pods terminate"
        fake.remove_terminating()
        assert fake.work().phase == "Aborting"

    def test_a_restart_of_a_task_drops_only_the_delayed_restarts_within_the_task(self) -> None:
        policies = [
            {"event": "PodFailed", "action": "RestartPod", "timeout": "30s"},
            {"event": "PodEvicted", "action": "RestartTask"},
        ]
        fake = FakeJobCluster({"tasks": [task("a", replicas=3), task("b")], "policies": policies}).run()
        fake.set_phase("Failed", ["j-a-1", "j-b-1"], exit_code=3)
        fake.work()
        fake.evict("j-a-2")
        fake.work()
        assert [one.pod for one in fake.job.status.delayed] == ["j-b-1"]

    def test_the_timeout_starts_at_the_creation_of_a_pod_that_is_noticed_late(self) -> None:
        policy = {"event": "PodPending", "action": "AbortJob", "timeout": "10m"}
        fake = FakeJobCluster({"tasks": [task()], "policies": [policy]})
        fake.work()
        fake.admit()
        fake.reconcile_once(fake.decide)
        fake.now += 100
        fake.work()
        assert fake.again == 500.0

    def test_a_delayed_action_is_in_the_status(self) -> None:
        fake = FakeJobCluster({"tasks": [task()], "policies": list(self.policies)}).run()
        a_failure(fake)
        fake.work()
        (waiting,) = fake.job.status.delayed
        assert (waiting.event, waiting.action, waiting.pod) == ("PodFailed", "AbortJob", "j-a-1")


class TestRetries:
    def test_a_job_fails_after_too_many_restarts(self) -> None:
        policy = {"event": "PodFailed", "action": "RestartJob"}
        fake = FakeJobCluster({"tasks": [task()], "maxRetry": 2, "policies": [policy]}).run()
        for expected in ("Pending", "Failed"):
            a_failure(fake)
            fake.work()
            fake.remove_terminating()
            fake.work()
            assert fake.phase == expected
            fake.admit()
            fake.work()
            fake.set_phase("Running")
            fake.work()
        assert fake.pods() == []

    def test_an_eviction_while_no_controller_ran_is_noticed(self) -> None:
        fake = FakeJobCluster({"tasks": [task()], "policies": [{"event": "PodEvicted", "action": "AbortJob"}]}).run()
        an_eviction(fake)
        fake.remove_terminating()
        assert fake.work().phase == "Aborting"

    def test_a_pod_that_failed_before_an_abort_does_not_abort_the_resumed_job(self) -> None:
        fake = FakeJobCluster(
            {"tasks": [task("a", 3)], "policies": [{"event": "PodFailed", "action": "AbortJob"}]}
        ).run()
        a_failure(fake)
        fake.work()
        fake.remove_terminating()
        fake.work()
        fake.command("ResumeJob")
        fake.admit()
        fake.work()
        assert fake.pods() == ["j-a-0", "j-a-1", "j-a-2"]
        assert fake.phases[-2:] == ["Restarting", "Pending"]

    def test_pods_of_an_older_version_cause_no_events(self) -> None:
        policy = {"event": "PodFailed", "action": "RestartJob"}
        fake = FakeJobCluster({"tasks": [task()], "policies": [policy]}).run()
        a_failure(fake)
        fake.work()
        fake.work()
        assert fake.job.status.retry_count == 1


LATER = {"PodEvicted": an_eviction, "JobUpdated": an_update}
FIRST = ("a failed pod", "a timeout")


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("event", LATER)
@pytest.mark.parametrize("timeout", ["", "5s"])
def test_an_event_that_is_first_seen_beside_another_action_is_not_lost(first: str, event: str, timeout: str) -> None:
    """The status that is written with the first action no longer shows the event."""
    delay = {"timeout": "9s"} if first == "a timeout" else {}
    wait = {"timeout": timeout} if timeout else {}
    policies = [{"exitCode": 3, "action": "RestartPod", **delay}, {"event": event, "action": "AbortJob", **wait}]
    fake = FakeJobCluster({"minAvailable": 1, "maxRetry": 9, "tasks": [task(replicas=3)], "policies": policies}).run()
    fake.set_phase("Failed", ["j-a-0"], exit_code=3)
    if delay:
        fake.work()
        fake.now += 9
    LATER[event](fake)
    phases = [fake.work().phase]
    for _ in range(3):
        fake.remove_terminating()
        fake.now += 5
        phases.append(fake.work().phase)
    assert phases[-1] == "Aborted", phases


def test_the_restart_of_a_pod_does_not_wait_for_the_pod_that_replaces_it() -> None:
    policies = [{"exitCode": 3, "action": "RestartPod"}, {"event": "PodEvicted", "action": "RestartPod"}]
    fake = FakeJobCluster({"minAvailable": 1, "maxRetry": 9, "tasks": [task(replicas=3)], "policies": policies}).run()
    fake.set_phase("Failed", ["j-a-0"], exit_code=3)
    an_eviction(fake)
    fake.work()
    fake.remove_terminating()
    fake.work()
    replacement = fake.get_uid("j-a-1")
    fake.run()
    assert replacement
    assert fake.get_uid("j-a-1") == replacement
