"""Statuses on their way to the API server.

The one rule: of each object only the last wish is written, only if it differs from what was written before, and only
while no bind and no eviction is under way. A status is a wish, never a decision: one that is lost is wished again by
the next cycle.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from ..kube import Client, Conflict, KubeError, NotFound, Patch, Resource, ServerError, TooManyRequests, Unreachable
from .statuses import Status

log = logging.getLogger(__name__)

MANAGER = "schedspec-scheduler"
_IN_FLIGHT = 8
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
    trust: float


class StatusWriter:
    """Statuses by object. ``urgent`` is awaited before each write; ``pause`` is the least time between two of one
    object, in seconds.
    """

    def __init__(self, client: Client, urgent: Callable[[], Awaitable[None]], pause: float = 0.2) -> None:
        self._client = client
        self._urgent = urgent
        self._pause = pause
        self._wishes: dict[str, _Wish] = {}
        self._ready: asyncio.Queue[str] = asyncio.Queue()
        self._first: asyncio.Queue[str] = asyncio.Queue()
        self._resting: dict[str, asyncio.TimerHandle] = {}
        self._written: dict[str, tuple[str, float]] = {}
        self._busy: set[str] = set()

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
        trust: float = _TRUST,
    ) -> None:
        """Make the scheduler's part of a status exactly this (server-side apply).

        ``at_once``: somebody waits for it, so it overtakes the binds. ``trust``: for so many seconds the same is not
        written again; give infinity where no watch would show that somebody else changed it.
        """
        self._wish(_Wish(resource, namespace, name, uid, status, Patch.APPLY, at_once, trust))

    def merge(self, resource: Resource[Any], namespace: str, name: str, uid: str, status: Status) -> None:
        """Change these fields of a core object's status; conditions merge by type."""
        self._wish(_Wish(resource, namespace, name, uid, status, Patch.STRATEGIC, at_once=False, trust=_TRUST))

    def forget(self, uid: str) -> None:
        """The object is gone, or what is known to be written is no longer to be trusted."""
        self._written.pop(uid, None)
        self._wishes.pop(uid, None)

    def _stands(self, wish: _Wish) -> bool:
        digest, until = self._written.get(wish.uid, ("", 0.0))
        return until > asyncio.get_running_loop().time() and digest == _digest(wish)

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
            (self._first if wish.at_once else self._ready).put_nowait(key)

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._work(self._first, urgent=True))
            group.create_task(self._work(self._first, urgent=True))
            for _ in range(_IN_FLIGHT):
                group.create_task(self._work(self._ready, urgent=False))

    async def drain(self) -> None:
        """Wait until every wish is written."""
        while self._wishes or self._busy:
            await asyncio.sleep(0.01)

    async def _work(self, keys: asyncio.Queue[str], *, urgent: bool) -> None:
        while True:
            key = await keys.get()
            if not urgent:
                await self._urgent()
            wish = self._wishes.pop(key, None)
            if wish is None or key in self._busy:
                if wish is not None:
                    self._wishes[key] = wish
                continue
            if self._stands(wish):
                continue
            self._busy.add(key)
            try:
                await self._write(wish)
            finally:
                self._busy.discard(key)
                self._resting[key] = asyncio.get_running_loop().call_later(self._pause, self._rested, key)

    def _rested(self, key: str) -> None:
        self._resting.pop(key, None)
        if (wish := self._wishes.get(key)) is not None:
            (self._first if wish.at_once else self._ready).put_nowait(key)

    async def _write(self, wish: _Wish) -> None:
        body: dict[str, Any] = {"metadata": {"name": wish.name, "uid": wish.uid}, "status": wish.status}
        resource = wish.resource.bare
        try:
            if wish.kind is Patch.APPLY:
                body |= {"apiVersion": resource.api_version, "kind": resource.kind}
                await self._client.patch(
                    resource, wish.name, body, wish.namespace, kind=wish.kind, sub="status", manager=MANAGER, force=True
                )
            else:
                await self._client.patch(resource, wish.name, body, wish.namespace, kind=wish.kind, sub="status")
        except (NotFound, Conflict) as error:
            log.debug("gone before its status was written: %s", error)
        except (Unreachable, ServerError, TooManyRequests) as error:
            log.info("status not written yet: %s", error)
            self._wishes.setdefault(wish.uid, wish)  # comes again after its rest, unless there is a newer one
        except KubeError as error:
            log.warning("status refused: %s", error)
        except Exception:  # whatever comes of one status must not stop the others
            log.exception("a status was given up in an unforeseen way")
        else:
            self._remember(wish)
            return
        self._written.pop(wish.uid, None)

    def _remember(self, wish: _Wish) -> None:
        now = asyncio.get_running_loop().time()
        if len(self._written) >= _REMEMBERED:
            self._written = {uid: told for uid, told in self._written.items() if told[1] > now}
        self._written[wish.uid] = (_digest(wish), now + wish.trust)


def _digest(wish: _Wish) -> str:
    """What two wishes have in common that say the same; when a condition began to hold makes no difference."""

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: timeless(v) for k, v in value.items() if k != "lastTransitionTime"}
        return [timeless(item) for item in value] if isinstance(value, list) else value

    return json.dumps(timeless(wish.status), sort_keys=True)
