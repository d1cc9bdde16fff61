"""Statuses on their way to the API server.

The one rule: of each object only the last wish is written, only if it differs from what was written before, and only
while no bind and no eviction is under way. A status is a wish, never a decision: one that is lost is wished again by
the next cycle. One that has no answer yet waits outside of the workers, which namespaces share fairly.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ..kube import Client, Conflict, KubeError, NotFound, Patch, Resource
from ..kube.attempts import Again, again_after
from ..kube.backoff import Backoff
from ..kube.fair_queue import FairQueue
from ..kube.recent import Recent
from .statuses import Status

log = logging.getLogger(__name__)

MANAGER = "schedspec-scheduler"
_IN_FLIGHT = 8
_URGENT_IN_FLIGHT = 4
_REMEMBERED = 4_096
_TRUST = 5.0
"""Seconds for which what was written is taken to stand; after that the watch has shown what does."""


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
    """Statuses by object. ``urgent`` is awaited before each write; ``pause`` is the least time between two of one
    object, in seconds. ``client`` is one that tries ``once``.
    """

    def __init__(self, client: Client, urgent: Callable[[], Awaitable[None]], pause: float = 0.2) -> None:
        self._client = client
        self._urgent = urgent
        self._pause = pause
        self._wishes: dict[str, _Wish] = {}
        self._ready: FairQueue[str] = FairQueue(_IN_FLIGHT)
        self._first: FairQueue[str] = FairQueue(_URGENT_IN_FLIGHT)
        self._resting: dict[str, asyncio.TimerHandle] = {}
        self._written: Recent[str, str] = Recent(_TRUST, _REMEMBERED, time.monotonic)
        self._busy: set[str] = set()
        self._backoffs: dict[str, Backoff] = {}
        """Of objects whose status has no answer yet."""

    def __len__(self) -> int:
        """How many objects wait for their status, or have it in flight."""
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
        """Make the scheduler's part of a status exactly this (server-side apply).

        ``at_once``: somebody waits for it, so it overtakes the binds.
        """
        self._wish(_Wish(resource, namespace, name, uid, status, Patch.APPLY, at_once))

    def merge(self, resource: Resource[Any], namespace: str, name: str, uid: str, status: Status) -> None:
        """Change these fields of a core object's status; conditions merge by type."""
        self._wish(_Wish(resource, namespace, name, uid, status, Patch.STRATEGIC, at_once=False))

    def forget(self, uid: str) -> None:
        """The object is gone, or what is known to be written is no longer to be trusted."""
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
        """One attempt; what has no verdict comes again after its rest, unless there is a newer wish then."""
        key, again = wish.uid, None
        self._busy.add(key)
        try:
            await self._patch(wish)
        except (NotFound, Conflict) as error:
            log.debug("gone before its status was written: %s", error)
        except KubeError as error:
            again = again_after(error, self._backoffs.setdefault(key, Backoff(self._pause, most=10.0)))
            if again is None:
                log.warning("status refused: %s", error)
            else:
                log.info("status not written yet: %s", error)
                self._wishes.setdefault(key, wish)
        except Exception:  # whatever comes of one status must not stop the others
            log.exception("a status was given up in an unforeseen way")
        else:
            self._written.set(wish.uid, _digest(wish))
        finally:
            self._busy.discard(key)
            if again is None:
                self._backoffs.pop(key, None)
            rest = self._pause if again is None or again.holds_flow else max(again.after, self._pause)
            self._resting[key] = asyncio.get_running_loop().call_later(rest, self._rested, key)
        return again

    def _rested(self, key: str) -> None:
        self._resting.pop(key, None)
        if (wish := self._wishes.get(key)) is not None:
            self._put(wish)

    async def _patch(self, wish: _Wish) -> None:
        self._written.pop(wish.uid)  # until it is answered nobody knows what stands
        body: dict[str, Any] = {"metadata": {"name": wish.name, "uid": wish.uid}, "status": wish.status}
        resource = wish.resource.bare
        if wish.kind is Patch.APPLY:
            body |= {"apiVersion": resource.api_version, "kind": resource.kind}
            await self._client.patch(
                resource, wish.name, body, wish.namespace, kind=wish.kind, sub="status", manager=MANAGER, force=True
            )
        else:
            await self._client.patch(resource, wish.name, body, wish.namespace, kind=wish.kind, sub="status")


def _digest(wish: _Wish) -> str:
    """What two wishes have in common that say the same; when a condition began to hold makes no difference."""

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: timeless(v) for k, v in value.items() if k != "lastTransitionTime"}
        return [timeless(item) for item in value] if isinstance(value, list) else value

    return json.dumps(timeless(wish.status), sort_keys=True)
