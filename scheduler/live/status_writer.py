"""Write statuses to the API server. A status is a wish, never a decision: the next cycle repeats a lost one.

1. For each object only the last wish is written, only if it differs from the last write, and only while no bind or
   eviction is in flight.
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
from ..kube.attempts import Again, again_after
from ..kube.backoff import Backoff
from ..kube.clock import steady_time
from ..kube.fair_queue import FairQueue
from ..kube.recent import Recent
from .statuses import Status

log = logging.getLogger(__name__)

MANAGER = "schedspec-scheduler"
_IN_FLIGHT = 8
_URGENT_IN_FLIGHT = 4
_REMEMBERED = 4_096
_TRUST = 5.0
"""Seconds for which a written status is assumed to hold; after that the watch has shown the actual one."""


@dataclass(slots=True)
class _Wish:
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
        urgent: Awaited before each write.
        pause: Minimum seconds between two writes of one object.
    """

    def __init__(self, client: Client, urgent: Callable[[], Awaitable[None]], pause: float = 0.2) -> None:
        self._client = client
        self._urgent = urgent
        self._pause = pause
        self._wishes: dict[str, _Wish] = {}
        self._ready: FairQueue[str] = FairQueue(_IN_FLIGHT)
        self._first: FairQueue[str] = FairQueue(_URGENT_IN_FLIGHT)
        self._resting: dict[str, asyncio.TimerHandle] = {}
        self._written: Recent[str, bytes] = Recent(_TRUST, _REMEMBERED, steady_time)
        self._busy: set[str] = set()
        self._backoffs: dict[str, Backoff] = {}
        """The objects whose status has no answer yet."""

    def __len__(self) -> int:
        """Return how many objects wait for their status, or have it in flight."""
        return len(self._wishes) + len(self._busy)

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
        """Set the scheduler's part of a status to exactly this (server-side apply).

        With `at_once`, another controller waits for the status, and it overtakes the binds.
        """
        self._wish(_Wish(resource, namespace, name, uid, status, Patch.APPLY, at_once))

    def merge(self, resource: Resource[Any], namespace: str, name: str, uid: str, status: Status) -> None:
        """Change these fields of a core object's status. Conditions merge by type."""
        self._wish(_Wish(resource, namespace, name, uid, status, Patch.STRATEGIC, at_once=False))

    def forget(self, uid: str) -> None:
        """Drop the wish of an object, and what was written, after its deletion or an outside change."""
        self._written.pop(uid)
        self._wishes.pop(uid, None)

    def _stands(self, wish: _Wish) -> bool:
        return self._written.get(wish.uid) == _digest(wish)

    def _wish(self, wish: _Wish) -> None:
        key = wish.uid
        if key not in self._wishes and self._stands(wish):
            return
        before = self._wishes.get(key)
        new = before is None
        if before is not None and wish.kind is Patch.STRATEGIC:
            wish.status = {**before.status, **wish.status}
        self._wishes[key] = wish
        if key in self._busy or key in self._resting:
            return
        if new or wish.at_once:
            self._put(wish)

    def _put(self, wish: _Wish) -> None:
        (self._first if wish.at_once else self._ready).put(wish.flow, wish.uid)

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for keys in (self._first, self._ready):
                for _ in range(keys.workers):
                    group.create_task(self._work(keys))

    async def drain(self) -> None:
        """Wait until every wish is written."""
        while self._wishes or self._busy:
            await asyncio.sleep(0.01)

    async def _work(self, keys: FairQueue[str]) -> None:
        while True:
            flow, key = await keys.take()
            try:
                if keys is self._ready:
                    await self._urgent()
                if key in self._busy or (wish := self._wishes.pop(key, None)) is None or self._stands(wish):
                    continue
                again = await self._write(wish)
                if again is not None and again.holds_flow:
                    keys.hold(flow, again.after)
            finally:
                keys.done(flow)

    async def _write(self, wish: _Wish) -> Again | None:
        """Attempt one write. Without a verdict, it is repeated after a pause, unless there is a newer wish."""
        key, again = wish.uid, None
        self._busy.add(key)
        try:
            await self._patch(wish)
        except NotFound as error:
            log.debug("the object was deleted before its status was written: %s", error)
        except KubeError as error:
            again = await self._after_error(wish, error)
            if again is not None:
                log.info("status not written yet: %s", error)
                self._wishes.setdefault(key, wish)
        except Exception:  # one bad status must not stop the others
            log.exception("status dropped after an unexpected error")
        else:
            self._written.set(wish.uid, _digest(wish))
        finally:
            self._busy.discard(key)
            if again is None:
                self._backoffs.pop(key, None)
            rest = self._pause if again is None or again.holds_flow else max(again.after, self._pause)
            self._resting[key] = asyncio.get_running_loop().call_later(rest, self._rested, key)
        return again

    async def _after_error(self, wish: _Wish, error: KubeError) -> Again | None:
        """Return when to repeat a write that failed; None where the object is gone or the status is refused.

        A conflict (409) alone does not mean that the object is gone: admission webhooks and concurrent writers cause
        conflicts too. Only a changed uid does.
        """
        backoff = self._backoffs.setdefault(wish.uid, Backoff(self._pause, most=10.0))
        if isinstance(error, Conflict):
            try:
                if not await self._client.exists(wish.resource, wish.name, wish.namespace, wish.uid):
                    log.debug("the object was deleted before its status was written: %s", error)
                    return None
            except KubeError as unknown:
                log.info("cannot tell whether the object still exists: %s", unknown)
            return Again(backoff.next())
        again = again_after(error, backoff)
        if again is None:
            log.warning("status refused: %s", error)
        return again

    def _rested(self, key: str) -> None:
        self._resting.pop(key, None)
        if (wish := self._wishes.get(key)) is not None:
            self._put(wish)

    async def _patch(self, wish: _Wish) -> None:
        self._written.pop(wish.uid)  # until the answer, the stored status is unknown
        body: dict[str, Any] = {"metadata": {"name": wish.name, "uid": wish.uid}, "status": wish.status}
        resource = wish.resource.bare
        if wish.kind is Patch.APPLY:
            body |= {"apiVersion": resource.api_version, "kind": resource.kind}
            await self._client.patch(
                resource, wish.name, body, wish.namespace, kind=wish.kind, sub="status", manager=MANAGER, force=True
            )
        else:
            await self._client.patch(resource, wish.name, body, wish.namespace, kind=wish.kind, sub="status")


def _digest(wish: _Wish) -> bytes:
    """Return a digest that is equal for wishes with equal content; transition times of conditions do not count."""
    text = json.dumps(_timeless(wish.status), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _timeless(v) for k, v in value.items() if k != "lastTransitionTime"}
    return [_timeless(item) for item in value] if isinstance(value, list) else value
