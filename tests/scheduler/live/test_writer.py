"""Binds and evictions are repeated until their outcome is known, and reverted if refused."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import structlog

from schedspec.scheduler.framework.decisions import Bind, Evict
from schedspec.scheduler.inputs import Reverted
from schedspec.scheduler.live import writer as writer_module
from schedspec.scheduler.live.inbox import Bound, Inbox, Item, RefusedWrite
from schedspec.scheduler.live.metrics import Metrics
from schedspec.scheduler.live.writer import Writer
from schedspec.scheduler.reasons import VictimReason
from tests.support.fake_server import (
    PROMPT,
    SAFETY_NET,
    Answer,
    Cut,
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

BIND = Bind("ns/p", "u", "node-1", "ns/g")
EVICT = Evict("ns/p", "u", "ns/g", VictimReason("reclaim", "ns/b", "ns/b-0", "qb", "qa"))


class Outcome(Inbox):
    """An inbox that sorts the items by type."""

    def __init__(self) -> None:
        super().__init__()
        self.bound: list[str] = []
        self.refused: list[str] = []
        self.reverted: list[str] = []

    def put(self, item: Item) -> None:
        match item:
            case Bound():
                self.bound.append(item.decision.task)
            case RefusedWrite():
                self.refused.append(item.decision.task)
            case Reverted():
                self.reverted.append(item.key)
            case _:
                raise AssertionError(item)


@asynccontextmanager
async def writing(handler: Handler) -> AsyncIterator[tuple[FakeServer, Writer, Outcome]]:
    async with serving(handler, once=True) as (server, client):
        outcome = Outcome()
        writer = Writer(client, outcome, Metrics())
        task = asyncio.create_task(writer.run())
        try:
            yield server, writer, outcome
        finally:
            await cancelled(task)


def a_pod(node: str, uid: str = "u") -> Reply:
    return Reply(body={"metadata": {"name": "p", "namespace": "ns", "uid": uid}, "spec": {"nodeName": node}})


def by_method(**answers: Any) -> Handler:
    def handle(request: Request) -> Answer:
        answer = answers[request.method]
        result: Answer = answer(request) if callable(answer) else answer
        return result

    return handle


async def test_a_bind_that_succeeded_without_an_answer_counts_as_bound() -> None:
    answers = by_method(POST=scripted(Cut(), status(409, "Conflict", "already assigned")), GET=a_pod("node-1"))
    async with writing(answers) as (_, writer, outcome):
        writer.bind(BIND)
        await until(lambda: outcome.bound == ["ns/p"])
        assert outcome.reverted == []


@pytest.mark.parametrize(
    "truth",
    [a_pod("node-2"), a_pod("node-1", uid="successor"), status(404, "NotFound")],
    ids=["elsewhere", "replaced", "deleted"],
)
async def test_a_bind_is_reverted_if_the_pod_is_bound_elsewhere_or_replaced(truth: Answer) -> None:
    async with writing(by_method(POST=status(409, "Conflict"), GET=truth)) as (_, writer, outcome):
        writer.bind(BIND)
        await until(lambda: outcome.reverted == ["ns/p"])
        assert outcome.bound == []
        assert outcome.refused == ["ns/p"]


async def test_a_bind_without_a_verdict_is_repeated() -> None:
    answers = scripted(status(500, "InternalError"), Reply(429), status(503, "ServiceUnavailable"), Reply(201))
    async with writing(answers) as (server, writer, outcome):
        writer.bind(BIND)
        await until(lambda: outcome.bound == ["ns/p"])
        assert len(server.requests) == 4


async def test_a_refused_bind_is_reverted_after_growing_pauses() -> None:
    async with writing(lambda request: status(404, "NotFound")) as (_, writer, outcome):
        loop = asyncio.get_running_loop()
        pauses = []
        for turn in range(1, 5):
            started = loop.time()
            writer.bind(BIND)
            await until(lambda turn=turn: len(outcome.reverted) == turn)  # type: ignore[misc]
            pauses.append(loop.time() - started)
        assert pauses[3] > 4 * pauses[0] * 0.4
        assert pauses[3] >= 0.2


async def test_at_most_64_binds_are_in_flight() -> None:
    async with writing(lambda request: Reply(201)) as (server, writer, outcome):
        server.pause = 0.1
        for i in range(300):
            writer.bind(Bind(f"ns/p{i}", f"u{i}", "n", "ns/g"))
        assert len(writer.binds) == 300
        await writer.finished()
        assert len(outcome.bound) == 300
        assert server.most_together == 64
        assert server.connections == 64  # each connection was reused for further binds


async def test_a_stop_waits_longer_for_answers_than_less_urgent_writes_do() -> None:
    async with writing(lambda request: Reply(201)) as (server, writer, outcome):
        server.pause = 1.5
        for i in range(100):  # more than are in flight at a time
            writer.bind(Bind(f"ns/p{i}", f"u{i}", "n", "ns/g"))
        await writer.urgent()
        assert outcome.bound == []
        await writer.finished()
        assert len(outcome.bound) == 100


async def test_less_urgent_writes_wait_a_limited_time_for_binds() -> None:
    async with writing(by_method(POST=Hang())) as (_, writer, _outcome):
        await writer.urgent()
        writer.bind(BIND)
        waiting = asyncio.create_task(writer.urgent())
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await waiting
        assert len(writer.binds) == 1


async def test_an_unreadable_victim_is_deleted_and_its_lost_bind_is_reverted() -> None:
    unreadable = Reply(body={"metadata": {"name": "p", "namespace": "ns", "uid": "u"}, "spec": {"nodeName": 7}})
    answers = by_method(PATCH=unreadable, DELETE=Reply(), POST=status(409, "Conflict"), GET=unreadable)
    async with writing(answers) as (server, writer, outcome):
        writer.evict([[EVICT]])
        await writer.finished()
        assert [request.method for request in server.requests] == ["PATCH", "DELETE"]
        writer.bind(BIND)
        await until(lambda: outcome.reverted == ["ns/p"])


ANSWERS: dict[str, Answer] = {
    "500": status(500, "InternalError"),
    "no answer": Hang(),
    "429 for an hour": Reply(429, headers={"Retry-After": "3600"}),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
async def test_a_namespace_whose_binds_have_no_verdict_delays_no_other_namespace(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def handle(request: Request) -> Answer:
        return answer if "/namespaces/bad/" in request.path else Reply(201)

    async with writing(handle) as (server, writer, outcome):
        for i in range(300):
            writer.bind(Bind(f"bad/p{i}", f"bad-{i}", "n", "bad/g"))
        await until(lambda: bool(server.requests))
        for i in range(20):
            writer.bind(Bind(f"good/p{i}", f"good-{i}", "n", "good/g"))
        await until(lambda: len(outcome.bound) == 20, PROMPT)
        monkeypatch.setattr(writer_module, "_LONGEST_WAIT", 2 * SAFETY_NET)
        async with asyncio.timeout(SAFETY_NET):
            await writer.urgent()  # less urgent writes do not wait for these binds either
        assert len(writer.binds) == 300


async def test_a_wave_without_verdicts_does_not_block_the_next_wave() -> None:
    def handle(request: Request) -> Answer:
        return status(500, "InternalError") if "/namespaces/bad/" in request.path else a_pod("node-1")

    async with writing(handle) as (server, writer, _):
        reason = EVICT.reason
        first = [Evict(f"bad/p{i}", f"bad-{i}", "bad/g", reason) for i in range(60)]
        second = [Evict(f"good/p{i}", f"good-{i}", "good/g", reason) for i in range(5)]
        writer.evict([first, second])
        deletions = lambda: [a.path for a in server.requests if a.method == "DELETE"]  # noqa: E731
        await until(lambda: len(deletions()) == 5, PROMPT)
        assert all("/namespaces/good/" in path for path in deletions())


async def test_a_victim_gets_its_condition_once_even_if_its_deletion_is_repeated() -> None:
    answers = by_method(PATCH=a_pod("node-1"), DELETE=scripted(status(500, "InternalError"), Cut(), Reply()))
    async with writing(answers) as (server, writer, _):
        writer.evict([[EVICT]])
        await until(lambda: not writer.unfinished)
        assert [request.method for request in server.requests] == ["PATCH", "DELETE", "DELETE", "DELETE"]


async def test_a_bind_that_fails_with_an_unexpected_error_is_reverted(monkeypatch: pytest.MonkeyPatch) -> None:
    async with writing(lambda request: Reply(201)) as (_, writer, outcome):
        with monkeypatch.context() as patched:
            patched.setattr(writer._client, "bind", lambda *_, **__: 1 / 0)
            writer.bind(BIND)
            await until(lambda: outcome.reverted == ["ns/p"])
        writer.bind(BIND)
        await until(lambda: outcome.bound == ["ns/p"])


async def test_log_lines_of_a_write_have_the_number_of_the_cycle_that_decided_it() -> None:
    logged: list[tuple[object, object]] = []

    class Noted(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            logged.append((structlog.contextvars.get_contextvars().get("cycle"), record.levelname))

    handler = Noted()
    logging.getLogger("schedspec.scheduler.live.writer").addHandler(handler)
    try:
        async with writing(by_method(POST=status(403, "Forbidden"))) as (_, writer, outcome):
            for cycle in (7, 8):
                structlog.contextvars.bind_contextvars(cycle=cycle)
                writer.bind(BIND)
            structlog.contextvars.bind_contextvars(cycle=9)
            await until(lambda: len(outcome.refused) == 2)
    finally:
        logging.getLogger("schedspec.scheduler.live.writer").removeHandler(handler)
    assert sorted(logged) == [(7, "WARNING"), (8, "WARNING")]


async def test_a_probe_is_answered_even_if_a_namespace_gets_no_answers() -> None:
    def handle(request: Request) -> Answer:
        return Hang() if "/namespaces/" in request.path else status(403, "Forbidden")

    async with writing(handle) as (server, writer, _):
        for i in range(200):
            writer.bind(Bind(f"bad/p{i}", f"bad-{i}", "n", "bad/g"))
        await until(lambda: bool(server.requests))
        writer.probe()
        await until(lambda: writer._client.http.writes_answered == 1, PROMPT)
        paths = [request.path for request in server.requests]
        assert "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" in paths
