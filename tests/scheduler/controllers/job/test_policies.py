"""Policies of a Job: which one is taken, when, how often, and what no event is. (Each event with each action:
``test_policy_matrix.py``.)
"""

from __future__ import annotations

import pytest

from scheduler.controllers.runtime.objects import JOBS
from tests.support.controllers.fake_cluster import JobDesk, task


def an_eviction(desk: JobDesk) -> None:
    desk.evict("j-a-1")


def a_failure(desk: JobDesk) -> None:
    desk.become("Failed", ["j-a-1"], exit_code=3)


def an_update(desk: JobDesk) -> None:
    desk.change_spec(JOBS, "j", lambda spec: spec.update(minAvailable=3))


def test_the_policy_of_a_task_comes_before_that_of_the_job() -> None:
    tasks = [task("a", policies=[{"event": "PodFailed", "action": "CompleteJob"}]), task("b")]
    desk = JobDesk({"tasks": tasks, "policies": [{"event": "*", "action": "AbortJob"}]}).run()
    a_failure(desk)
    assert desk.work().phase == "Completing"


def test_the_first_policy_that_matches_is_taken() -> None:
    policies = [{"exitCode": 4, "action": "TerminateJob"}, {"exitCode": 3, "action": "CompleteJob"}]
    desk = JobDesk({"tasks": [task()], "policies": [*policies, {"event": "PodFailed", "action": "AbortJob"}]}).run()
    a_failure(desk)
    assert desk.work().phase == "Completing"


def test_an_exit_code_of_another_number_is_not_meant() -> None:
    desk = JobDesk({"tasks": [task(replicas=3)], "policies": [{"exitCode": 4, "action": "AbortJob"}]}).run()
    a_failure(desk)
    assert desk.work().phase == "Running"


@pytest.mark.parametrize("event", ["PodPending", "PodRunning", "JobUpdated"])
def test_any_event_does_not_mean_what_happens_in_every_healthy_life(event: str) -> None:
    desk = JobDesk({"tasks": [task("a"), task("b")], "policies": [{"event": "*", "action": "AbortJob"}]}).run()
    if event == "JobUpdated":
        an_update(desk)
    assert desk.work().phase == "Running"


def test_several_events_share_an_action() -> None:
    policy = {"events": ["PodFailed", "PodEvicted"], "action": "AbortJob"}
    for happens in (a_failure, an_eviction):
        desk = JobDesk({"tasks": [task()], "policies": [policy]}).run()
        happens(desk)
        assert desk.work().phase == "Aborting"


class TestTimeouts:
    """An action with a timeout waits for it, and is forgotten where its cause passes."""

    policies = ({"event": "PodFailed", "action": "AbortJob", "timeout": "1m30s"},)

    def test_the_action_waits(self) -> None:
        desk = JobDesk({"tasks": [task()], "policies": list(self.policies)}).run()
        a_failure(desk)
        desk.work()
        assert desk.phase == "Running"
        assert desk.again == 90.0
        desk.now += 89
        assert desk.work().phase == "Running"
        desk.now += 1
        assert desk.work().phase == "Aborting"

    def test_a_pod_that_recovers_cancels_it(self) -> None:
        desk = JobDesk({"tasks": [task()], "policies": list(self.policies)}).run()
        a_failure(desk)
        desk.work()
        desk.become("Running")
        desk.now += 100
        desk.work()
        assert desk.phase == "Running"
        assert desk.job.status.delayed is None
        assert desk.again is None

    def test_an_evicted_pod_that_runs_again_in_time_cancels_it(self) -> None:
        policy = {"event": "PodEvicted", "action": "RestartJob", "timeout": "30s"}
        desk = JobDesk({"tasks": [task(replicas=3)], "minAvailable": 1, "policies": [policy]}).run()
        an_eviction(desk)
        desk.work()
        desk.leave()
        desk.work()
        assert desk.pods("Pending") == ["j-a-1"]
        desk.become("Running")
        desk.work()
        desk.now += 60
        assert desk.work().job.status.version == 0

    def test_a_pod_that_stays_pending_is_counted_from_its_creation(self) -> None:
        policy = {"event": "PodPending", "action": "AbortJob", "timeout": "10m"}
        desk = JobDesk({"tasks": [task()], "policies": [policy]})
        desk.work()
        desk.admit()
        desk.now += 60
        desk.work()
        desk.now += 300
        desk.work()
        assert desk.phase == "Pending"
        assert desk.again == 300.0
        desk.now += 300
        assert desk.work().phase == "Aborting"

    def test_it_knows_its_pod_until_then(self) -> None:
        policy = {"event": "PodFailed", "action": "RestartPod", "timeout": "30s"}
        desk = JobDesk({"tasks": [task("a"), task("b")], "policies": [policy]}).run()
        a_failure(desk)
        desk.work()
        desk.now += 30
        desk.work()
        desk.leave()
        desk.work()
        assert [name for name in desk.pods() if desk.created.count(name) == 2] == ["j-a-1"]

    def test_a_pending_pod_that_is_noticed_late_has_waited_all_the_same(self) -> None:
        policy = {"event": "PodPending", "action": "AbortJob", "timeout": "10m"}
        desk = JobDesk({"tasks": [task()], "policies": [policy]})
        desk.work()
        desk.admit()
        desk.turn(desk.decide)
        desk.now += 100
        desk.work()
        assert desk.again == 500.0

    def test_it_is_remembered_by_the_next_controller(self) -> None:
        desk = JobDesk({"tasks": [task()], "policies": list(self.policies)}).run()
        a_failure(desk)
        desk.work()
        (waiting,) = desk.job.status.delayed
        assert (waiting.event, waiting.action, waiting.pod) == ("PodFailed", "AbortJob", "j-a-1")


class TestRetries:
    def test_a_job_fails_when_it_was_restarted_too_often(self) -> None:
        policy = {"event": "PodFailed", "action": "RestartJob"}
        desk = JobDesk({"tasks": [task()], "maxRetry": 2, "policies": [policy]}).run()
        for expected in ("Pending", "Failed"):
            a_failure(desk)
            desk.work()
            desk.leave()
            desk.work()
            assert desk.phase == expected
            desk.admit()
            desk.work()
            desk.become("Running")
            desk.work()
        assert desk.pods() == []

    def test_an_eviction_while_no_controller_ran_is_noticed(self) -> None:
        desk = JobDesk({"tasks": [task()], "policies": [{"event": "PodEvicted", "action": "AbortJob"}]}).run()
        an_eviction(desk)
        desk.leave()
        assert desk.work().phase == "Aborting"

    def test_what_failed_before_an_abort_does_not_abort_the_resumed_job(self) -> None:
        desk = JobDesk({"tasks": [task("a", 3)], "policies": [{"event": "PodFailed", "action": "AbortJob"}]}).run()
        a_failure(desk)
        desk.work()
        desk.leave()
        desk.work()
        desk.command("ResumeJob")
        desk.admit()
        desk.work()
        assert desk.pods() == ["j-a-0", "j-a-1", "j-a-2"]
        assert desk.phases[-2:] == ["Restarting", "Pending"]

    def test_pods_of_an_older_version_are_no_news(self) -> None:
        policy = {"event": "PodFailed", "action": "RestartJob"}
        desk = JobDesk({"tasks": [task()], "policies": [policy]}).run()
        a_failure(desk)
        desk.work()
        desk.work()
        assert desk.job.status.retry_count == 1
