"""The view of a controller: the informer's cache plus the controller's own writes that the watch does not show yet.

The one rule: a controller never acts on a state older than its own last write. Otherwise it would create a pod twice,
or take its own deletion for an eviction, whenever the watch lags.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Generic

import msgspec

from ...kube.client import Client
from ...kube.informer import Index, Informer
from ...kube.recent import Recent
from ...kube.reflector import Reflector
from ...kube.resource import Resource, T

_REMEMBERED = 10_000
_ANSWERED_WITHIN = 60.0
"""Seconds that a request takes at most."""
TRUST = 10.0
"""Seconds after which a write that the watch never showed is dropped: its object was created and deleted unseen."""


class WriteThroughCache(Generic[T]):
    """One kind of objects. Call `wrote` and `removed` for each write that the API server confirms."""

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        indexes: dict[str, Index[T]] | None = None,
        *,
        labels: str = "",
        follow: Reflector[T] | None = None,
    ) -> None:
        self.resource = resource
        self.informer = Informer(client, resource, labels=labels, indexes=indexes, follow=follow)
        self._indexes = indexes or {}
        self._written: dict[str, tuple[T, float]] = {}
        self._removed: dict[str, float] = {}
        self._gone: Recent[str, None] = Recent(_ANSWERED_WITHIN, _REMEMBERED, _now)
        """Uids of objects whose deletion the watch has shown. The answer to an earlier write may arrive after that."""
        self.informer.on_change(self._caught_up)

    def wrote(self, item: T) -> None:
        """Store the API server's answer to a create or a change."""
        meta = _meta(item)
        seen = self.informer.get(meta.key)
        if meta.uid in self._gone:
            return
        if seen is None or _meta(seen).uid != meta.uid or _version(seen) < _version(item):
            self._written[meta.key] = (item, _now())

    def removed(self, uid: str) -> None:
        """Record that the API server accepted the deletion of the object with this uid."""
        if uid not in self._gone:
            self._removed[uid] = _now()

    @property
    def is_ahead(self) -> bool:
        """Whether the watch has not shown some write yet."""
        limit = _now() - TRUST
        self._written = {key: one for key, one in self._written.items() if one[1] >= limit}
        self._removed = {uid: at for uid, at in self._removed.items() if at >= limit}
        return bool(self._written or self._removed)

    def get(self, key: str) -> T | None:
        """Return the newest known object with a key."""
        own = self._written.get(key)
        if own is not None and _now() - own[1] > TRUST:
            del self._written[key]
            own = None
        found = own[0] if own is not None else self.informer.get(key)
        return None if found is None else self._with_removal(found)

    def by(self, index: str, value: str) -> list[T]:
        """Return the newest known objects with a value in an index, in the order of their keys."""
        found = self.informer.by(index, value)
        keys = {key for key, (item, _) in self._written.items() if value in self._indexes[index](item)}
        if keys or self._written.keys() & self.informer.keys(index, value):
            keys |= self.informer.keys(index, value)
            return [item for key in sorted(keys) if (item := self.get(key)) is not None]
        return [self._with_removal(item) for item in found] if self._removed else found

    def __iter__(self) -> Iterator[T]:
        for key in sorted({*self.informer.objects, *self._written}):
            if (item := self.get(key)) is not None:
                yield item

    def _with_removal(self, item: T) -> T:
        meta = _meta(item)
        at = self._removed.get(meta.uid)
        if at is None or meta.deletion_timestamp is not None:
            return item
        if _now() - at > TRUST:
            del self._removed[meta.uid]
            return item
        return msgspec.structs.replace(item, metadata=msgspec.structs.replace(meta, deletion_timestamp="now"))

    def _caught_up(self, before: T | None, after: T | None) -> None:
        for item in (before, after):
            if item is None:
                continue
            meta = _meta(item)
            own = self._written.get(meta.key)
            shown = after is item and own is not None and _version(item) >= _version(own[0])
            ended = after is None and own is not None and _meta(own[0]).uid == meta.uid
            if shown or ended:
                del self._written[meta.key]
            if after is None or meta.deletion_timestamp is not None:
                self._removed.pop(meta.uid, None)
        if before is not None and (after is None or _meta(after).uid != _meta(before).uid):
            self._gone.set(_meta(before).uid, None)


def _meta(item: Any) -> Any:
    return item.metadata


def _version(item: Any) -> int:
    """Return the resourceVersion as a number. Versions of one API server grow; any other text counts as newest."""
    text = item.metadata.resource_version
    return int(text) if text.isdecimal() else 1 << 62


def _now() -> float:
    return asyncio.get_running_loop().time()
