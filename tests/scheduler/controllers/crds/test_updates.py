"""Fields of an existing object that users may change, and fields that an admission policy protects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest

from schedspec.api.client import MERGE, Api
from schedspec.api.errors import RejectedError
from tests.scheduler.controllers.crds.asking import KINDS, NUMBERS, Body, path, pod

pytestmark = pytest.mark.embedded
_OF_TASKS = "spec.tasks: only replicas and minAvailable of a task can be changed"


def _task(**change: object) -> Body:
    return {"tasks": [{"name": "a", "replicas": 2, "template": pod(), **change}]}


FIXED: list[tuple[Body, str]] = [
    ({"queue": "other"}, "spec.queue: cannot be changed after creation; only minAvailable"),
    ({"schedulerName": "other"}, "spec.schedulerName: cannot be changed"),
    ({"minSuccess": 1}, "spec.minSuccess: cannot be changed"),
    ({"maxRetry": 5}, "spec.maxRetry: cannot be changed"),
    ({"plugins": {"svc": []}}, "spec.plugins: cannot be changed"),
    ({"runningEstimate": "1h"}, "spec.runningEstimate: cannot be changed"),
    ({"policies": [{"event": "PodFailed", "action": "AbortJob"}]}, "spec.policies: cannot be changed"),
    ({"queue": "other", "maxRetry": 5}, "spec.queue, spec.maxRetry: cannot be changed"),
    (_task(template=pod("other")), _OF_TASKS),
    (_task(name="b"), _OF_TASKS),
    (_task(maxRetry=7), _OF_TASKS),
    (_task(policies=[{"event": "PodFailed", "action": "AbortJob"}]), _OF_TASKS),
    (_task(dependsOn={"iteration": "any"}), _OF_TASKS),
    ({"tasks": [{"name": name, "replicas": 2, "template": pod()} for name in "ab"]}, "1 tasks cannot become 2"),
]


@pytest.fixture
def job(api: Api) -> Iterator[Callable[[Body], Body]]:
    """Return a function that changes an existing job by a merge patch."""
    name = f"job-{next(NUMBERS)}"
    spec = {
        "queue": "default",
        "minAvailable": 1,
        "maxRetry": 3,
        "tasks": [{"name": "a", "replicas": 2, "template": pod()}],
    }
    body = {"apiVersion": KINDS["Job"][0], "kind": "Job", "metadata": {"name": name}, "spec": spec}
    api.call("POST", path("Job"), body=body)
    yield lambda change: api.call("PATCH", path("Job", name), body={"spec": change}, content_type=MERGE)
    api.delete(path("Job", name))


class TestUpdatesOfAJob:
    def test_fields_that_may_change(self, job: Callable[[Body], Body]) -> None:
        job({"minAvailable": 2, "priorityClassName": "high", "ttlSecondsAfterFinished": 5})
        job({"tasks": [{"name": "a", "replicas": 5, "minAvailable": 1, "template": pod()}]})

    @pytest.mark.parametrize(("change", "message"), FIXED)
    def test_fields_that_may_not_change(self, job: Callable[[Body], Body], change: Body, message: str) -> None:
        with pytest.raises(RejectedError, match=re.escape(message)):
            job(change)


@pytest.fixture
def queue(api: Api) -> Iterator[Callable[[Body], Body]]:
    """Return a function that changes an existing queue by a merge patch."""
    name = f"queue-{next(NUMBERS)}"
    body = {"apiVersion": KINDS["Queue"][0], "kind": "Queue", "metadata": {"name": name}}
    api.call("POST", path("Queue"), body={**body, "spec": {"deserved": {"cpu": 2}, "capability": {"cpu": 4}}})
    yield lambda change: api.call("PATCH", path("Queue", name), body=change, content_type=MERGE)
    api.delete(path("Queue", name))


class TestUpdatesOfAQueue:
    @pytest.mark.parametrize(
        "change", [{"deserved": {"cpu": 4}}, {"deserved": None}, {"guarantee": {"resource": {"memory": "1Gi"}}}]
    )
    def test_fields_that_may_change(self, queue: Callable[[Body], Body], change: Body) -> None:
        queue({"spec": change})

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"deserved": {"cpu": 5}}, "spec.deserved is more than spec.capability: cpu 5 > 4"),
            ({"capability": {"cpu": 1}}, "spec.deserved is more than spec.capability: cpu 2 > 1"),
            ({"guarantee": {"resource": {"cpu": 3}}}, "spec.guarantee.resource is more than spec.deserved: cpu 3 > 2"),
        ],
    )
    def test_fields_that_may_not_change(self, queue: Callable[[Body], Body], change: Body, message: str) -> None:
        with pytest.raises(RejectedError, match=re.escape(message)):
            queue({"spec": change})
