"""A pod event that changes only status and node leads to the same task as a full conversion."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from schedspec.scheduler.model.objects import Pod
from schedspec.scheduler.model.task import Task, TaskStatus

BASE: dict[str, Any] = {
    "metadata": {"name": "p-1", "namespace": "ns", "uid": "u", "labels": {"a": "b"}},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    "status": {"phase": "Pending"},
}


def a_pod(**parts: dict[str, Any]) -> Pod:
    return msgspec.convert({key: {**BASE[key], **parts.get(key, {})} for key in BASE}, Pod)


def test_a_bound_pod_that_starts_running_differs_only_in_status_and_node() -> None:
    before = Task(a_pod(), "ns/g")
    pod = a_pod(spec={"nodeName": "n"}, status={"phase": "Running", "startTime": "2026-01-01T00:00:00Z"})
    again = before.seen_again(pod)
    anew = Task(pod, "ns/g")
    assert again is not None
    assert {name: getattr(again, name) for name in Task.__slots__} == {n: getattr(anew, n) for n in Task.__slots__}
    assert (again.status, again.node) == (TaskStatus.RUNNING, "n")
    assert pod.spec.node_name == "n"
    assert before.status is TaskStatus.PENDING


@pytest.mark.parametrize(
    "parts",
    [
        {"metadata": {"uid": "successor"}},
        {"metadata": {"labels": {"a": "c"}}},
        {"metadata": {"annotations": {"volcano.sh/preemptable": "false"}}},
        {"spec": {"schedulingGates": [{"name": "x"}]}},
        {"spec": {"priority": 5}},
        {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}},
    ],
)
def test_a_change_that_affects_placement_requires_a_full_conversion(parts: dict[str, Any]) -> None:
    assert Task(a_pod(), "ns/g").seen_again(a_pod(**parts)) is None
