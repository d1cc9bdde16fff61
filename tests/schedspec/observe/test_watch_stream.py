"""Watches of a server that disconnects, expires, refuses and recovers: each version is recorded exactly once."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from schedspec.api.client import Api
from schedspec.api.errors import ClusterUnreachableError, HarnessError
from schedspec.api.kinds import Kind
from schedspec.observe.history import History
from schedspec.observe.watcher import HistoryWriter, Watches
from tests.support.fake_server import SAFETY_NET

Answer = tuple[int, list[dict[str, Any]] | dict[str, Any] | str]


def node(name: str, version: int) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"u-{name}", "resourceVersion": str(version)}}


def listed(version: int, *items: dict[str, Any], more: str = "") -> Answer:
    return 200, {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(items)}


def shown(*events: tuple[str, dict[str, Any]]) -> Answer:
    return 200, [{"type": kind, "object": obj} for kind, obj in events]


class Script:
    """The answers of the server, in order. After them, its watches stay open and silent."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.queries: list[dict[str, str]] = []
        self.done = threading.Event()

    def answer(self, query: dict[str, str]) -> Answer | None:
        self.queries.append(query)
        return self.answers.pop(0) if self.answers else None


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def api(script: Script, tmp_path: Path) -> Iterator[Api]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            """Log nothing."""

        def do_GET(self) -> None:
            query = {key: values[0] for key, values in parse_qs(urlparse(self.path).query).items()}
            answer = script.answer(query)
            status, body = answer if answer is not None else (200, [])
            self.send_response(status)
            if "watch" not in query or status != 200:
                text = body if isinstance(body, str) else json.dumps(body)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())
                return
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for event in body:
                self.chunk(json.dumps(event).encode() + b"\n")
            if answer is None:
                script.done.wait(10)
            self.chunk(b"")

        def chunk(self, data: bytes) -> None:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    url = f"http://127.0.0.1:{server.server_address[1]}"
    config = tmp_path / "config"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "c",
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
                "clusters": [{"name": "c", "cluster": {"server": url}}],
                "users": [{"name": "u", "user": {"token": "t"}}],
            }
        )
    )
    client = Api(config, "c")
    yield client
    script.done.set()
    client.close()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def watched(script: Script, api: Api) -> Iterator[Callable[..., History]]:
    """Play these answers, and yield the history once the server has no more answers."""
    writer = HistoryWriter()
    history = writer.begin("ns")
    watches = Watches(api, writer, [Kind.NODE])

    def play(*answers: Answer) -> History:
        script.answers += answers
        watches.start(5)
        end = time.monotonic() + SAFETY_NET
        while len(script.queries) <= len(answers) and time.monotonic() < end:
            history.wait(len(history), 0.01)
            watches.check()
        return history

    yield play
    script.done.set()
    watches.stop()


def changes(history: History) -> list[tuple[str, str]]:
    return [(version.change, version.ref.name) for version in history.since(0)]


def test_a_list_and_the_watch_events_after_it_are_recorded(watched: Callable[..., History]) -> None:
    history = watched(listed(5, node("a", 3)), shown(("ADDED", node("b", 6)), ("DELETED", node("a", 7))))
    assert changes(history) == [("added", "a"), ("added", "b"), ("gone", "a")]


def test_a_long_list_is_read_in_pages(watched: Callable[..., History], script: Script) -> None:
    history = watched(listed(5, node("a", 3), more="next"), listed(5, node("b", 4)))
    assert changes(history) == [("added", "a"), ("added", "b")]
    assert [query.get("continue") for query in script.queries[:2]] == [None, "next"]


def test_a_watch_continues_from_the_last_resource_version(watched: Callable[..., History], script: Script) -> None:
    history = watched(listed(5), shown(("ADDED", node("a", 6))), shown(("MODIFIED", node("a", 8))))
    assert changes(history) == [("added", "a"), ("changed", "a")]
    assert [query.get("resourceVersion") for query in script.queries] == [None, "5", "6", "8"]


def test_a_bookmark_is_no_object_but_updates_the_version(watched: Callable[..., History], script: Script) -> None:
    history = watched(listed(5), shown(("BOOKMARK", {"metadata": {"resourceVersion": "90"}})))
    assert changes(history) == []
    assert script.queries[-1]["resourceVersion"] == "90"


@pytest.mark.parametrize(
    "gone",
    [(410, "too old"), shown(("ERROR", {"code": 410, "metadata": {}}))],
    ids=["status 410", "an ERROR event"],
)
def test_an_expired_resource_version_leads_to_a_new_list(watched: Callable[..., History], gone: Answer) -> None:
    history = watched(listed(5, node("a", 3), node("b", 3)), gone, listed(9, node("b", 3), node("c", 8)))
    assert changes(history) == [("added", "a"), ("added", "b"), ("gone", "a"), ("added", "c")]


def test_a_kind_that_is_not_served_yet_is_requested_again(watched: Callable[..., History]) -> None:
    history = watched((404, "404 page not found"), (429, "not yet"), listed(5, node("a", 3)))
    assert changes(history) == [("added", "a")]


def test_refused_credentials_end_the_run_with_the_words_of_the_server(
    watched: Callable[..., History], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("schedspec.observe.watcher._UNREACHABLE_SECONDS", 0.3)
    with pytest.raises(HarnessError, match="the token has expired"):
        watched(*[(401, {"message": "the token has expired"})] * 60)


def test_credentials_that_are_refused_once_are_used_again(watched: Callable[..., History]) -> None:
    history = watched((401, {"message": "try again"}), listed(5, node("a", 3)))
    assert changes(history) == [("added", "a")]


def test_stop_ends_a_silent_watch(script: Script, api: Api) -> None:
    watches = Watches(api, HistoryWriter(), [Kind.NODE])
    script.answers.append(listed(5))
    watches.start(5)
    deadline = time.monotonic() + SAFETY_NET
    while len(script.queries) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (thread,) = [it for it in threading.enumerate() if it.name.startswith("watch-")]
    watches.stop()
    assert not thread.is_alive()


def test_an_event_that_cannot_be_read_ends_the_watch_with_an_error(watched: Callable[..., History]) -> None:
    with pytest.raises(HarnessError, match="the watch of nodes ended: "):
        watched(listed(5), shown(("ADDED", {"no": "metadata"})))


def test_an_unreachable_server_is_an_error(tmp_path: Path, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "server", "http://127.0.0.1:1")
    watches = Watches(api, HistoryWriter(), [Kind.NODE])
    with pytest.raises(ClusterUnreachableError, match=r"no list of nodes within 0\.2 s"):
        watches.start(0.2)
    watches.stop()
