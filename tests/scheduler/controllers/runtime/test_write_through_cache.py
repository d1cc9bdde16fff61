"""A controller's own writes are seen at once, whatever order the API server's answers and the watch come in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest

from scheduler.controllers.runtime import write_through_cache as module
from scheduler.controllers.runtime.controller import Context
from scheduler.controllers.runtime.ownership import INDEXES
from scheduler.controllers.runtime.write_through_cache import WriteThroughCache
from scheduler.kube import PODS, Absent, Client, EventRecorder, Http, Present, Reflector
from scheduler.model.objects import Pod


def pod(version: int, uid: str = "u1", **meta: Any) -> Pod:
    owner = {"kind": "Job", "name": "j", "uid": "owner", "controller": True}
    body = {"name": "p", "namespace": "ns", "uid": uid, "resourceVersion": str(version), "ownerReferences": [owner]}
    return msgspec.convert({"metadata": {**body, **meta}}, Pod)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[WriteThroughCache[Pod], Any], None]], None]:
    """Run a test inside a loop, with a view and what tells it of changes; ``told.now`` is the time."""

    def run(test: Callable[[WriteThroughCache[Pod], Any], None]) -> None:
        async def main() -> None:
            view = WriteThroughCache(Client(cast(Http, None)), PODS, INDEXES)
            test(view, view.informer._hear)

        asyncio.run(main())

    return run


def names(view: WriteThroughCache[Pod]) -> list[tuple[str, str]]:
    return [(one.metadata.uid, one.metadata.resource_version) for one in view.by("owner", "owner")]


def test_what_was_created_is_there_before_the_watch_shows_it(told: Any) -> None:
    def test(view: WriteThroughCache[Pod], hear: Any) -> None:
        view.wrote(pod(5))
        assert names(view) == [("u1", "5")]
        assert view.is_ahead
        hear(Present(pod(5)))
        assert names(view) == [("u1", "5")]
        assert not view.is_ahead

    told(test)


def test_an_older_event_does_not_hide_a_newer_write(told: Any) -> None:
    def test(view: WriteThroughCache[Pod], hear: Any) -> None:
        hear(Present(pod(3)))
        view.wrote(pod(7))
        hear(Present(pod(5)))
        assert names(view) == [("u1", "7")]
        hear(Present(pod(9)))
        assert names(view) == [("u1", "9")]

    told(test)


def test_an_answer_that_comes_after_the_end_of_its_object_is_old(told: Any) -> None:
    def test(view: WriteThroughCache[Pod], hear: Any) -> None:
        hear(Present(pod(5)))
        hear(Absent("ns/p", "u1"))
        view.wrote(pod(5))
        view.removed("u1")
        assert names(view) == []
        assert not view.is_ahead

    told(test)


def test_what_was_deleted_is_going_before_the_watch_says_so(told: Any) -> None:
    def test(view: WriteThroughCache[Pod], hear: Any) -> None:
        hear(Present(pod(5)))
        view.removed("u1")
        (going,) = view.by("owner", "owner")
        assert going.metadata.deletion_timestamp is not None
        hear(Present(pod(6)))
        (going,) = view.by("owner", "owner")
        assert going.metadata.deletion_timestamp is not None, "an event from before the deletion"
        hear(Absent("ns/p", "u1"))
        assert names(view) == []
        assert not view.is_ahead

    told(test)


def test_a_successor_of_the_same_name_is_another(told: Any) -> None:
    def test(view: WriteThroughCache[Pod], hear: Any) -> None:
        hear(Present(pod(5)))
        view.removed("u1")
        hear(Absent("ns/p", "u1"))
        view.wrote(pod(8, "u2"))
        (successor,) = view.by("owner", "owner")
        assert (successor.metadata.uid, successor.metadata.deletion_timestamp) == ("u2", None)

    told(test)


def test_a_write_that_the_watch_never_shows_is_forgotten(told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def test(view: WriteThroughCache[Pod], hear: Any) -> None:
        view.wrote(pod(5))
        monkeypatch.setattr(module, "_now", lambda: asyncio.get_running_loop().time() + module.TRUST + 1)
        assert names(view) == []

    told(test)


def test_what_is_watched_anyway_is_not_watched_again() -> None:
    async def test() -> None:
        client = Client(cast(Http, None))  # nothing may be asked of it
        running = Reflector(client, PODS, lambda _: None)
        context = Context(client, cast(EventRecorder, None), ["schedspec"], reflectors=[running])
        view = context.view(PODS)
        assert view.informer.reflector is running
        assert context.view(PODS, labels="a=b").informer.reflector is not running
        running._present(pod(5))
        assert [pod.metadata.name for pod in view] == ["p"]
        await view.informer.run()

    asyncio.run(test())
