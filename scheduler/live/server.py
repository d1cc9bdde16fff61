"""Health, metrics and the policy in force, over HTTP.

The one rule: it answers from a thread of its own, so that it can tell of an event loop that hangs; it only ever reads.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

log = logging.getLogger(__name__)

Answer = tuple[int, str, bytes]
"""Status, content type, body."""
Query = Mapping[str, Sequence[str]]
"""What was asked after the path's question mark."""
Page = Callable[[Query], Answer]

TEXT, JSON, METRICS = "text/plain; charset=utf-8", "application/json", "text/plain; version=0.0.4; charset=utf-8"


_SILENCE = 30.0
"""Seconds after which a connection on which nothing is asked is closed."""


class ListenError(Exception):
    """The address cannot be listened on."""


def text(status: int, message: str) -> Answer:
    return status, TEXT, f"{message}\n".encode()


def data(value: object) -> Answer:
    return 200, JSON, json.dumps(value, indent=1).encode() + b"\n"


def _answer(pages: Mapping[str, Page], asked: str) -> Answer:
    path, _, query = asked.partition("?")
    if path not in pages:
        return text(404, f"no such page; there are {', '.join(pages)}")
    try:
        return pages[path](parse_qs(query))
    except Exception as error:  # the page may be asked for while what it reads changes
        log.exception("the page %s cannot be made", path)
        return text(500, f"this page cannot be made: {error!r}; ask again")


class _Server(ThreadingHTTPServer):
    """Its own way of telling of who hangs up early is a traceback on stderr, where every line is to be JSON."""

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - the base's names
        log.debug("connection of %s ended early", client_address, exc_info=True)


class Server:
    """Pages by path. ``address`` is where it listens, known from the start. Raises ListenError."""

    def __init__(self, host: str, port: int, pages: Mapping[str, Page]) -> None:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # who asks again need not connect again
            timeout = _SILENCE
            wbufsize = -1  # head and body in one write

            def do_GET(self) -> None:
                status, kind, body = _answer(pages, self.path)
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
                pass

        try:
            self._server = _Server((host, port), Handler)
        except OSError as error:
            raise ListenError(f"cannot listen on {host}:{port}: {error.strerror}; give another --listen") from error
        self._server.daemon_threads = True
        self.address = f"{host}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="http", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
