"""Fixtures for clusters. Live tests carry the marker `embedded`: they boot real control planes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from schedspec.clusters import Settings
from schedspec.clusters.embedded import EmbeddedCluster

Serve = Callable[[Callable[[socket.socket], None]], str]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "embedded: boots an embedded cluster (seconds; minutes where Go has to build it)"
    )


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty registry instead of the registry of this machine."""
    monkeypatch.setenv("SCHEDSPEC_STATE", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture(scope="session")
def embedded() -> Iterator[EmbeddedCluster]:
    """Yield one live cluster for all tests that can share it."""
    cluster = EmbeddedCluster(Settings(kind="embedded"))
    cluster.up(print)
    yield cluster
    cluster.down()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Return a function that starts a TCP server with a connection handler and returns its address `127.0.0.1:PORT`."""
    stopping = threading.Event()
    threads: list[threading.Thread] = []
    listeners: list[socket.socket] = []

    def start(handle: Callable[[socket.socket], None]) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(0.1)
        listeners.append(listener)

        def loop() -> None:
            while not stopping.is_set():
                try:
                    connection, _ = listener.accept()
                except TimeoutError:
                    continue
                connection.settimeout(2)
                with connection:
                    try:
                        handle(connection)
                    except OSError:
                        continue

        thread = threading.Thread(target=loop)
        thread.start()
        threads.append(thread)
        return f"127.0.0.1:{listener.getsockname()[1]}"

    yield start
    stopping.set()
    for thread in threads:
        thread.join()
    for listener in listeners:
        listener.close()


@pytest.fixture
def serve_files(serve: Serve) -> Callable[[dict[str, bytes]], str]:
    """Return a function that starts a web server of files by path and returns its address; other paths get a 404."""

    def start(files: dict[str, bytes]) -> str:
        def handle(connection: socket.socket) -> None:
            request = b""
            while b"\r\n\r\n" not in request and (piece := connection.recv(4096)):
                request += piece
            body = files.get(request.split(b" ")[1].decode())
            status = b"404 Not Found" if body is None else b"200 OK"
            body = body or b""
            head = b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, len(body))
            connection.sendall(head + body)

        return serve(handle)

    return start
