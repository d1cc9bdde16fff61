"""An API server whose definition of a kind lacks fields gets the other fields."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from schedspec.scheduler.controllers.runtime.executor import WriteExecutor
from schedspec.scheduler.controllers.runtime.objects import JOBS, DelayedAction, JobState, JobStatus, TaskState
from schedspec.scheduler.controllers.runtime.writes import ApplyObject
from schedspec.scheduler.kube import EventRecorder, Patch, UndeclaredField
from tests.support.fake_server import Answer, Handler, Reply, Request, serving, status

STATUS = JobStatus(
    JobState("Pending"),
    running=2,
    observed_generation=3,
    delayed=[DelayedAction("PodFailed")],
    task_status_count={"a": TaskState({"Running": 2})},
)
SERVED = {
    "state": {"type": "object", "properties": {"phase": {"type": "string"}}},
    "running": {"type": "integer"},
    "taskStatusCount": {
        "type": "object",
        "additionalProperties": {
            "type": "object",
            "properties": {"phase": {"type": "object", "additionalProperties": {"type": "integer"}}},
        },
    },
}
"""The properties of the status in the served definition."""


def open_api(properties: dict[str, Any]) -> dict[str, Any]:
    kind = {"group": JOBS.group, "version": JOBS.version, "kind": JOBS.kind}
    fields = {"apiVersion": {}, "kind": {}, "metadata": {"allOf": [{"$ref": "…"}]}}
    schema = {
        "type": "object",
        "properties": {**fields, "status": {"type": "object", "properties": properties}},
        "x-kubernetes-group-version-kind": [kind],
    }
    return {"components": {"schemas": {"io.k8s.Other": {}, "sh.volcano.Job": schema}}}


def strict(requests: list[tuple[str, Any]], served: dict[str, Any] | None) -> Handler:
    """Return a server that refuses an apply with any field that its definition lacks."""

    def handle(request: Request) -> Answer:
        path = request.path.partition("?")[0]
        body = json.loads(request.body) if request.body else None
        requests.append((f"{request.method} {path}", body))
        if path.startswith("/openapi"):
            return Reply(body=open_api(served)) if served is not None else status(403, "Forbidden")
        for name in body["status"]:
            if name not in SERVED:
                text = f"failed to create typed patch object: .status.{name}: field not declared in schema"
                return status(500, "InternalError", text)
        return Reply(body={"metadata": {"name": "j", "namespace": "ns"}})

    return handle


def apply_status(body: Any = STATUS) -> ApplyObject:
    return ApplyObject(JOBS, "ns", "j", {"status": body}, "status", manager="m")


async def test_undeclared_fields_are_left_out_after_one_refusal() -> None:
    requests: list[tuple[str, Any]] = []
    async with serving(strict(requests, SERVED)) as (_, client):
        for _ in range(2):
            await client.patch(
                JOBS, "j", {"status": STATUS}, "ns", kind=Patch.APPLY, sub="status", manager="m", force=True
            )
        assert client.served.lacks(JOBS, "status", "observedGeneration")
        assert not client.served.lacks(JOBS, "status", "running")
        assert not client.served.lacks(JOBS, "status", "taskStatusCount", "a")
    methods = [what.split()[0] for what, _ in requests]
    assert methods == ["PATCH", "GET", "PATCH", "PATCH"]
    kept = {"state": {"phase": "Pending"}, "running": 2, "taskStatusCount": {"a": {"phase": {"Running": 2}}}}
    assert [body for what, body in requests[2:]] == [{"status": kept}] * 2


class _Events:
    def __init__(self) -> None:
        self.messages: list[str] = []

    def event(self, *parts: Any) -> None:
        self.messages.append(parts[-1])


@pytest.mark.parametrize("served", [None, {**SERVED, "observedGeneration": {}}], ids=["unknown", "it lies"])
async def test_a_refused_status_is_reported_in_an_event_and_in_readiness(served: dict[str, Any] | None) -> None:
    events, requests = _Events(), list[tuple[str, Any]]()
    async with serving(strict(requests, served)) as (_, client):
        executor = WriteExecutor(client, cast(EventRecorder, events), lambda _: ())
        with pytest.raises(UndeclaredField):
            await executor.carry_out([apply_status()], (JOBS, cast(Any, None)))
        assert "observedGeneration" in executor.refused[JOBS.id]
        assert any("observedGeneration" in message for message in events.messages)
        await executor.carry_out([apply_status({"running": 1})])
        assert executor.refused == {}


async def test_the_status_shows_why_the_rest_of_it_is_refused() -> None:
    requests: list[tuple[str, Any]] = []
    write = ApplyObject(
        JOBS,
        "ns",
        "j",
        {"status": STATUS},
        "status",
        manager="m",
        on_refusal=lambda message: {"status": {"state": {"message": message}}},
    )
    async with serving(strict(requests, None)) as (_, client):
        executor = WriteExecutor(client, cast(EventRecorder, None), lambda _: ())
        with pytest.raises(UndeclaredField):
            await executor.carry_out([write])
    assert "observedGeneration" in requests[-1][1]["status"]["state"]["message"]
