"""Write statuses to the API server. A status that is lost does no harm: the next cycle repeats it.

1. For each object, only the latest status is written, and only if it differs from the last write. Except for urgent
   statuses (`at_once`), a write waits until no bind or eviction is in flight.
2. Namespaces share the workers fairly.
3. A write without an answer waits without a worker and is repeated.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ..kube import Client, Conflict, KubeError, NotFound, Patch, Resource
from ..kube.backoff import Again, Backoff, again_after
from ..kube.clock import steady_time
from ..kube.fair_queue import FairQueue
from ..kube.recent import Recent
from .statuses import Status

log = logging.getLogger(__name__)

MANAGER = "schedspec-scheduler"
_IN_FLIGHT = 8
_URGENT_IN_FLIGHT = 4
_REMEMBERED = 4_096
_TRUSTED_FOR = 5.0
"""Seconds for which a written status is assumed to hold; after that the watch has shown the actual status."""


@dataclass(slots=True)
class _Update:
    resource: Resource[Any]
    namespace: str
    name: str
    uid: str
    status: Status
    kind: Patch
    at_once: bool

    @property
    def flow(self) -> str:
        return f"{self.resource.plural}/{self.namespace}"


class StatusWriter:
    """Statuses by object.

    Args:
        client: A client that tries `once`.
        urgent: Waits until no bind or eviction is in flight; awaited before each write that is not `at_once`.
        pause: Minimum seconds between two writes of one object.
    """

    def __init__(self, client: Client, urgent: Callable[[], Awaitable[None]], pause: float = 0.2) -> None:
        self._client = client
        self._urgent = urgent
        self._pause = pause
        self._updates: dict[str, _Update] = {}
        """The latest update of each object, by uid, until its write starts."""
        self._normal: FairQueue[str] = FairQueue(_IN_FLIGHT)
        self._at_once: FairQueue[str] = FairQueue(_URGENT_IN_FLIGHT)
        self._pauses: dict[str, asyncio.TimerHandle] = {}
        self._written: Recent[str, bytes] = Recent(_TRUSTED_FOR, _REMEMBERED, steady_time)
        self._busy: set[str] = set()
        self._backoffs: dict[str, Backoff] = {}
        """Backoffs of the objects whose last write failed and is repeated, by uid."""

    def __len__(self) -> int:
        """Return how many objects have a status that waits or is in flight."""
        return len(self._updates) + len(self._busy)

    def apply(
        self,
        resource: Resource[Any],
        namespace: str,
        name: str,
        uid: str,
        status: Status,
        *,
        at_once: bool = False,
    ) -> None:
        """Set the scheduler's part of a status to exactly `status` (server-side apply).

        With `at_once`, the write does not wait for binds, because another controller waits for the status.
        """
        self._add(_Update(resource, namespace, name, uid, status, Patch.APPLY, at_once))

    def merge(self, resource: Resource[Any], namespace: str, name: str, uid: str, status: Status) -> None:
        """Merge `status` into a core object's status. Conditions merge by type."""
        self._add(_Update(resource, namespace, name, uid, status, Patch.STRATEGIC, at_once=False))

    def forget(self, uid: str) -> None:
        """Drop the waiting status and the last written status of an object that was deleted or changed by others."""
        self._written.pop(uid)
        self._updates.pop(uid, None)

    def _is_written(self, update: _Update) -> bool:
        return self._written.get(update.uid) == _digest(update)

    def _add(self, update: _Update) -> None:
        key = update.uid
        if key not in self._updates and self._is_written(update):
            return
        before = self._updates.get(key)
        new = before is None
        if before is not None and update.kind is Patch.STRATEGIC:
            update.status = {**before.status, **update.status}
        self._updates[key] = update
        if key in self._busy or key in self._pauses:
            return
        if new or update.at_once:
            self._put(update)

    def _put(self, update: _Update) -> None:
        (self._at_once if update.at_once else self._normal).put(update.flow, update.uid)

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for keys in (self._at_once, self._normal):
                for _ in range(keys.workers):
                    group.create_task(self._work(keys))

    async def drain(self) -> None:
        """Wait until every status is written."""
        while self._updates or self._busy:
            await asyncio.sleep(0.01)

    async def _work(self, keys: FairQueue[str]) -> None:
        while True:
            flow, key = await keys.take()
            try:
                if keys is self._normal:
                    await self._urgent()
                if key in self._busy or (update := self._updates.pop(key, None)) is None or self._is_written(update):
                    continue
                again = await self._write(update)
                if again is not None and again.holds_flow:
                    keys.hold(flow, again.after)
            finally:
                keys.done(flow)

    async def _write(self, update: _Update) -> Again | None:
        """Attempt one write. Repeat it after a pause if the error may be temporary and there is no newer update."""
        key, again = update.uid, None
        self._busy.add(key)
        try:
            await self._patch(update)
        except NotFound as error:
            log.debug("the object was deleted before its status was written: %s", error)
        except KubeError as error:
            again = await self._after_error(update, error)
            if again is not None:
                log.info("status not written yet: %s", error)
                self._updates.setdefault(key, update)
        except Exception:  # one bad status must not stop the others
            log.exception("status dropped after an unexpected error")
        else:
            self._written.set(key, _digest(update))
        finally:
            self._busy.discard(key)
            if again is None:
                self._backoffs.pop(key, None)
            pause = self._pause if again is None or again.holds_flow else max(again.after, self._pause)
            self._pauses[key] = asyncio.get_running_loop().call_later(pause, self._end_pause, key)
        return again

    async def _after_error(self, update: _Update, error: KubeError) -> Again | None:
        """Return when to repeat a write that failed; None if the object was deleted or the status is refused.

        A conflict (409) is not yet proof of a deletion, because admission webhooks and concurrent writers cause
        conflicts too. The proof is a missing or changed uid.
        """
        backoff = self._backoffs.setdefault(update.uid, Backoff(self._pause, most=10.0))
        if isinstance(error, Conflict):
            try:
                if not await self._client.exists(update.resource, update.name, update.namespace, update.uid):
                    log.debug("the object was deleted before its status was written: %s", error)
                    return None
            except KubeError as unknown:
                log.info("cannot determine whether the object still exists: %s", unknown)
            return Again(backoff.next())
        again = again_after(error, backoff)
        if again is None:
            log.warning("status refused: %s", error)
        return again

    def _end_pause(self, key: str) -> None:
        self._pauses.pop(key, None)
        if (update := self._updates.get(key)) is not None:
            self._put(update)

    async def _patch(self, update: _Update) -> None:
        self._written.pop(update.uid)  # until the answer, the stored status is unknown
        body: dict[str, Any] = {"metadata": {"name": update.name, "uid": update.uid}, "status": update.status}
        resource, name, namespace = update.resource.bare, update.name, update.namespace
        if update.kind is Patch.APPLY:
            body |= {"apiVersion": resource.api_version, "kind": resource.kind}
            await self._client.patch(
                resource, name, body, namespace, kind=update.kind, sub="status", manager=MANAGER, force=True
            )
        else:
            await self._client.patch(resource, name, body, namespace, kind=update.kind, sub="status")


def _digest(update: _Update) -> bytes:
    """Return a digest that is equal for equal statuses, apart from the transition times of conditions."""
    text = json.dumps(_timeless(update.status), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if k != "lastTransitionTime"}
    return [_timeless(item) for item in value] if isinstance(value, list) else value
