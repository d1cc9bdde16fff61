"""Let the harness use a simulated cluster like any other: API, watches and clock.

Virtual time passes only while the run waits or writes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import msgspec

from ..api.client import Api
from ..api.kinds import SERVED
from ..api.kinds import Resource as Served
from ..api.names import Names
from ..clusters.simulated import Object
from .watcher import HistoryWriter

if TYPE_CHECKING:
    from ..clusters.simulated import VirtualCluster

_KINDS = {f"{served.api_version}/{served.plural}": kind for kind, served in SERVED.items()}

_CHECK_INTERVAL = 0.1
"""Virtual seconds between two checks if nothing changes; a change ends a wait at once."""
_WRITE_SECONDS = 0.03
"""Virtual duration of a write by the harness, which gives controllers time to react, as on a real cluster."""


class _Response:
    """The part of a urllib3 response that callers of `Api.raw` use."""

    def __init__(self, status: int, data: bytes) -> None:
        self.status, self.data = status, data

    def json(self) -> Any:
        return msgspec.json.decode(self.data)


class VirtualApi(Api):
    """The API server of a simulated cluster."""

    def __init__(self, virtual: VirtualCluster) -> None:
        self._virtual = virtual
        self.names = Names()
        self.server = "simulated"
        self._known: dict[tuple[str, str], Served] = {}
        self._lock = threading.Lock()

    def close(self) -> None:
        """Do nothing: no connection is open."""

    def raw(  # type: ignore[override]
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: object = None,
        content_type: str = "application/json",
        **_: object,
    ) -> _Response:
        """Send one request and return its response."""
        if method != "GET":
            self._virtual.advance(_WRITE_SECONDS)
        target = path + (f"?{urlencode(query)}" if query else "")
        data = b"" if body is None else msgspec.json.encode(body)
        return _Response(*self._virtual.request(method, target, data, content_type))


class VirtualWatches:
    """Replaces `Watches`: records each change when it is made."""

    def __init__(self, virtual: VirtualCluster, writer: HistoryWriter) -> None:
        self._virtual, self._writer = virtual, writer

    def start(self, timeout: float) -> None:
        """Record everything from now on."""
        del timeout
        self._virtual.watch(self._record)

    def _record(self, kind: str, change: str, item: Object) -> None:
        if (known := _KINDS.get(kind)) is not None:
            self._writer.record(known, dict(item, metadata=dict(item["metadata"])), gone=change == "DELETED")

    def check(self) -> None:
        """Do nothing: no connection can break."""

    def stop(self) -> None:
        """Do nothing: the cluster ends with the session."""


class VirtualClock:
    """The clock of a simulated cluster. It starts at the machine's time, so that times read before are smaller."""

    def __init__(self, virtual: VirtualCluster) -> None:
        self._virtual, self._zero = virtual, time.monotonic() - virtual.now()

    def monotonic(self) -> float:
        return self._zero + self._virtual.now()

    def wall(self) -> float:
        return self._virtual.wall()

    def sleep(self, seconds: float) -> None:
        self._virtual.advance(seconds)

    def wait(self, condition: threading.Condition, seconds: float) -> None:
        del condition
        self._virtual.advance(max(seconds, _CHECK_INTERVAL), until_change=True)
