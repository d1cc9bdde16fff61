"""The HTTP pages: status, content type, and a reason for each failure."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import struct
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from schedspec.scheduler.kube import Client, Connection, Http
from schedspec.scheduler.live import server as server_module
from schedspec.scheduler.live.app import Endpoints
from schedspec.scheduler.live.metrics import Metrics
from schedspec.scheduler.live.policy_file import PolicyFile
from schedspec.scheduler.live.progress import Progress
from schedspec.scheduler.live.server import ListenError, Server
from schedspec.scheduler.live.state_feed import StateFeed
from schedspec.scheduler.model.cluster import Cluster
from tests.support.fake_server import SAFETY_NET


@pytest.fixture
def feed() -> StateFeed:
    return StateFeed(Cluster(), Client(Http(Connection("127.0.0.1", 9))))


@pytest.fixture
def server(feed: StateFeed) -> Iterator[tuple[str, Endpoints]]:
    metrics = Metrics()
    metrics.bound()
    pages = Endpoints(feed, PolicyFile(None), metrics, Progress())
    server = Server("127.0.0.1", 0, pages.by_path())
    server.start()
    yield f"http://{server.address}", pages
    server.close()


def get(url: str) -> tuple[int, str, str]:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers["Content-Type"], error.read().decode()


def test_the_process_is_healthy_while_the_event_loop_runs(server: tuple[str, Endpoints]) -> None:
    url, pages = server
    assert get(f"{url}/healthz") == (200, "text/plain; charset=utf-8", "ok\n")
    pages._progress._ticked -= 60
    status, _, body = get(f"{url}/healthz")
    found = re.fullmatch(r"the event loop hangs for (\d+) s\n", body)
    assert (status, found is not None and int(found[1]) >= 60) == (503, True), body


def test_the_process_is_ready_when_all_watches_and_controllers_have_listed(
    server: tuple[str, Endpoints], feed: StateFeed
) -> None:
    url, pages = server
    feed.reflectors[2].trouble = "queues.scheduling.volcano.sh is not served (is its CRD applied?)"
    status, _, body = get(f"{url}/readyz")
    assert status == 503
    assert "queues.scheduling.volcano.sh is not served (is its CRD applied?)\n" in body
    assert "pods not yet listed\n" in body
    for reflector in feed.reflectors:
        reflector.synced.set()
    pages.unlisted = lambda: ["jobs.batch.volcano.sh not yet listed"]
    assert get(f"{url}/readyz")[0] == 503
    pages.unlisted = list
    assert get(f"{url}/readyz") == (200, "text/plain; charset=utf-8", "ok\n")


def test_the_policy_in_force_and_the_metrics_can_be_read(server: tuple[str, Endpoints]) -> None:
    url, _ = server
    status, kind, body = get(f"{url}/policy")
    assert (status, kind) == (200, "application/json")
    assert json.loads(body)["path"] == "default"
    assert 'volcano_schedule_attempts_total{result="scheduled"} 1.0' in get(f"{url}/metrics")[2]


def test_a_scrape_by_name_returns_only_the_named_metrics(server: tuple[str, Endpoints]) -> None:
    url, _ = server
    status, _, body = get(f"{url}/metrics?name[]=schedspec_leader&name[]=schedspec_dropped_events")
    assert status == 200
    found = {line for line in body.splitlines() if not line.startswith("#")}
    assert found == {"schedspec_dropped_events 0.0", "schedspec_leader 0.0"}


def test_an_unknown_page_names_the_known_ones(server: tuple[str, Endpoints]) -> None:
    assert get(f"{server[0]}/x") == (
        404,
        "text/plain; charset=utf-8",
        "no such page; the pages are /healthz, /readyz, /metrics, /policy\n",
    )


def test_a_page_that_fails_returns_the_error_and_the_server_continues(server: tuple[str, Endpoints]) -> None:
    url, pages = server
    pages.unlisted = lambda: 1 / 0  # type: ignore[assignment,return-value]
    assert get(f"{url}/readyz") == (
        500,
        "text/plain; charset=utf-8",
        "this page failed: ZeroDivisionError('division by zero'); try again\n",
    )
    assert get(f"{url}/healthz")[0] == 200


def test_a_client_that_disconnects_early_causes_no_traceback(
    server: tuple[str, Endpoints], capfd: pytest.CaptureFixture[str]
) -> None:
    host, _, port = server[0].removeprefix("http://").partition(":")
    for body in (b"GET /metrics HTTP/1.1\r\n\r\n", b"GET /met", b"\x16\x03\x01 no HTTP\r\n\r\n"):
        client = socket.create_connection((host, int(port)))
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # `close` sends a reset
        client.sendall(body)
        client.close()
    for _ in range(20):
        assert get(f"{server[0]}/healthz")[0] == 200
    assert capfd.readouterr().err == ""


def test_an_address_in_use_is_refused_with_a_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=f"cannot listen on 127.0.0.1:{port}: .*; choose another --listen"):
            Server("127.0.0.1", port, {})


def test_a_connection_is_kept_for_the_next_request(server: tuple[str, Endpoints]) -> None:
    connection = http.client.HTTPConnection(server[0].removeprefix("http://"), timeout=60)
    connection.connect()
    first = connection.sock
    for page, status in (("/healthz", 200), ("/nowhere", 404), ("/metrics", 200)):
        connection.request("GET", page)
        answer = connection.getresponse()
        assert (answer.status, len(answer.read())) == (status, int(answer.headers["Content-Length"]))
        assert connection.sock is first
    connection.close()


def unfinished(address: str, count: int) -> list[socket.socket]:
    """Open `count` connections with an unfinished request each."""
    host, _, port = address.removeprefix("http://").partition(":")
    clients = []
    for _ in range(count):
        clients.append(socket.create_connection((host, int(port)), timeout=60))
        clients[-1].sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
    return clients


def test_a_request_is_answered_beside_a_thousand_unfinished_requests(
    server: tuple[str, Endpoints],
) -> None:
    url, _ = server
    threads = threading.active_count()
    clients = unfinished(url, 995)
    try:
        started = time.monotonic()
        assert get(f"{url}/healthz")[0] == 200
        assert time.monotonic() - started < 1.0
        assert threading.active_count() == threads
        still_open = [client for client in clients if not is_closed(client)]
        assert 0 < len(still_open) <= 64
        assert clients[-1] in still_open
    finally:
        for client in clients:
            client.close()


def is_closed(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_an_unfinished_request_times_out_even_while_it_sends_headers(
    server: tuple[str, Endpoints], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_SILENCE", 0.3)
    [client] = unfinished(server[0], 1)
    until = time.monotonic() + SAFETY_NET
    with client:
        while not is_closed(client):
            assert time.monotonic() < until
            with contextlib.suppress(OSError):
                client.sendall(b"X-More: of the same\r\n")
            time.sleep(0.05)


TOO_LARGE = {
    "a line": b"GET /" + b"x" * 10_000 + b" HTTP/1.1\r\n\r\n",
    "a header": b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 10_000 + b"\r\n\r\n",
    "headers": b"GET /healthz HTTP/1.1\r\n" + b"X: y\r\n" * 1_000 + b"\r\n",
}


@pytest.mark.parametrize("query", TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_request_that_is_too_large_is_refused(server: tuple[str, Endpoints], query: bytes) -> None:
    host, _, port = server[0].removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as client:
        client.sendall(query)
        assert client.recv(100).startswith(b"HTTP/1.0 400 ")


def test_only_read_requests_are_allowed(server: tuple[str, Endpoints]) -> None:
    request = urllib.request.Request(f"{server[0]}/policy", data=b"{}", method="POST")
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(request, timeout=60)
