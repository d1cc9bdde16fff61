"""Every event with every action, of the job and of a task, at once and after a timeout."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from schedspec.scheduler.controllers.runtime.objects import JOBS
from tests.support.controllers.fake_cluster import START, FakeJobCluster, task

Trigger = Callable[[FakeJobCluster], object]
ALL = ("j-a-0", "j-a-1", "j-b-0", "j-b-1")


def failed(fake: FakeJobCluster) -> None:
    fake.set_phase("Failed", ["j-a-1"], exit_code=137)


def evicted(fake: FakeJobCluster) -> None:
    fake.evict("j-a-1")
    fake.work()
    fake.remove_terminating()


def restarted(fake: FakeJobCluster) -> None:
    fake.objects["pods", "j-a-1"]["status"]["containerStatuses"] = [{"name": "x", "restartCount": 4}]


EVENTS: dict[str, tuple[dict[str, Any], Trigger, str, str]] = {
    "exit code": ({"exitCode": 137}, failed, "a", "j-a-1"),
    "*": ({"event": "*"}, failed, "a", "j-a-1"),
    "PodFailed": ({"event": "PodFailed"}, failed, "a", "j-a-1"),
    "PodEvicted": ({"event": "PodEvicted"}, evicted, "a", "j-a-1"),
    "PodPending": ({"event": "PodPending"}, lambda fake: fake.set_phase("Pending", ["j-a-1"]), "a", "j-a-1"),
    "PodRunning": ({"event": "PodRunning"}, lambda fake: fake.set_phase("Running", ["j-a-1"]), "a", ""),
    "TaskFailed": ({"event": "TaskFailed"}, restarted, "a", ""),
    "TaskCompleted": (
        {"event": "TaskCompleted"},
        lambda fake: fake.set_phase("Succeeded", ["j-a-0", "j-a-1"]),
        "a",
        "",
    ),
    "Unknown": ({"event": "Unknown"}, lambda fake: fake.admit("Unknown"), "", ""),
    "JobUpdated": (
        {"event": "JobUpdated"},
        lambda fake: fake.change_spec(JOBS, "j", lambda spec: spec.update(ttlSecondsAfterFinished=60)),
        "",
        "",
    ),
}
"""For each event: the policy that names it, the act that causes it, its task and its pod."""
ENDS = {
    "AbortJob": ["Aborting", "Aborted"],
    "TerminateJob": ["Terminating", "Terminated"],
    "CompleteJob": ["Completing", "Completed"],
}
ACTIONS = (*ENDS, "RestartJob", "RestartTask", "RestartPod", "ResumeJob")
MATRIX = [
    (event, action, level, timeout)
    for event, action, level, timeout in itertools.product(EVENTS, ACTIONS, ("job", "task"), ("", "30s"))
    if (level == "job" or EVENTS[event][2]) and (timeout or event != "PodPending")  # PodPending needs a timeout
]


def begin(policy: dict[str, Any], level: str, event: str) -> FakeJobCluster:
    """Return a running job with one policy; if a pod's start is the event, one of its pods does not run yet."""
    tasks = [task("a", **({"policies": [policy]} if level == "task" else {})), task("b")]
    fake = FakeJobCluster({"tasks": tasks, "minAvailable": 1, **({"policies": [policy]} if level == "job" else {})})
    fake.work()
    fake.admit()
    fake.work()
    if event != "PodRunning":
        return fake.run()
    fake.set_phase("Running", [name for name in ALL if not name.startswith("j-a")])
    fake.objects[JOBS.id, "j"]["status"] = {
        **fake.objects[JOBS.id, "j"]["status"],
        "state": {"phase": "Running"},
        "taskStatusCount": {"a": {"phase": {"Pending": 2}}, "b": {"phase": {"Running": 2}}},
    }
    return fake


@pytest.mark.parametrize(("event", "action", "level", "timeout"), MATRIX)
def test_every_event_with_every_action(event: str, action: str, level: str, timeout: str) -> None:
    named, trigger, of_task, of_pod = EVENTS[event]
    policy = {**named, "action": action, **({"timeout": timeout} if timeout else {})}
    fake = begin(policy, level, event)
    before = {name: fake.objects["pods", name]["metadata"]["uid"] for name in ALL}
    group = fake.group.metadata.uid
    trigger(fake)
    fake.work()
    if timeout and _has_effect(action, of_task, of_pod):
        assert (fake.phase, fake.job.status.retry_count) == ("Running", 0), "not yet"
        assert [(one.action, one.until > "2027-01-15T08:00:00Z") for one in fake.job.status.delayed] == [(action, True)]
        fake.now = START + 31
        fake.work()
    fake.remove_terminating()
    fake.work()
    phase, status = fake.phase, fake.job.status
    executed = sum(event.reason == "ExecuteAction" for event in fake.events)
    assert executed == _has_effect(action, of_task, of_pod)
    gone = {name for name in ALL if fake.get_uid(name) != before[name]}
    if action in ENDS:
        assert (phase, status.version, status.retry_count) == (ENDS[action][1], 1, 0)
        assert fake.phases[-2:] == ENDS[action]
        assert fake.pods("Running") == fake.pods("Pending") == []
        assert fake.group is None
    elif action == "RestartJob":
        assert (phase, status.version, status.retry_count) == ("Pending", 1, 1)
        assert fake.phases[-2:] == ["Restarting", "Pending"]
        assert fake.group.metadata.uid != group, "the job has to be admitted again"
        assert fake.pods() == []
    elif _has_effect(action, of_task, of_pod):
        assert (status.version, status.retry_count) == (0, 1)
        assert fake.phases.count("Restarting") == 1
        assert gone == ({of_pod} if action == "RestartPod" else {"j-a-0", "j-a-1"})
        assert set(fake.pods()) == set(ALL), "the replaced pods have the same names"
        assert fake.group.metadata.uid == group
        fake.set_phase("Running")
        assert fake.work().phase == "Running"
    else:
        assert (phase, status.version, status.retry_count) == ("Running", 0, 0)
        assert gone <= ({"j-a-1"} if event == "PodEvicted" else set())
        assert fake.group.metadata.uid == group


@pytest.mark.parametrize("event", EVENTS)
def test_without_a_policy_only_missing_pods_are_created_again(event: str) -> None:
    fake = FakeJobCluster({"tasks": [task("a", 3), task("b")], "minAvailable": 1}).run()
    EVENTS[event][1](fake)
    fake.work()
    fake.remove_terminating()
    fake.work()
    assert fake.phase == "Running"
    assert fake.job.status.version == 0
    assert len(fake.pods()) == 5


def _has_effect(action: str, of_task: str, of_pod: str) -> bool:
    """Whether the action has an effect: a running job cannot be resumed, and an event without a pod restarts none."""
    return bool({"RestartTask": of_task, "RestartPod": of_pod, "ResumeJob": ""}.get(action, True))


@pytest.mark.parametrize(("allowed", "restarts", "failed"), [(1, 1, False), (1, 2, True), (5, 5, False), (0, 1, True)])
def test_a_task_fails_after_more_restarts_than_its_max_retry(allowed: int, restarts: int, failed: bool) -> None:
    policies = [{"event": "TaskFailed", "action": "TerminateJob"}]
    fake = FakeJobCluster({"tasks": [task("a", maxRetry=allowed), task("b")], "policies": policies}).run()
    fake.objects["pods", "j-a-1"]["status"]["containerStatuses"] = [{"name": "x", "restartCount": restarts}]
    fake.work()
    assert fake.phase == ("Terminating" if failed else "Running")
