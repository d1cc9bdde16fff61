"""The thin client against a server that misbehaves on purpose."""

from __future__ import annotations

import asyncio
import gc
import ssl
import tracemalloc
import weakref

import pytest

from schedspec.scheduler.kube import (
    PODS,
    AlreadyExists,
    ApiError,
    Conflict,
    Connection,
    Http,
    Invalid,
    LeadershipLost,
    NotFound,
    Patch,
    ServerError,
    Unreachable,
)
from schedspec.scheduler.kube.errors import error_of
from schedspec.scheduler.kube.wire import Wire
from tests.support.fake_server import Answer, Cut, Garbage, Hang, Reply, cancelled, scripted, serving, status, until

POD = {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}}


async def test_the_error_of_a_refused_request_is_in_no_reference_cycle() -> None:
    async with serving(lambda request: status(409, "AlreadyExists")) as (_, client):
        gc.disable()  # otherwise a garbage collection could hide the cycle
        try:
            try:
                await client.create(PODS, POD, "ns")
            except AlreadyExists as error:
                seen = weakref.ref(error)
            assert seen() is None
        finally:
            gc.enable()


async def test_a_connection_is_kept_for_the_next_request() -> None:
    async with serving(lambda request: Reply(body=POD)) as (server, client):
        for _ in range(5):
            await client.get(PODS, "p", "ns")
        assert server.connections == 1


async def test_a_closed_connection_leaves_nothing_to_the_garbage_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    wires: list[weakref.ref[Wire]] = []
    made = Wire.connection_made

    def connection_made(wire: Wire, transport: asyncio.BaseTransport) -> None:
        wires.append(weakref.ref(wire))
        made(wire, transport)

    monkeypatch.setattr(Wire, "connection_made", connection_made)
    gc.disable()
    try:
        async with serving(lambda request: Reply(body=POD)) as (_, client):
            await client.get(PODS, "p", "ns")
        await until(lambda: [wire() for wire in wires] == [None])
    finally:
        gc.enable()


async def test_connections_keep_no_answer_and_closed_connections_keep_no_buffer() -> None:
    large = {"metadata": {"name": "p", "annotations": {"a": "x" * 1_000_000}}}
    async with serving(lambda request: Reply(body=large), limit=8) as (server, client):
        server.pause = 0.05  # so that each request has a connection of its own
        tracemalloc.start()
        try:
            await asyncio.gather(*(client.http.request("GET", "/x") for _ in range(8)))
            assert server.connections == 8
            await until(lambda: kept_mb() < 2)
            await server.stop()
            await until(lambda: kept_mb() < 0.4)
        finally:
            tracemalloc.stop()


def kept_mb() -> float:
    return tracemalloc.get_traced_memory()[0] / 1e6


async def test_idle_connections_of_a_burst_are_closed() -> None:
    async with serving(lambda request: Reply(body=POD), limit=8, idle_seconds=0.05) as (server, client):
        server.pause = 0.05  # so that each request has a connection of its own
        await asyncio.gather(*(client.get(PODS, "p", "ns") for _ in range(8)))
        assert server.connections == 8
        await until(lambda: server.still_open == 4)
        await client.get(PODS, "p", "ns")
        assert server.connections == 8


async def test_requests_in_flight_are_bounded() -> None:
    async with serving(lambda request: Reply(body=POD), limit=4) as (server, client):
        await asyncio.gather(*(client.get(PODS, "p", "ns") for _ in range(40)))
        assert server.most_together == 4
        assert server.connections == 4


async def test_a_chunked_answer_is_read_whole() -> None:
    pieces = [b'{"metadata": {"name": ', b'"in-pieces"', b"}}"]
    async with serving(lambda request: Reply(chunks=pieces)) as (_, client):
        assert (await client.get(PODS, "p", "ns")).metadata.name == "in-pieces"


async def test_a_lost_get_is_sent_again() -> None:
    async with serving(scripted(Cut(), Garbage(), Reply(body=POD))) as (server, client):
        assert (await client.get(PODS, "p", "ns")).metadata.uid == "u"
        assert len(server.requests) == 3


async def test_a_create_whose_answer_is_lost_is_not_sent_again() -> None:
    async with serving(scripted(Cut(), Reply(body=POD))) as (server, client):
        with pytest.raises(Unreachable) as caught:
            await client.create(PODS, {"metadata": {"name": "p"}}, "ns")
        assert caught.value.sent
        assert len(server.requests) == 1


async def test_a_bind_whose_answer_is_lost_is_sent_again() -> None:
    async with serving(scripted(Cut(), Reply(201))) as (server, client):
        await client.bind("ns", "p", "u", "node-1")
        assert [request.json()["target"]["name"] for request in server.requests] == ["node-1", "node-1"]
        assert server.requests[0].json()["metadata"]["uid"] == "u"


async def test_a_repeatable_request_is_sent_again_if_no_answer_arrives() -> None:
    async with serving(scripted(Hang(), Reply(body=POD))) as (server, client):
        answer = await client.http.request("PUT", "/x", repeatable=True, attempt_seconds=1.0)
        assert answer.status == 200
        assert len(server.requests) == 2


async def test_no_answer_within_the_deadline_is_unreachable_and_may_have_been_carried_out() -> None:
    async with serving(scripted(Reply(), Hang())) as (_, client):
        await client.http.request("GET", "/x")  # its connection is kept, so the next request is sent at once
        with pytest.raises(Unreachable, match="POST /x: no answer in time") as caught:
            await client.http.request("POST", "/x", deadline=0.1)
        assert caught.value.sent


async def test_a_refused_connection_is_unreachable_and_was_not_sent() -> None:
    http = Http(Connection("127.0.0.1", 9))
    with pytest.raises(Unreachable, match=r"cannot connect to 127\.0\.0\.1:9") as caught:
        await http.request("POST", "/x", once=True)
    assert not caught.value.sent


async def test_without_a_tls_handshake_the_server_is_unreachable_and_nothing_was_sent() -> None:
    async with serving(lambda request: Reply()) as (server, _):
        port = server._server.sockets[0].getsockname()[1]
        http = Http(Connection("127.0.0.1", port, tls=ssl.create_default_context()))
        with pytest.raises(Unreachable, match="no answer in time") as caught:
            await http.request("POST", "/x", deadline=0.3)
        assert not caught.value.sent


def without_certificate(purpose: int) -> ssl.SSLContext:
    """Return a context with a cipher for which no side needs a certificate."""
    context = ssl.SSLContext(purpose)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AECDH-AES256-SHA:@SECLEVEL=0")
    return context


async def test_a_connection_that_is_cancelled_as_its_handshake_ends_is_closed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    wires: list[Wire] = []
    made = Wire.connection_made

    def connection_made(wire: Wire, transport: asyncio.BaseTransport) -> None:
        made(wire, transport)
        wires.append(wire)
        asking.cancel()

    monkeypatch.setattr(Wire, "connection_made", connection_made)
    server = await asyncio.start_server(silent, "127.0.0.1", 0, ssl=without_certificate(ssl.PROTOCOL_TLS_SERVER))
    port = server.sockets[0].getsockname()[1]
    http = Http(Connection("127.0.0.1", port, tls=without_certificate(ssl.PROTOCOL_TLS_CLIENT)))
    asking = asyncio.create_task(http.request("GET", "/x"))
    await asyncio.wait([asking])
    await http.close()
    server.close()
    assert [wire._transport for wire in wires] == [None]


async def test_429_delays_only_the_refused_request() -> None:
    answers = scripted(Reply(429, b"slow down", {"Retry-After": "1"}), Reply(body=POD))
    async with serving(answers) as (server, client):
        loop = asyncio.get_running_loop()
        started = loop.time()
        first = asyncio.create_task(client.get(PODS, "p", "ns"))
        await until(lambda: client.http.throttled == 1)
        await client.get(PODS, "other", "ns")
        await first
        assert loop.time() - started >= 1.0
        assert [request.path.rsplit("/", 1)[1] for request in server.requests] == ["p", "other", "p"]
        assert client.http.throttled == 1


RETRY_AFTER = {
    "2": 2.0,
    " 0 ": 0.0,
    "3600": 30.0,
    "9" * 400: 30.0,
    "Fri, 31 Dec 2100 23:59:59 GMT": 30.0,
    "Wed, 21 Oct 2015 07:28:00 GMT": 0.0,
    "Wed, 99 Oct 2015 07:28:00 GMT": None,
    "\u00b2": None,
    "-1": None,
    "1.5": None,
    "": None,
}


@pytest.mark.parametrize(("header", "seconds"), RETRY_AFTER.items())
def test_retry_after_is_a_number_or_a_date_and_has_a_maximum(header: str, seconds: float | None) -> None:
    assert error_of("GET /x", 429, b"", header).retry_after == seconds


@pytest.mark.parametrize("answer", [Cut(), Reply(429), status(500, "InternalError"), Hang()])
async def test_a_request_with_once_is_not_sent_again(answer: Answer) -> None:
    async with serving(lambda request: answer) as (server, client):
        for method, repeatable in (("GET", False), ("PUT", True)):
            with pytest.raises((ApiError, Unreachable)):
                await client.http.request(method, "/x", repeatable=repeatable, once=True, attempt_seconds=1.0)
        assert len(server.requests) == 2


async def test_the_deadline_includes_the_wait_for_other_requests() -> None:
    async with serving(lambda request: Hang(), limit=1) as (server, client):
        first = asyncio.create_task(client.http.request("POST", "/x"))
        await until(lambda: bool(server.requests))
        with pytest.raises(Unreachable, match="no answer in time") as caught:
            await client.http.request("POST", "/y", deadline=0.1)
        assert not caught.value.sent
        await cancelled(first)


async def test_a_create_is_sent_again_after_429_because_it_was_not_carried_out() -> None:
    async with serving(scripted(Reply(429), Reply(201, POD))) as (server, client):
        await client.create(PODS, {"metadata": {"name": "p"}}, "ns")
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (415, "UnsupportedMediaType", ApiError),
    ],
)
async def test_a_refusal_is_an_error_of_its_type_that_names_the_request(
    code: int, reason: str, expected: type[ApiError]
) -> None:
    async with serving(lambda request: status(code, reason, "because")) as (_, client):
        with pytest.raises(ApiError, match=f"PATCH /api/v1/namespaces/ns/pods/p: {code} {reason}: because") as caught:
            await client.patch(PODS, "p", {}, "ns", kind=Patch.MERGE)
        assert type(caught.value) is expected


@pytest.mark.parametrize(("field", "expected"), [("metadata.uid", Conflict), ("spec.nodeName", Invalid)])
async def test_a_patch_for_an_object_that_has_a_successor_is_a_conflict(field: str, expected: type[ApiError]) -> None:
    causes = [{"reason": "FieldValueInvalid", "message": "field is immutable", "field": field}]
    rejection = {"kind": "Status", "code": 422, "reason": "Invalid", "message": "no", "details": {"causes": causes}}
    async with serving(lambda request: Reply(422, rejection)) as (_, client):
        with pytest.raises(ApiError) as caught:
            await client.patch(PODS, "p", {"metadata": {"uid": "old"}}, "ns", kind=Patch.MERGE)
        assert type(caught.value) is expected


async def test_a_refusal_in_plain_text_keeps_its_text() -> None:
    async with serving(lambda request: Reply(404, b"404 page not found\n")) as (_, client):
        with pytest.raises(NotFound, match="404 error: 404 page not found"):
            await client.get(PODS, "p", "ns")


async def test_500_is_retried_only_for_repeatable_requests() -> None:
    async with serving(scripted(status(500, "InternalError"), Reply(201, POD))) as (server, client):
        with pytest.raises(ServerError):
            await client.create(PODS, {"metadata": {"name": "p"}}, "ns")
        await client.bind("ns", "p", "u", "n")
        assert len(server.requests) == 2


async def test_a_client_that_may_not_write_still_reads() -> None:
    async with serving(lambda request: Reply(body=POD), may_write=lambda: False) as (server, client):
        await client.get(PODS, "p", "ns")
        with pytest.raises(LeadershipLost):
            await client.bind("ns", "p", "u", "n")
        with pytest.raises(LeadershipLost):
            await client.delete(PODS, "p", "ns")
        assert [request.method for request in server.requests] == ["GET"]


async def test_a_cancelled_request_leaves_no_half_read_connection_behind() -> None:
    async with serving(scripted(Hang(), Reply(body=POD))) as (server, client):
        task = asyncio.create_task(client.get(PODS, "p", "ns"))
        await until(lambda: bool(server.requests))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert (await client.get(PODS, "p", "ns")).metadata.name == "p"
        assert server.connections == 2
