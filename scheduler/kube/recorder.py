"""Write events, which users read in `kubectl describe`. No caller waits for an event.

1. Waiting events are merged per object and reason.
2. A few workers write them while no more urgent write is due. Namespaces share workers and memory fairly.
3. An event that the server refuses is dropped.
4. A written event is remembered for some minutes or until its object is deleted; a repetition increases its count.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ..model.objects import ObjectMeta
from ..model.times import timestamp
from .client import Client, Patch
from .clock import steady_time, wall_time
from .errors import AlreadyExists, KubeError, NotFound, TooManyRequests, Unreachable
from .fair_queue import FairQueue
from .recent import Recent
from .reflector import Absent, Change
from .resource import EVENTS, Resource

log = logging.getLogger(__name__)

_MAX_WAITING = 20_000
"""Maximum number of waiting events of one namespace."""
_PAUSE = 1.0
"""Seconds for which the writes of a namespace pause after a 429 without Retry-After, or without an answer."""
_MAX_REMEMBERED = 4_096
_REPEATED_WITHIN = 300.0
"""Seconds within which a repetition increases the count of the written event. A later one is a new event."""
_MAX_MESSAGE = 1_000
"""Maximum characters of a message; events.k8s.io/v1 limits a note to 1,024 bytes."""

NORMAL, WARNING = "Normal", "Warning"


@dataclass(frozen=True, slots=True)
class EventData:
    """The machine-readable part of an event: the fields of the same names in a `v1` Event."""

    action: str = ""
    related: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


_NO_DATA = EventData()


@dataclass(slots=True)
class _Waiting:
    about: dict[str, str]
    type: str
    reason: str
    message: str
    count: int
    first: float
    last: float
    data: EventData
    is_object_deleted: bool = False


@dataclass(slots=True)
class _Written:
    namespace: str
    name: str
    digest: int
    """Hash of the message, which may have a thousand characters."""
    count: int


class EventRecorder:
    """Write events as `component`.

    `urgent` is awaited before each write. It returns when no more urgent write is due.
    """

    def __init__(
        self, client: Client, component: str, *, workers: int = 4, urgent: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self.dropped = 0
        """Number of dropped events."""
        self._client = client
        self._component = component
        self._urgent = urgent
        self._waiting: dict[tuple[str, str], _Waiting] = {}
        self._waiting_by_namespace: Counter[str] = Counter()
        """Number of waiting events by namespace."""
        self._keys: FairQueue[tuple[str, str]] = FairQueue(workers)
        self._written: Recent[tuple[str, str], _Written] = Recent(_REPEATED_WITHIN, _MAX_REMEMBERED, steady_time)
        self._writing: dict[tuple[str, str], _Waiting] = {}
        """Events in flight. A repetition of such an event waits until the name of the event is known."""
        self._reasons: set[str] = set()
        """The reasons of all events: constants of the program, a few dozen."""
        self._number = 0
        self._epoch = f"{int(wall_time() * 1e9):x}"

    def event(
        self,
        resource: Resource[Any],
        meta: ObjectMeta,
        severity: str,
        reason: str,
        message: str,
        *,
        data: EventData = _NO_DATA,
    ) -> None:
        """Queue an event about an object.

        `severity` is NORMAL or WARNING, `reason` one CamelCase word, `message` a sentence for users; `data` is for
        programs.
        """
        key = (meta.uid or meta.key, reason)
        now = wall_time()
        waiting = self._waiting.get(key)
        if waiting is not None:
            waiting.count += 1
            waiting.last, waiting.message, waiting.type, waiting.data = now, message, severity, data
            return
        if self._waiting_by_namespace[meta.namespace] >= _MAX_WAITING:
            self.dropped += 1
            return
        about = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
        }
        self._reasons.add(reason)
        self._waiting[key] = _Waiting(about, severity, reason, message, 1, now, now, data)
        self._waiting_by_namespace[meta.namespace] += 1
        if key not in self._writing:
            self._keys.put(meta.namespace, key)

    def on_object(self, change: Change[Any]) -> None:
        """Forget the written events of a deleted object. Reflectors call this as a handler."""
        if isinstance(change, Absent):
            for reason in self._reasons:
                key = (change.uid or change.key, reason)
                self._written.pop(key)
                for event in (self._waiting.get(key), self._writing.get(key)):
                    if event is not None:
                        event.is_object_deleted = True

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._keys.workers):
                group.create_task(self._work())

    async def drain(self) -> None:
        """Wait until all events are written."""
        while self._waiting or self._writing:
            await asyncio.sleep(0.01)

    async def _work(self) -> None:
        while True:
            namespace, key = await self._keys.take()
            if self._urgent is not None:
                await self._urgent()
            waiting = self._waiting.pop(key)
            self._waiting_by_namespace[namespace] -= 1
            if not self._waiting_by_namespace[namespace]:
                del self._waiting_by_namespace[namespace]
            self._writing[key] = waiting
            try:
                await self._write(key, waiting)
            except KubeError as error:
                self.dropped += 1
                log.debug("event dropped: %s", error)
                if isinstance(error, TooManyRequests | Unreachable):
                    self._keys.hold(namespace, getattr(error, "retry_after", None) or _PAUSE)
            except Exception:  # one bad event must not stop the others
                self.dropped += 1
                log.exception("event dropped after an unexpected error")
            finally:
                del self._writing[key]
                self._keys.done(namespace)
                if key in self._waiting:
                    self._keys.put(namespace, key)

    async def _write(self, key: tuple[str, str], waiting: _Waiting) -> None:
        message = waiting.message[:_MAX_MESSAGE]
        before, digest = self._written.get(key), hash(message)
        if before is not None and before.digest == digest:
            before.count += waiting.count
            again = {"count": before.count, "lastTimestamp": timestamp(waiting.last)}
            try:
                await self._client.patch(EVENTS, before.name, again, before.namespace, kind=Patch.MERGE)
            except NotFound:  # the written event has expired
                self._written.pop(key)
            else:
                self._remember(key, waiting, before)
                return
        self._number += 1
        # the API server requires that events about objects without a namespace are in `default`
        namespace = waiting.about["namespace"] or "default"
        name = f"{waiting.about['name'][:200].rstrip('-.')}.{self._epoch}{self._number:x}"
        body: dict[str, Any] = {
            "metadata": {"name": name, "namespace": namespace}
            | ({"annotations": waiting.data.annotations} if waiting.data.annotations else {}),
            "involvedObject": {k: v for k, v in waiting.about.items() if v},
            "type": waiting.type,
            "reason": waiting.reason,
            "message": message,
            "source": {"component": self._component},
            "firstTimestamp": timestamp(waiting.first),
            "lastTimestamp": timestamp(waiting.last),
            "count": waiting.count,
        }
        body |= {k: v for k, v in (("action", waiting.data.action), ("related", waiting.data.related)) if v}
        try:
            await self._client.create(EVENTS, body, namespace)
        except AlreadyExists:
            log.debug("event %s was written before its answer was lost", name)
        self._remember(key, waiting, _Written(namespace, name, digest, waiting.count))

    def _remember(self, key: tuple[str, str], event: _Waiting, written: _Written) -> None:
        if not event.is_object_deleted:
            self._written.set(key, written)
