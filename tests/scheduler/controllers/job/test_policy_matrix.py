"""Every event with every action, of the job and of a task, at once and after a timeout."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from scheduler.controllers.runtime.objects import JOBS
from tests.support.controllers.fake_cluster import START, JobDesk, task

Trigger = Callable[[JobDesk], object]
ALL = ("j-a-0", "j-a-1", "j-b-0", "j-b-1")


def failed(desk: JobDesk) -> None:
    desk.become("Failed", ["j-a-1"], exit_code=137)


def evicted(desk: JobDesk) -> None:
    desk.evict("j-a-1")
    desk.work()
    desk.leave()


def restarted(desk: JobDesk) -> None:
    desk.objects["pods", "j-a-1"]["status"]["containerStatuses"] = [{"name": "x", "restartCount": 4}]


EVENTS: dict[str, tuple[dict[str, Any], Trigger, str, str]] = {
    "exit code": ({"exitCode": 137}, failed, "a", "j-a-1"),
    "*": ({"event": "*"}, failed, "a", "j-a-1"),
    "PodFailed": ({"event": "PodFailed"}, failed, "a", "j-a-1"),
    "PodEvicted": ({"event": "PodEvicted"}, evicted, "a", "j-a-1"),
    "PodPending": ({"event": "PodPending"}, lambda desk: desk.become("Pending", ["j-a-1"]), "a", "j-a-1"),
    "PodRunning": ({"event": "PodRunning"}, lambda desk: desk.become("Running", ["j-a-1"]), "a", ""),
    "TaskFailed": ({"event": "TaskFailed"}, restarted, "a", ""),
    "TaskCompleted": (
        {"event": "TaskCompleted"},
        lambda desk: desk.become("Succeeded", ["j-a-0", "j-a-1"]),
        "a",
        "",
    ),
    "Unknown": ({"event": "Unknown"}, lambda desk: desk.admit("Unknown"), "", ""),
    "JobUpdated": (
        {"event": "JobUpdated"},
        lambda desk: desk.change_spec(JOBS, "j", lambda spec: spec.update(ttlSecondsAfterFinished=60)),
        "",
        "",
    ),
}
"""Each event: the policy that names it, what makes it happen, and the task and the pod that it is about."""
ENDS = {
    "AbortJob": ["Aborting", "Aborted"],
    "TerminateJob": ["Terminating", "Terminated"],
    "CompleteJob": ["Completing", "Completed"],
}
ACTIONS = (*ENDS, "RestartJob", "RestartTask", "RestartPod", "ResumeJob")
MATRIX = [
    (event, action, level, timeout)
    for event, action, level, timeout in itertools.product(EVENTS, ACTIONS, ("job", "task"), ("", "30s"))
    if (level == "job" or EVENTS[event][2]) and (timeout or event != "PodPending")  # who waits needs a time
]


def begin(policy: dict[str, Any], level: str, event: str) -> JobDesk:
    """A running job with one policy; where every run of a pod is an event, one of its pods does not run yet."""
    tasks = [task("a", **({"policies": [policy]} if level == "task" else {})), task("b")]
    desk = JobDesk({"tasks": tasks, "minAvailable": 1, **({"policies": [policy]} if level == "job" else {})})
    desk.work()
    desk.admit()
    desk.work()
    if event != "PodRunning":
        return desk.run()
    desk.become("Running", [name for name in ALL if not name.startswith("j-a")])
    desk.objects[JOBS.id, "j"]["status"] = {
        **desk.objects[JOBS.id, "j"]["status"],
        "state": {"phase": "Running"},
        "taskStatusCount": {"a": {"phase": {"Pending": 2}}, "b": {"phase": {"Running": 2}}},
    }
    return desk


@pytest.mark.parametrize(("event", "action", "level", "timeout"), MATRIX)
def test_every_event_with_every_action(event: str, action: str, level: str, timeout: str) -> None:
    named, trigger, of_task, of_pod = EVENTS[event]
    policy = {**named, "action": action, **({"timeout": timeout} if timeout else {})}
    desk = begin(policy, level, event)
    before = {name: desk.objects["pods", name]["metadata"]["uid"] for name in ALL}
    group = desk.group.metadata.uid
    trigger(desk)
    desk.work()
    if timeout and _has_effect(action, of_task, of_pod):
        assert (desk.phase, desk.job.status.retry_count) == ("Running", 0), "not yet"
        assert [(one.action, one.until > "2027-01-15T08:00:00Z") for one in desk.job.status.delayed] == [(action, True)]
        desk.now = START + 31
        desk.work()
    desk.leave()
    desk.work()
    phase, status = desk.phase, desk.job.status
    told = sum(event.reason == "ExecuteAction" for event in desk.events)
    assert told == _has_effect(action, of_task, of_pod)
    gone = {name for name in ALL if desk.get_uid(name) != before[name]}
    if action in ENDS:
        assert (phase, status.version, status.retry_count) == (ENDS[action][1], 1, 0)
        assert desk.phases[-2:] == ENDS[action]
        assert desk.pods("Running") == desk.pods("Pending") == []
        assert desk.group is None
    elif action == "RestartJob":
        assert (phase, status.version, status.retry_count) == ("Pending", 1, 1)
        assert desk.phases[-2:] == ["Restarting", "Pending"]
        assert desk.group.metadata.uid != group, "it has to be let into its queue again"
        assert desk.pods() == []
    elif _has_effect(action, of_task, of_pod):
        assert (status.version, status.retry_count) == (0, 1)
        assert desk.phases.count("Restarting") == 1
        assert gone == ({of_pod} if action == "RestartPod" else {"j-a-0", "j-a-1"})
        assert set(desk.pods()) == set(ALL), "whose names are taken up again"
        assert desk.group.metadata.uid == group
        desk.become("Running")
        assert desk.work().phase == "Running"
    else:
        assert (phase, status.version, status.retry_count) == ("Running", 0, 0)
        assert gone <= ({"j-a-1"} if event == "PodEvicted" else set())
        assert desk.group.metadata.uid == group


@pytest.mark.parametrize("event", EVENTS)
def test_without_a_policy_nothing_but_a_missing_pod_changes(event: str) -> None:
    desk = JobDesk({"tasks": [task("a", 3), task("b")], "minAvailable": 1}).run()
    EVENTS[event][1](desk)
    desk.work()
    desk.leave()
    desk.work()
    assert desk.phase == "Running"
    assert desk.job.status.version == 0
    assert len(desk.pods()) == 5


def _has_effect(action: str, of_task: str, of_pod: str) -> bool:
    """A running job cannot be resumed, and an event that is about no pod restarts none."""
    return bool({"RestartTask": of_task, "RestartPod": of_pod, "ResumeJob": ""}.get(action, True))


@pytest.mark.parametrize(("allowed", "restarts", "failed"), [(1, 1, False), (1, 2, True), (5, 5, False), (0, 1, True)])
def test_a_task_fails_after_as_many_restarts_as_it_says(allowed: int, restarts: int, failed: bool) -> None:
    policies = [{"event": "TaskFailed", "action": "TerminateJob"}]
    desk = JobDesk({"tasks": [task("a", maxRetry=allowed), task("b")], "policies": policies}).run()
    desk.objects["pods", "j-a-1"]["status"]["containerStatuses"] = [{"name": "x", "restartCount": restarts}]
    desk.work()
    assert desk.phase == ("Terminating" if failed else "Running")
