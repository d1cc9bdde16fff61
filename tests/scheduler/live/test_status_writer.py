"""Statuses: the last wish only, once, and after what is urgent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from scheduler.kube import PODGROUPS, PODS
from scheduler.live.status_writer import StatusWriter
from tests.support.fake_server import (
    Answer,
    Asked,
    FakeServer,
    Handler,
    Hang,
    Reply,
    cancelled,
    run,
    scripted,
    standing_in,
    status,
    until,
)

DONE = Reply(body={"metadata": {"name": "g"}})


@asynccontextmanager
async def publishing(
    handler: Handler, *, is_urgent: bool = False
) -> AsyncIterator[tuple[FakeServer, StatusWriter, asyncio.Event]]:
    calm = asyncio.Event()
    if not is_urgent:
        calm.set()

    async def urgent() -> None:
        await calm.wait()

    async with standing_in(handler, once=True) as (server, client):
        status_writer = StatusWriter(client, urgent, pause=0.05)
        task = asyncio.create_task(status_writer.run())
        try:
            yield server, status_writer, calm
        finally:
            await cancelled(task)


def wish(status_writer: StatusWriter, phase: str, *, at_once: bool = False) -> None:
    status_writer.apply(PODGROUPS, "ns", "g", "u", {"phase": phase}, at_once=at_once)


def phases(server: FakeServer) -> list[str]:
    return [asked.json()["status"]["phase"] for asked in server.asked]


def test_only_the_last_wish_is_written_and_after_what_is_urgent() -> None:
    async def test() -> None:
        async with publishing(lambda asked: DONE, is_urgent=True) as (server, status_writer, calm):
            for phase in ("Pending", "Inqueue", "Running"):
                wish(status_writer, phase)
            await asyncio.sleep(0.03)
            assert server.asked == []
            calm.set()
            await status_writer.drain()
            assert phases(server) == ["Running"]
            [asked] = server.asked
            assert asked.headers["content-type"] == "application/apply-patch+yaml"
            assert asked.json()["metadata"] == {"name": "g", "uid": "u"}
            assert asked.path.endswith("/podgroups/g/status?fieldManager=schedspec-scheduler&force=true")

    run(test)


def test_what_somebody_waits_for_overtakes_what_is_urgent() -> None:
    async def test() -> None:
        async with publishing(lambda asked: DONE, is_urgent=True) as (server, status_writer, _):
            wish(status_writer, "Inqueue", at_once=True)
            await until(lambda: phases(server) == ["Inqueue"])

    run(test)


def test_the_same_is_not_written_twice_even_where_a_condition_is_said_to_hold_since_later() -> None:
    async def test() -> None:
        async with publishing(lambda asked: DONE) as (server, status_writer, _):
            for since in ("10:00", "11:00"):
                conditions = [{"type": "A", "status": "True", "lastTransitionTime": since}]
                status_writer.apply(PODGROUPS, "ns", "g", "u", {"phase": "Running", "conditions": conditions})
                await status_writer.drain()
            assert len(server.asked) == 1

    run(test)


def test_two_writes_of_one_object_keep_their_distance() -> None:
    async def test() -> None:
        async with publishing(lambda asked: DONE) as (server, status_writer, _):
            loop = asyncio.get_running_loop()
            started = loop.time()
            wish(status_writer, "Pending")
            await until(lambda: len(server.asked) == 1)
            for phase in ("Inqueue", "Running"):
                wish(status_writer, phase)
            await status_writer.drain()
            assert phases(server) == ["Pending", "Running"]
            assert loop.time() - started >= 0.05

    run(test)


def test_a_pods_wishes_add_up_until_they_are_written() -> None:
    async def test() -> None:
        async with publishing(lambda asked: DONE, is_urgent=True) as (server, status_writer, calm):
            status_writer.merge(PODS, "ns", "p", "u", {"nominatedNodeName": "n"})
            status_writer.merge(PODS, "ns", "p", "u", {"conditions": [{"type": "PodScheduled"}]})
            calm.set()
            await status_writer.drain()
            assert server.asked[0].json()["status"] == {
                "nominatedNodeName": "n",
                "conditions": [{"type": "PodScheduled"}],
            }

    run(test)


def test_a_write_that_failed_comes_again_and_one_that_is_refused_does_not() -> None:
    async def test() -> None:
        async with publishing(scripted(status(422, "Invalid"))) as (server, status_writer, _):
            wish(status_writer, "Running")
            await status_writer.drain()
            assert len(server.asked) == 1
        async with publishing(scripted(status(500, "InternalError"), DONE)) as (server, status_writer, _):
            wish(status_writer, "Running")
            await status_writer.drain()
            assert phases(server) == ["Running", "Running"]

    run(test)


def test_the_status_of_an_object_that_cannot_be_read_is_written_like_any_other() -> None:
    unreadable = Reply(body={"metadata": {"name": "g"}, "spec": {"minMember": "two"}, "status": []})

    async def test() -> None:
        async with publishing(lambda asked: unreadable) as (server, status_writer, _):
            for phase in ("Pending", "Running"):
                wish(status_writer, phase)
                await status_writer.drain()
            assert phases(server) == ["Pending", "Running"]

    run(test)


def test_a_status_whose_answer_cannot_be_read_is_written_again() -> None:
    async def test() -> None:
        async with publishing(scripted(Reply(body=b"<html>sign in</html>"), DONE)) as (server, status_writer, _):
            wish(status_writer, "Pending")
            await status_writer.drain()
            assert phases(server) == ["Pending", "Pending"]

    run(test)


@pytest.mark.parametrize("answer", [status(500, "InternalError"), Hang()], ids=["500", "no answer"])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_namespace_whose_statuses_are_not_written_costs_the_others_nothing(answer: Answer, at_once: bool) -> None:
    def handle(asked: Asked) -> Answer:
        return answer if "/namespaces/bad/" in asked.path else DONE

    async def test() -> None:
        async with publishing(handle) as (server, status_writer, _):
            for i in range(100):
                status_writer.apply(PODGROUPS, "bad", f"b{i}", f"bad-{i}", {"phase": "Inqueue"}, at_once=at_once)
            await asyncio.sleep(0.2)
            for i in range(10):
                status_writer.apply(PODGROUPS, "good", f"g{i}", f"good-{i}", {"phase": "Inqueue"}, at_once=at_once)
            await until(lambda: sum("/namespaces/good/" in asked.path for asked in server.asked) == 10, 1.0)

    run(test)


def test_a_pause_that_the_server_asks_for_is_one_of_a_kind_of_object_in_a_namespace() -> None:
    def handle(asked: Asked) -> Answer:
        is_bad = "/namespaces/ns/podgroups/" in asked.path
        return Reply(429, headers={"Retry-After": "3600"}) if is_bad else DONE

    async def test() -> None:
        async with publishing(handle) as (server, status_writer, _):
            wish(status_writer, "Running")
            await until(lambda: len(server.asked) == 1 and not status_writer._busy)
            status_writer.apply(PODGROUPS, "ns", "h", "h", {"phase": "Running"})
            status_writer.apply(PODGROUPS, "other", "g", "o", {"phase": "Running"})
            status_writer.merge(PODS, "ns", "p", "p", {"nominatedNodeName": "n"})
            await until(lambda: len(server.asked) == 3)
            await asyncio.sleep(0.1)
            paths = {asked.path.partition("/namespaces/")[2].partition("/status")[0] for asked in server.asked}
            assert paths == {"ns/podgroups/g", "other/podgroups/g", "ns/pods/p"}

    run(test)
