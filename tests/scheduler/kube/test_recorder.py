"""Events are merged while they wait, counted once they are written, and never delay other writes."""

from __future__ import annotations

import asyncio

import pytest

from schedspec.scheduler.kube import PODS, QUEUES, WARNING, Absent, EventData, EventRecorder
from schedspec.scheduler.model.objects import ObjectMeta
from tests.support.fake_server import (
    PROMPT,
    Answer,
    Hang,
    Reply,
    Request,
    cancelled,
    scripted,
    serving,
    status,
    until,
)

META = ObjectMeta(name="p", namespace="ns", uid="u")
DONE = Reply(201, {"metadata": {"name": "e"}})


async def test_events_of_one_object_and_reason_are_merged_while_they_wait() -> None:
    async with serving(lambda request: DONE) as (server, client):
        recorder = EventRecorder(client, "me")
        for message in ("one", "two", "three"):
            recorder.event(PODS, META, WARNING, "UnschedulableReason", message)
        task = asyncio.create_task(recorder.run())
        await recorder.drain()
        [request] = server.requests
        body = request.json()
        assert (body["message"], body["count"], body["source"]) == ("three", 3, {"component": "me"})
        assert body["involvedObject"]["uid"] == "u"
        await cancelled(task)


async def test_the_machine_readable_data_of_an_event_is_written() -> None:
    async with serving(lambda request: DONE) as (server, client):
        recorder = EventRecorder(client, "me")
        related = {"kind": "Pod", "namespace": "ns", "name": "q"}
        recorder.event(
            PODS,
            META,
            WARNING,
            "UnschedulableReason",
            "so",
            data=EventData("reclaim", related, {"x.dev/tier": "2"}),
        )
        recorder.event(PODS, META, WARNING, "Else", "so")
        task = asyncio.create_task(recorder.run())
        await recorder.drain()
        [body, plain] = [request.json() for request in server.requests]
        assert (body["action"], body["related"]) == ("reclaim", related)
        assert body["metadata"]["annotations"] == {"x.dev/tier": "2"}
        assert "action" not in plain
        assert "related" not in plain
        assert "annotations" not in plain["metadata"]
        await cancelled(task)


async def test_a_repeated_event_only_increases_its_count_until_it_has_expired() -> None:
    answers = scripted(DONE, DONE, status(404, "NotFound"), DONE)
    async with serving(answers) as (server, client):
        recorder = EventRecorder(client, "me")
        task = asyncio.create_task(recorder.run())
        for _ in range(3):
            recorder.event(PODS, META, WARNING, "UnschedulableReason", "same")
            await recorder.drain()
        assert [request.method for request in server.requests] == ["POST", "PATCH", "PATCH", "POST"]
        assert server.requests[1].json()["count"] == 2
        await cancelled(task)


async def test_the_events_of_a_deleted_object_are_forgotten() -> None:
    async with serving(lambda request: DONE) as (server, client):
        recorder = EventRecorder(client, "me")
        task = asyncio.create_task(recorder.run())
        for number in range(3):
            for reason in ("Unschedulable", "Evict"):
                meta = ObjectMeta(name=f"p{number}", namespace="ns", uid=f"u{number}")
                recorder.event(PODS, meta, WARNING, reason, "so")
        await recorder.drain()
        assert len(recorder._written) == 6
        for number in range(2):
            recorder.on_object(Absent(f"ns/p{number}", f"u{number}"))
        assert len(recorder._written) == 2
        recorder.event(PODS, meta, WARNING, "Evict", "so")
        await recorder.drain()
        assert [request.method for request in server.requests] == [*["POST"] * 6, "PATCH"]
        await cancelled(task)


async def test_an_event_written_after_its_object_was_deleted_is_forgotten() -> None:
    async with serving(lambda request: DONE) as (server, client):
        server.pause = 0.1
        recorder = EventRecorder(client, "me", workers=1)
        for reason in ("Unschedulable", "Evict"):
            recorder.event(PODS, META, WARNING, reason, "so")
        task = asyncio.create_task(recorder.run())
        await until(lambda: len(server.requests) == 1)
        recorder.on_object(Absent(META.key, META.uid))
        await recorder.drain()
        assert [request.json()["reason"] for request in server.requests] == ["Unschedulable", "Evict"]
        assert not recorder._written
        await cancelled(task)


async def test_an_event_that_is_repeated_while_it_is_written_increases_its_count() -> None:
    async with serving(lambda request: DONE) as (server, client):
        server.pause = 0.1
        recorder = EventRecorder(client, "me")
        task = asyncio.create_task(recorder.run())
        recorder.event(PODS, META, WARNING, "UnschedulableReason", "same")
        await until(lambda: len(server.requests) == 1)
        for _ in range(2):
            recorder.event(PODS, META, WARNING, "UnschedulableReason", "same")
        await recorder.drain()
        assert [request.method for request in server.requests] == ["POST", "PATCH"]
        assert server.requests[1].json()["count"] == 3
        await cancelled(task)


async def test_events_of_objects_without_a_namespace_are_written_to_default() -> None:
    async with serving(lambda request: DONE) as (server, client):
        recorder = EventRecorder(client, "me")
        recorder.event(QUEUES, ObjectMeta(name="q", uid="u"), WARNING, "UnschedulableReason", "so")
        task = asyncio.create_task(recorder.run())
        await recorder.drain()
        assert server.requests[0].path == "/api/v1/namespaces/default/events"
        await cancelled(task)


async def test_events_wait_for_urgent_writes_and_are_dropped_if_the_server_refuses() -> None:
    waits, urgent = asyncio.Event(), asyncio.Event()

    async def wait() -> None:
        waits.set()
        await urgent.wait()

    async with serving(lambda request: status(403, "Forbidden")) as (server, client):
        recorder = EventRecorder(client, "me", urgent=wait)
        recorder.event(PODS, META, WARNING, "UnschedulableReason", "so")
        task = asyncio.create_task(recorder.run())
        await waits.wait()
        assert server.requests == []
        urgent.set()
        await until(lambda: recorder.dropped == 1)
        await cancelled(task)


@pytest.mark.parametrize("answer", [Reply(201, b"<html>sign in</html>"), Reply(201, b"\xff\xfe")])
async def test_an_event_with_an_unreadable_answer_is_dropped_and_the_next_is_written(answer: Answer) -> None:
    async with serving(scripted(answer, DONE)) as (server, client):
        recorder = EventRecorder(client, "me")
        task = asyncio.create_task(recorder.run())
        recorder.event(PODS, META, WARNING, "UnschedulableReason", "so")
        await until(lambda: recorder.dropped == 1)
        recorder.event(PODS, META, WARNING, "UnschedulableReason", "not")
        await recorder.drain()
        assert [request.json()["message"] for request in server.requests] == ["so", "not"]
        assert not task.done()
        await cancelled(task)


async def test_a_recorder_that_may_not_write_drops_its_events_and_keeps_running() -> None:
    async with serving(lambda request: DONE, may_write=lambda: False) as (server, client):
        recorder = EventRecorder(client, "me")
        task = asyncio.create_task(recorder.run())
        recorder.event(PODS, META, WARNING, "UnschedulableReason", "so")
        await until(lambda: recorder.dropped == 1)
        assert (server.requests, task.done()) == ([], False)
        await cancelled(task)


async def test_an_event_name_is_valid_however_long_the_objects_name() -> None:
    async with serving(lambda request: DONE) as (server, client):
        recorder = EventRecorder(client, "me")
        recorder.event(
            PODS, ObjectMeta(name="p" * 198 + "-." + "q" * 50, namespace="ns"), WARNING, "UnschedulableReason", "so"
        )
        task = asyncio.create_task(recorder.run())
        await recorder.drain()
        name = server.requests[0].json()["metadata"]["name"]
        assert len(name) <= 253
        assert all(part.isalnum() for part in name.split("."))
        await cancelled(task)


@pytest.mark.parametrize("answer", [Hang(), Reply(429, headers={"Retry-After": "3600"})], ids=["no answer", "429"])
async def test_a_namespace_whose_events_fail_does_not_delay_other_namespaces(answer: Answer) -> None:
    def handle(request: Request) -> Answer:
        return answer if "/namespaces/bad/" in request.path else DONE

    async with serving(handle, once=True) as (server, client):
        recorder = EventRecorder(client, "me")
        task = asyncio.create_task(recorder.run())
        for i in range(100):
            recorder.event(PODS, ObjectMeta(name=f"b{i}", namespace="bad", uid=f"b{i}"), WARNING, "Bad", "so")
        await until(lambda: bool(server.requests))
        for i in range(20):
            recorder.event(PODS, ObjectMeta(name=f"g{i}", namespace="good", uid=f"g{i}"), WARNING, "Good", "so")
        await until(lambda: sum("/namespaces/good/" in request.path for request in server.requests) == 20, PROMPT)
        assert sum("/namespaces/bad/" in request.path for request in server.requests) < 10
        await cancelled(task)
