"""At most one of two replicas may write, and the other takes over when the first has stopped."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from schedspec.scheduler.kube import Client
from schedspec.scheduler.live import leader as leader_module
from schedspec.scheduler.live.leader import Leader
from tests.support.fake_server import (
    SAFETY_NET,
    Answer,
    Hang,
    Reply,
    Request,
    cancelled,
    serving,
    status,
    until,
)


class LeaseServer:
    """One Lease with optimistic locking, as the API server keeps it."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.hangs = False
        self.corrupt: list[bytes] = []
        """Bodies of the next answers."""

    def __call__(self, request: Request) -> Answer:
        if self.hangs:
            return Hang()
        if self.corrupt:
            return Reply(body=self.corrupt.pop())
        if request.method == "GET":
            return Reply(body=self.lease) if self.lease else status(404, "NotFound")
        body = request.json()
        if request.method == "POST":
            if self.lease:
                return status(409, "AlreadyExists")
            body["metadata"]["resourceVersion"] = "1"
        else:
            assert self.lease
            if body["metadata"]["resourceVersion"] != self.lease["metadata"]["resourceVersion"]:
                return status(409, "Conflict")
            body["metadata"]["resourceVersion"] = str(int(body["metadata"]["resourceVersion"]) + 1)
        self.lease = body
        return Reply(body=body)

    @property
    def holder(self) -> str:
        return str(self.lease["spec"]["holderIdentity"]) if self.lease else ""


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def leader(client: Client, name: str, clock: Clock, seconds: float = 3.0) -> Leader:
    return Leader(client, name, "kube-system", seconds, clock)


async def test_a_second_replica_acquires_the_lease_only_after_it_expires() -> None:
    server = LeaseServer()
    async with serving(server) as (_, client):
        clock = Clock()
        a, b = leader(client, "a", clock), leader(client, "b", clock)
        await a.elected()
        waiting = asyncio.create_task(b.elected())
        await asyncio.sleep(0.4)
        assert (server.holder, a.may_write(), b.may_write()) == ("a", True, False)
        clock.now += 3.5  # replica a is frozen and no longer renews the lease
        assert not a.may_write()
        await waiting
        assert (server.holder, a.may_write(), b.may_write()) == ("b", False, True)
        assert server.lease
        assert server.lease["spec"]["leaseTransitions"] == 1


async def test_the_leader_stops_writing_before_another_replica_may_take_over() -> None:
    async with serving(LeaseServer()) as (_, client):
        clock = Clock()
        a = leader(client, "a", clock, seconds=15.0)
        await a.elected()
        clock.now += 9.9
        assert a.may_write()
        clock.now += 0.2
        assert not a.may_write()


async def test_a_leader_stops_when_another_replica_holds_the_lease() -> None:
    server = LeaseServer()
    async with serving(server) as (_, client):
        a = leader(client, "a", Clock(), seconds=0.6)
        await a.elected()
        assert server.lease
        server.lease["spec"]["holderIdentity"] = "b"
        async with asyncio.timeout(SAFETY_NET):
            await a.hold()


async def test_a_leader_without_answers_stops_when_it_may_no_longer_write() -> None:
    server = LeaseServer()
    async with serving(server) as (_, client):
        clock = Clock()
        a = leader(client, "a", clock, seconds=0.6)
        await a.elected()
        server.hangs = True
        holding = asyncio.create_task(a.hold())
        await asyncio.sleep(0.15)
        assert not holding.done()
        clock.now += 1.0
        async with asyncio.timeout(SAFETY_NET):
            await holding
        await cancelled(holding)


async def test_a_released_lease_is_acquired_at_once() -> None:
    server = LeaseServer()
    async with serving(server) as (_, client):
        clock = Clock()
        a, b = leader(client, "a", clock, 15.0), leader(client, "b", clock, 15.0)
        await a.elected()
        await a.release()
        assert (server.holder, a.may_write()) == ("", False)
        await b.elected()
        await until(lambda: server.holder == "b")


async def test_a_stopping_replica_does_not_wait_for_a_silent_api_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leader_module, "_RELEASE_WITHIN", 0.05)
    server = LeaseServer()
    async with serving(server) as (_, client):
        a = leader(client, "a", Clock(), 15.0)
        await a.elected()
        server.hangs = True
        async with asyncio.timeout(SAFETY_NET):
            await a.release()
        assert (server.holder, a.may_write()) == ("a", False)


async def test_a_stopping_replica_does_not_release_the_lease_of_another() -> None:
    server = LeaseServer()
    async with serving(server) as (_, client):
        a = leader(client, "a", Clock(), 15.0)
        await a.elected()
        assert server.lease
        server.lease["spec"]["holderIdentity"] = "b"
        await a.release()
        assert server.holder == "b"


async def test_an_unreadable_lease_is_read_again() -> None:
    server = LeaseServer()
    async with serving(server) as (_, client):
        a = leader(client, "a", Clock(), seconds=0.6)
        server.corrupt = [b"null", b"[]", b'{"metadata": {"name": "\xff"}, "spec": {}}']
        await a.elected()
        holding = asyncio.create_task(a.hold())
        server.corrupt = [b"null", b"<html>", b"{}"]
        await until(lambda: not server.corrupt)
        await asyncio.sleep(0.2)
        assert (holding.done(), server.holder, a.may_write()) == (False, "a", True)
        await cancelled(holding)
