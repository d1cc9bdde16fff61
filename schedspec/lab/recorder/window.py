"""The record of a span of a recording, for the page of scenarios."""

from __future__ import annotations

from collections.abc import Mapping

from ...api.kinds import Kind, Ref
from ...observe.history import Object, Version
from ...scheduler.inputs import Gap
from ...schedulers import Adapter
from ...schedulers.own import Own


class Window:
    """Keeps the versions between two times, and what lived at the first of them."""

    def __init__(self, since: float, until: float) -> None:
        self._since, self._until = since, until
        self.versions: list[Version] = []
        self.policy = ""
        self.adapter: Adapter = Own()
        self._live: dict[Ref, Object] = {}
        self._has_begun = False
        self.gaps: list[Gap] = []

    def restart(self, at: float, adapter: Adapter, policy: str, live: Mapping[Ref, Object], gap: Gap | None) -> None:
        if at > self._until:
            return
        self.policy, self.adapter = policy, adapter
        if gap is not None and gap.until >= self._since:
            self.gaps.append(gap)
        if at > self._since and self._has_begun:
            self._after_gap(at, live)
        self._live = dict(live)

    def _after_gap(self, at: float, live: Mapping[Ref, Object]) -> None:
        """Show the differences that a gap hides: when they happened is unknown."""
        for ref, obj in self._live.items():
            if ref not in live:
                self._add(Version(len(self.versions) + 1, at, at, "gone", ref, obj))
        for ref, obj in live.items():
            known = self._live.get(ref)
            if known is None or known["metadata"].get("resourceVersion") != obj["metadata"].get("resourceVersion"):
                self._add(Version(len(self.versions) + 1, at, at, "changed" if known else "added", ref, obj))

    def read(self, version: Version) -> None:
        if version.at > self._until:
            return
        if version.at >= self._since:
            self._begin()
            self._add(version)
        if version.change == "gone":
            self._live.pop(version.ref, None)
        elif version.ref.kind != Kind.EVENT:
            self._live[version.ref] = version.object

    def pass_time(self, at: float) -> None:
        if at >= self._since:
            self._begin()

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            for ref, obj in self._live.items():
                self._add(Version(len(self.versions) + 1, self._since, self._since, "was", ref, obj))

    def _add(self, version: Version) -> None:
        self.versions.append(version)
