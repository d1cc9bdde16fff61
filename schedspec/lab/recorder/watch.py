"""Record a cluster: follow every kind that decides or explains, and write each version into the recording.

1. Each kind is listed and watched by a reflector, as our scheduler does it. Kinds that the cluster does not serve yet,
   or does not permit, are tried again.
2. Once every kind has been listed, or cannot be, the recording begins with a checkpoint. Then versions are written as
   they arrive.
3. Every second the time is written, gaps are looked for, and a new segment is begun where one is due.

The one rule: what a watch may have missed is a `Gap`. After a new list the versions since the last sign of life may be
lost; after an outage without one they are complete, and late.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import msgspec

from ...scheduler.inputs import Gap, Input, Noted, ObjectGone, ObjectSeen, Passed, PolicyLoaded, Started, Taken, Unnoted
from ...scheduler.kube import Absent, Change, Client, KubeError, NotFound, Present, Reflector
from ...scheduler.recording.segments import VERSION
from ...virtual.state.dump import ConfigMap, policy_of
from ...virtual.state.kueue import as_served
from .kinds import FOLLOWED, Event, FollowedKind
from .writer import VersionWriter

log = logging.getLogger(__name__)

FLUSH = 1.0
"""Seconds between two flushes: what a killed recorder loses."""
LISTED = 60.0
"""Seconds that the first lists may take before the recording begins without a kind."""
_SERVED = 30.0
"""Seconds between two questions whether the API server serves a kind meanwhile."""
_SOON = 1.0
_PROMPT = 2.0
"""Seconds by which versions may be late without a note."""
Sink = Callable[[float, Input], None]
"""Receives every input that is written, with its time."""


@dataclass(slots=True, eq=False)
class Feed:
    """One kind, and the signs of life of its watch."""

    followed: FollowedKind
    reflector: Reflector[Any] | None = None
    objects: dict[str, Input] = field(default_factory=dict)
    """The inputs that tell the present objects, by key."""
    heard: float = 0.0
    """Time of the last sign of life."""
    lists: int = 0
    events: int = 0
    trouble: str = ""
    is_sought: bool = False
    """Whether the API server has answered that it serves no version of the kind."""

    @property
    def is_listed(self) -> bool:
        return self.reflector is not None and self.reflector.synced.is_set()

    @property
    def is_settled(self) -> bool:
        """Whether the recording can begin: the kind is listed, not served, or not permitted."""
        if self.reflector is None:
            return self.is_sought
        return self.is_listed or self.reflector.trouble.startswith("not permitted")

    @property
    def id(self) -> str:
        """`plural.group`, as in RBAC; of a single object, with its name."""
        followed = self.followed
        return f"{followed.resource.id} {followed.namespace}/{followed.name}" if followed.name else followed.resource.id


class Recorder:
    """Records one cluster. Create it inside a running event loop.

    Args:
        client: A client that only reads.
        redacted: Returns an input with replaced names, or None.
        policy: The policy, if no ConfigMap of the cluster has it.
    """

    def __init__(
        self,
        client: Client,
        writer: VersionWriter,
        clock: Callable[[], float],
        *,
        redacted: Callable[[Input], Input] | None = None,
        policy: PolicyLoaded | None = None,
        sink: Sink = lambda _at, _given: None,
    ) -> None:
        self._client, self._writer, self._clock, self._sink = client, writer, clock, sink
        self._redacted: Callable[[Input], Input] = redacted or (lambda given: given)
        self._is_redacted = redacted is not None
        self._policy: Input = self._redacted(policy or PolicyLoaded("", ""))
        self._is_policy_named = policy is not None
        self._feeds = [Feed(followed) for followed in FOLLOWED]
        self._has_begun = False
        self._is_writing = False
        self.versions = self.gaps = self.unreadable = 0
        """Numbers of versions, gaps and unreadable objects so far."""
        self.begun = asyncio.Event()

    async def run(self) -> None:
        """Record until cancelled. Raises FolderError: a state of the cluster does not fit into the recording."""
        async with asyncio.TaskGroup() as group:
            for feed in self._feeds:
                group.create_task(self._follow(feed), name=feed.id)
            group.create_task(self._write_regularly(), name="writer")

    def close(self) -> None:
        """End the recording after the last version."""
        self._notice()
        try:
            self._writer.close()
        except OSError as error:
            log.error("the end of the recording is not written: %s", error)

    @property
    def missing(self) -> list[str]:
        """Return why kinds are not recorded, for people; not served is no reason."""
        found = ((feed, feed.reflector.trouble) for feed in self._feeds if feed.reflector and not feed.is_listed)
        return [f"{feed.id}: {trouble or 'not yet listed'}" for feed, trouble in found]

    @property
    def silent(self) -> list[str]:
        """Return why versions may be missing now, for people."""
        found = (feed.reflector.trouble or feed.reflector.unready for feed in self._feeds if feed.reflector)
        return sorted({text for text in found if text})

    # -------------------------------------------------------------------------------------------------------- watching

    async def _follow(self, feed: Feed) -> None:
        followed, version = feed.followed, feed.followed.resource.version
        while followed.versions and not (version := await self._served_version(feed)):
            await asyncio.sleep(_SERVED if feed.is_sought else _SOON)
        resource = replace(followed.resource, version=version)
        handler = partial(self._on, feed, resource.api_version)
        feed.reflector = Reflector(
            self._client, resource, handler, namespace=followed.namespace, fields=followed.selector
        )
        await feed.reflector.run()

    async def _served_version(self, feed: Feed) -> str:
        """Return the first served version of a kind's API; empty if none is served, or nobody answers."""
        followed = feed.followed
        for version in followed.versions:
            path = f"/apis/{followed.resource.group}/{version}"
            try:
                answer = await self._client.http.request("GET", path)
                found = msgspec.json.decode(answer.body, type=dict[str, Any])
                plurals = [each["name"] for each in found.get("resources", ())]
            except NotFound:
                continue
            except (KubeError, msgspec.DecodeError, KeyError, TypeError):
                return ""
            if followed.resource.plural in plurals:
                return version
        feed.is_sought = True
        return ""

    def _on(self, feed: Feed, api_version: str, change: Change[Any]) -> None:
        if self._has_begun:
            self._notice_of(feed, self._clock())
        try:
            self._change(feed, api_version, change)
        except Exception:
            self.unreadable += 1  # the reflector logs it and goes on
            raise

    def _change(self, feed: Feed, api_version: str, change: Change[Any]) -> None:
        match change:
            case Present():
                self._present(feed, api_version, change.object)
            case Absent():
                if change.last is not None:
                    self._final(feed, api_version, change.last)
                self._absent(feed, api_version, change)
            case _:
                self.unreadable += 1  # the last readable version stays
                log.warning("%s %s is left out: %s", feed.id, change.malformed.metadata.key, change.malformed.error)

    def _present(self, feed: Feed, api_version: str, item: Any) -> None:
        if isinstance(item, ConfigMap):
            policy = policy_of(item)
            if policy is not None and not self._is_policy_named:
                self._policy = self._redacted(policy)
                self._write(self._policy)
            return
        given = self._redacted(self._input(feed, api_version, item))
        if isinstance(item, Event):  # a checkpoint tells states; what it told remains in the segments before
            item.involved_object, item.related, item.message = type(item.involved_object)(), None, ""
        else:
            feed.objects[item.metadata.key] = given
        self._write(given)

    def _final(self, feed: Feed, api_version: str, item: Any) -> None:
        """Write the last version of a deleted object, which may be the first that shows an eviction."""
        if isinstance(item, Event | ConfigMap):
            return
        trim = feed.followed.resource.trim
        try:
            item = item if trim is None else trim(item, 1 << 30)
        except ValueError:
            return
        given = self._input(feed, api_version, item)
        self._write(self._redacted(given))

    def _absent(self, feed: Feed, api_version: str, gone: Absent) -> None:
        known = feed.objects.pop(gone.key, None)
        if known is not None:
            kind = feed.followed.resource.kind
            is_noted = feed.followed.is_noted
            told = Unnoted(api_version, kind, gone.key, gone.uid) if is_noted else ObjectGone(kind, gone.key, gone.uid)
            self._write(self._redacted(told))

    @staticmethod
    def _input(feed: Feed, api_version: str, item: Any) -> Input:
        kind = feed.followed.resource.kind
        return Noted(as_served(kind, api_version, item)) if feed.followed.is_noted else ObjectSeen(kind, item)

    # --------------------------------------------------------------------------------------------------------- writing

    def _write(self, given: Input) -> None:
        if not self._is_writing:
            return
        self.versions += not isinstance(given, Gap)
        self.gaps += isinstance(given, Gap)
        try:
            self._writer.write(given)
        except OSError as error:
            self._stop_writing(error)
        self._sink(self._writer.at, given)

    def _stop_writing(self, error: OSError) -> None:
        log.error("the recording pauses, with a gap: %s", error)
        self._is_writing = False
        self._writer.give_up()

    async def _write_regularly(self) -> None:
        now, ends = asyncio.get_running_loop().time, float("inf")
        while not all(feed.is_settled for feed in self._feeds) and now() < ends:
            if ends == float("inf") and any(feed.is_listed for feed in self._feeds):
                ends = now() + LISTED
            await asyncio.sleep(0.05)
        if self.missing:
            log.warning("the recording begins without %s", "; ".join(self.missing))
        while True:
            self._turn()
            await asyncio.sleep(FLUSH)

    def _turn(self) -> None:
        """Begin a segment if one is due, and flush."""
        self._notice()
        try:
            if self._writer.wants_checkpoint:
                self._begin()
            self._writer.flush()
        except OSError as error:
            self._stop_writing(error)
        else:
            self._sink(self._writer.at, Passed(self._writer.at))

    def _begin(self) -> None:
        is_first, paused = not self._is_writing, self._writer.at
        inputs = [*self._checkpoint()]
        self._writer.begin(inputs)
        self._is_writing = True
        if is_first:
            if self._has_begun:  # as readers find it in the files
                self._sink(self._writer.at, Gap("", paused, self._writer.at, "the recording could not be written"))
            for given in inputs:
                self._sink(self._writer.at, given)
        if not self._has_begun:
            now = self._clock()
            for feed in self._feeds:
                feed.heard = now
                if feed.reflector is not None:
                    feed.lists, feed.events = feed.reflector.lists, feed.reflector.events
            self._has_begun = True
            self.begun.set()

    def _checkpoint(self) -> Iterator[Input]:
        yield Started(VERSION, [], {})
        yield self._policy
        for feed in self._feeds:
            yield from [*feed.objects.values()]
        notes = [f"{text.partition(':')[0]} are missing: {text.partition(':')[2].strip()}" for text in self.missing]
        yield Taken(self._clock(), self._is_redacted, notes)

    # ------------------------------------------------------------------------------------------------------------ gaps

    def _notice(self) -> None:
        now = self._clock()
        for feed in self._feeds if self._has_begun else ():
            self._notice_of(feed, now)

    def _notice_of(self, feed: Feed, now: float) -> None:
        """Write a gap if the watch of a kind missed versions, or was interrupted, since its last sign of life."""
        reflector = feed.reflector
        if reflector is None or not reflector.is_served:
            feed.heard = now
            return
        is_alive = reflector.events > feed.events or reflector.lists > feed.lists
        is_new_list = reflector.lists > feed.lists
        feed.trouble = reflector.trouble or feed.trouble
        if not is_alive and reflector.trouble:
            return
        if is_new_list or (feed.trouble and now - feed.heard > _PROMPT):
            why = feed.trouble or "the API server no longer had the versions since the last one"
            self._write(Gap(feed.id, round(feed.heard, 3), round(now, 3), why, is_new_list))
        feed.trouble = ""
        feed.heard, feed.lists, feed.events = now, reflector.lists, reflector.events
