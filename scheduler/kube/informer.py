"""Keep all objects of a kind in memory: a reflector with a cache.

The cache is updated before listeners are called, so a listener never sees a state older than the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from typing import Any, Generic

from .client import Client
from .decoding import Malformed
from .reflector import Absent, Change, Present, Reflector, Unreadable
from .resource import Resource, T

Listener = Callable[[str], None]
Index = Callable[[T], list[str]]


class Informer(Generic[T]):
    """All objects of a kind, by key. Run `run` as a task, and wait for `synced` before any decision.

    Args:
        indexes: Indexes for `by`: by name, a function from an object to its values (`{"owner": lambda pod: [...]}`).
        follow: A reflector that runs elsewhere; the informer then has no watch of its own.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        *,
        labels: str = "",
        indexes: dict[str, Index[T]] | None = None,
        follow: Reflector[T] | None = None,
    ) -> None:
        self.objects: dict[str, T] = {}
        self.malformed: dict[str, Malformed] = {}
        self._indexes = indexes or {}
        self._by_index: dict[str, dict[str, dict[str, T]]] = {name: {} for name in self._indexes}
        self._listeners: list[Listener] = []
        self._change_listeners: list[Callable[[T | None, T | None], None]] = []
        self._is_following = follow is not None
        if follow is not None:
            self._reflector = follow
            follow.add_handler(self._on_report)
        else:
            self._reflector = Reflector(client, resource, self._on_report, labels=labels)
        self.synced = self._reflector.synced

    @property
    def reflector(self) -> Reflector[T]:
        return self._reflector

    async def run(self) -> None:
        """Follow the cluster until cancelled. Return at once if the reflector runs elsewhere."""
        if not self._is_following:
            await self._reflector.run()

    def on_key(self, listener: Listener) -> None:
        """Call `listener(key)` at once for each existing object, then at each change of an object."""
        for key in [*self.objects, *self.malformed]:
            listener(key)
        self._listeners.append(listener)

    def on_change(self, listener: Callable[[T | None, T | None], None]) -> None:
        """Call `listener(before, after)` for each change; None stands for a missing or unreadable object.

        Objects that exist already are reported at once, as created: a reflector that runs elsewhere may have listed
        them, and counts of changes would be wrong without them.
        """
        for item in list(self.objects.values()):
            listener(None, item)
        self._change_listeners.append(listener)

    def get(self, key: str) -> T | None:
        """Return the object with a key (`namespace/name`, or the name)."""
        return self.objects.get(key)

    def by(self, index: str, value: str) -> list[T]:
        """Return the objects with a value in an index, in the order of their keys."""
        found = self._by_index[index].get(value)
        return [found[key] for key in sorted(found)] if found else []

    def keys(self, index: str, value: str) -> Set[str]:
        """Return the keys of the objects with a value in an index."""
        return self._by_index[index].get(value, {}).keys()

    def __iter__(self) -> Iterator[T]:
        return iter(self.objects.values())

    def __len__(self) -> int:
        return len(self.objects)

    def _on_report(self, change: Change[T]) -> None:
        after: T | None = None
        match change:
            case Present():
                after = change.object
                key = _key(after)
            case Absent():
                key = change.key
            case Unreadable():
                key = change.key
        before = self.objects.pop(key, None)
        self.malformed.pop(key, None)
        if isinstance(change, Unreadable):
            self.malformed[key] = change.malformed
        if before is not None:
            self._index(key, before, None)
        if after is not None:
            self.objects[key] = after
            self._index(key, after, after)
        for listener in self._listeners:
            listener(key)
        for changed in self._change_listeners:
            changed(before, after)

    def _index(self, key: str, item: T, keep: T | None) -> None:
        for name, values in self._indexes.items():
            for value in values(item):
                place = self._by_index[name].setdefault(value, {})
                if keep is not None:
                    place[key] = keep
                else:
                    place.pop(key, None)
                    if not place:
                        del self._by_index[name][value]


def _key(item: Any) -> str:
    key: str = item.metadata.key
    return key
