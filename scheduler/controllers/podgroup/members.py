"""Track the pods of each gang, change by change. A pod names its gang, and its gang may change."""

from __future__ import annotations

from collections.abc import Callable

from ...model.objects import Pod
from ..runtime.write_through_cache import WriteThroughCache


class Members:
    """The pods of gangs. `key_of` returns the key of a pod's gang, empty where no gang is tracked."""

    def __init__(self, pods: WriteThroughCache[Pod], key_of: Callable[[Pod], str]) -> None:
        self._pods, self._key_of = pods, key_of
        self._by_gang: dict[str, dict[str, str]] = {}
        """For each gang (key) its pods: uid to key."""

    def __contains__(self, gang: str) -> bool:
        return gang in self._by_gang

    def follow(self, before: Pod | None, after: Pod | None) -> tuple[str, str]:
        """Apply a change of a pod. Return the keys of its old and its new gang, or empty."""
        left = self._key_of(before) if before is not None else ""
        joined = self._key_of(after) if after is not None else ""
        if before is not None and left:
            members = self._by_gang.get(left, {})
            members.pop(before.metadata.uid, None)
            if not members:
                self._by_gang.pop(left, None)
        if after is not None and joined:
            self._by_gang.setdefault(joined, {})[after.metadata.uid] = after.metadata.key
        return left, joined

    def of(self, gang: str) -> list[Pod]:
        """Return the existing pods of a gang."""
        return [pod for key in self._by_gang.get(gang, {}).values() if (pod := self._pods.get(key)) is not None]
