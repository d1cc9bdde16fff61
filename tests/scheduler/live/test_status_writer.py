"""Statuses: only the newest one is written, once, and after urgent writes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from schedspec.scheduler.kube import PODGROUPS, PODS
from schedspec.scheduler.live.status_writer import StatusWriter
from tests.support.fake_server import (
    PROMPT,
    Answer,
    FakeServer,
    Handler,
    Hang,
    Reply,
    Request,
    cancelled,
    scripted,
    serving,
    status,
    until,
)

DONE = Reply(body={"metadata": {"name": "g"}})


@asynccontextmanager
async def publishing(
    handler: Handler, *, is_urgent: bool = False
) -> AsyncIterator[tuple[FakeServer, StatusWriter, asyncio.Event]]:
    no_urgent_writes = asyncio.Event()
    if not is_urgent:
        no_urgent_writes.set()

    async def urgent() -> None:
        await no_urgent_writes.wait()

    async with serving(handler, once=True) as (server, client):
        status_writer = StatusWriter(client, urgent, pause=0.05)
        task = asyncio.create_task(status_writer.run())
        try:
            yield server, status_writer, no_urgent_writes
        finally:
            await cancelled(task)


def set_phase(status_writer: StatusWriter, phase: str, *, at_once: bool = False) -> None:
    status_writer.apply(PODGROUPS, "ns", "g", "u", {"phase": phase}, at_once=at_once)


def phases(server: FakeServer) -> list[str]:
    return [request.json()["status"]["phase"] for request in server.requests]


async def test_only_the_latest_status_is_written_and_after_urgent_writes() -> None:
    async with publishing(lambda request: DONE, is_urgent=True) as (server, status_writer, no_urgent_writes):
        for phase in ("Pending", "Inqueue", "Running"):
            set_phase(status_writer, phase)
        await asyncio.sleep(0.03)
        assert server.requests == []
        no_urgent_writes.set()
        await status_writer.drain()
        assert phases(server) == ["Running"]
        [request] = server.requests
        assert request.headers["content-type"] == "application/apply-patch+yaml"
        assert request.json()["metadata"] == {"name": "g", "uid": "u"}
        assert request.path.endswith("/podgroups/g/status?fieldManager=schedspec-scheduler&force=true")


async def test_a_status_to_be_written_at_once_does_not_wait_for_urgent_writes() -> None:
    async with publishing(lambda request: DONE, is_urgent=True) as (server, status_writer, _):
        set_phase(status_writer, "Inqueue", at_once=True)
        await until(lambda: phases(server) == ["Inqueue"])


async def test_an_equal_status_is_written_once_despite_a_later_transition_time() -> None:
    async with publishing(lambda request: DONE) as (server, status_writer, _):
        for since in ("10:00", "11:00"):
            conditions = [{"type": "A", "status": "True", "lastTransitionTime": since}]
            status_writer.apply(PODGROUPS, "ns", "g", "u", {"phase": "Running", "conditions": conditions})
            await status_writer.drain()
        assert len(server.requests) == 1


async def test_two_writes_of_one_object_are_separated_by_a_pause() -> None:
    async with publishing(lambda request: DONE) as (server, status_writer, _):
        loop = asyncio.get_running_loop()
        started = loop.time()
        set_phase(status_writer, "Pending")
        await until(lambda: len(server.requests) == 1)
        for phase in ("Inqueue", "Running"):
            set_phase(status_writer, phase)
        await status_writer.drain()
        assert phases(server) == ["Pending", "Running"]
        assert loop.time() - started >= 0.05


async def test_updates_of_a_pods_status_are_merged_until_they_are_written() -> None:
    async with publishing(lambda request: DONE, is_urgent=True) as (server, status_writer, no_urgent_writes):
        status_writer.merge(PODS, "ns", "p", "u", {"nominatedNodeName": "n"})
        status_writer.merge(PODS, "ns", "p", "u", {"conditions": [{"type": "PodScheduled"}]})
        no_urgent_writes.set()
        await status_writer.drain()
        assert server.requests[0].json()["status"] == {
            "nominatedNodeName": "n",
            "conditions": [{"type": "PodScheduled"}],
        }


async def test_a_failed_write_is_repeated_and_a_refused_write_is_not() -> None:
    async with publishing(scripted(status(422, "Invalid"))) as (server, status_writer, _):
        set_phase(status_writer, "Running")
        await status_writer.drain()
        assert len(server.requests) == 1
    async with publishing(scripted(status(500, "InternalError"), DONE)) as (server, status_writer, _):
        set_phase(status_writer, "Running")
        await status_writer.drain()
        assert phases(server) == ["Running", "Running"]


CONFLICTS: dict[str, Answer] = {
    "a concurrent writer": status(409, "Conflict", "the object has been modified"),
    "a webhook": status(409, "", "denied: a lock is held"),
    "no text": Reply(409, b""),
    "a name": status(409, "AlreadyExists"),
    "a changed uid": Reply(
        422,
        {"kind": "Status", "code": 422, "reason": "Invalid", "details": {"causes": [{"field": "metadata.uid"}]}},
    ),
}


class Conflicting:
    """A server that refuses the first `times` writes with a conflict; objects with the name have the `uids`."""

    def __init__(self, conflict: Answer, times: int, *uids: str) -> None:
        self.conflict, self.left = conflict, times
        self.listing = Reply(
            body={
                "metadata": {"resourceVersion": "9"},
                "items": [{"metadata": {"name": "g", "uid": it}} for it in uids],
            }
        )
        self.written: list[str] = []

    def __call__(self, request: Request) -> Answer:
        if request.method == "GET":
            assert "fieldSelector=metadata.name%3Dg" in request.path
            return self.listing
        if self.left:
            self.left -= 1
            return self.conflict
        self.written.append(request.json()["status"]["phase"])
        return DONE


@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("conflict", CONFLICTS.values(), ids=CONFLICTS)
async def test_a_write_is_repeated_after_a_conflict_while_the_object_exists(
    conflict: Answer, at_once: bool, times: int
) -> None:
    server = Conflicting(conflict, times, "u")
    async with publishing(server) as (_, status_writer, _):
        set_phase(status_writer, "Inqueue", at_once=at_once)
        await status_writer.drain()
        assert server.written == ["Inqueue"]


async def test_after_a_conflict_the_newest_status_is_written() -> None:
    server = Conflicting(CONFLICTS["a webhook"], 2, "u")
    async with publishing(server) as (_, status_writer, _):
        set_phase(status_writer, "Inqueue")
        await until(lambda: server.left < 2)
        set_phase(status_writer, "Running")
        await status_writer.drain()
        assert server.written == ["Running"]


@pytest.mark.parametrize("uids", [(), ("another",)], ids=["gone", "a successor"])
@pytest.mark.parametrize("conflict", CONFLICTS.values(), ids=CONFLICTS)
async def test_after_a_conflict_about_a_deleted_object_nothing_is_written(
    conflict: Answer, uids: tuple[str, ...]
) -> None:
    server = Conflicting(conflict, 1, *uids)
    async with publishing(server) as (fake, status_writer, _):
        set_phase(status_writer, "Inqueue")
        await status_writer.drain()
        assert [request.method for request in fake.requests] == ["PATCH", "GET"]


async def test_a_write_is_repeated_after_a_conflict_if_the_object_cannot_be_looked_up() -> None:
    forbidden = status(403, "Forbidden")
    server = Conflicting(CONFLICTS["a webhook"], 1)
    server.listing = forbidden
    async with publishing(server) as (_, status_writer, _):
        set_phase(status_writer, "Inqueue")
        await status_writer.drain()
        assert server.written == ["Inqueue"]


async def test_the_status_of_an_unreadable_object_is_written_like_any_other() -> None:
    unreadable = Reply(body={"metadata": {"name": "g"}, "spec": {"minMember": "two"}, "status": []})
    async with publishing(lambda request: unreadable) as (server, status_writer, _):
        for phase in ("Pending", "Running"):
            set_phase(status_writer, phase)
            await status_writer.drain()
        assert phases(server) == ["Pending", "Running"]


async def test_a_status_is_written_again_after_an_unreadable_answer() -> None:
    async with publishing(scripted(Reply(body=b"<html>sign in</html>"), DONE)) as (server, status_writer, _):
        set_phase(status_writer, "Pending")
        await status_writer.drain()
        assert phases(server) == ["Pending", "Pending"]


@pytest.mark.parametrize("answer", [status(500, "InternalError"), Hang()], ids=["500", "no answer"])
@pytest.mark.parametrize("at_once", [True, False])
async def test_a_namespace_whose_statuses_fail_does_not_delay_other_namespaces(answer: Answer, at_once: bool) -> None:
    def handle(request: Request) -> Answer:
        return answer if "/namespaces/bad/" in request.path else DONE

    async with publishing(handle) as (server, status_writer, _):
        for i in range(100):
            status_writer.apply(PODGROUPS, "bad", f"b{i}", f"bad-{i}", {"phase": "Inqueue"}, at_once=at_once)
        await until(lambda: bool(server.requests))
        for i in range(10):
            status_writer.apply(PODGROUPS, "good", f"g{i}", f"good-{i}", {"phase": "Inqueue"}, at_once=at_once)
        await until(lambda: sum("/namespaces/good/" in request.path for request in server.requests) == 10, PROMPT)


async def test_retry_after_delays_only_one_kind_of_object_in_one_namespace() -> None:
    def handle(request: Request) -> Answer:
        is_bad = "/namespaces/ns/podgroups/" in request.path
        return Reply(429, headers={"Retry-After": "3600"}) if is_bad else DONE

    async with publishing(handle) as (server, status_writer, _):
        set_phase(status_writer, "Running")
        await until(lambda: len(server.requests) == 1 and not status_writer._busy)
        status_writer.apply(PODGROUPS, "ns", "h", "h", {"phase": "Running"})
        status_writer.apply(PODGROUPS, "other", "g", "o", {"phase": "Running"})
        status_writer.merge(PODS, "ns", "p", "p", {"nominatedNodeName": "n"})
        await until(lambda: len(server.requests) == 3)
        await asyncio.sleep(0.1)
        paths = {request.path.partition("/namespaces/")[2].partition("/status")[0] for request in server.requests}
        assert paths == {"ns/podgroups/g", "other/podgroups/g", "ns/pods/p"}
