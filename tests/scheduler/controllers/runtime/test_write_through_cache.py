"""A controller's own writes are visible at once, in any order of answers and watch events."""

from __future__ import annotations

import asyncio
import json
from typing import Any, cast
from unittest.mock import create_autospec

import msgspec
import pytest

from schedspec.scheduler.controllers.queue.controller import QueueController
from schedspec.scheduler.controllers.runtime import write_through_cache as module
from schedspec.scheduler.controllers.runtime.controller import Context
from schedspec.scheduler.controllers.runtime.objects import COMMANDS, JOBS, PYTORCH_JOBS, QUEUES
from schedspec.scheduler.controllers.runtime.ownership import INDEXES
from schedspec.scheduler.controllers.runtime.write_through_cache import WriteThroughCache
from schedspec.scheduler.kube import (
    NODES,
    PODGROUPS,
    PODS,
    Absent,
    Client,
    EventRecorder,
    Http,
    Present,
    Reflector,
    Resource,
)
from schedspec.scheduler.model.objects import Node, Pod, PodGroup


def pod(version: int, uid: str = "u1", **meta: Any) -> Pod:
    owner = {"kind": "Job", "name": "j", "uid": "owner", "controller": True}
    body = {"name": "p", "namespace": "ns", "uid": uid, "resourceVersion": str(version), "ownerReferences": [owner]}
    return msgspec.convert({"metadata": {**body, **meta}}, Pod)


@pytest.fixture
def view() -> WriteThroughCache[Pod]:
    return WriteThroughCache(Client(cast(Http, None)), PODS, INDEXES)


def names(view: WriteThroughCache[Pod]) -> list[tuple[str, str]]:
    return [(one.metadata.uid, one.metadata.resource_version) for one in view.by("owner", "ns/owner")]


async def test_a_created_object_is_visible_before_the_watch_shows_it(view: WriteThroughCache[Pod]) -> None:
    report = view.informer._on_report
    view.wrote(pod(5))
    assert names(view) == [("u1", "5")]
    assert view.is_ahead
    report(Present(pod(5)))
    assert names(view) == [("u1", "5")]
    assert not view.is_ahead


async def test_an_older_event_does_not_hide_a_newer_write(view: WriteThroughCache[Pod]) -> None:
    report = view.informer._on_report
    report(Present(pod(3)))
    view.wrote(pod(7))
    report(Present(pod(5)))
    assert names(view) == [("u1", "7")]
    report(Present(pod(9)))
    assert names(view) == [("u1", "9")]


async def test_an_answer_that_arrives_after_the_deletion_of_its_object_is_ignored(view: WriteThroughCache[Pod]) -> None:
    report = view.informer._on_report
    report(Present(pod(5)))
    report(Absent("ns/p", "u1"))
    view.wrote(pod(5))
    view.removed("u1")
    assert names(view) == []
    assert not view.is_ahead


async def test_a_deleted_object_is_terminating_before_the_watch_shows_it(view: WriteThroughCache[Pod]) -> None:
    report = view.informer._on_report
    report(Present(pod(5)))
    view.removed("u1")
    (going,) = view.by("owner", "ns/owner")
    assert going.metadata.deletion_timestamp is not None
    report(Present(pod(6)))
    (going,) = view.by("owner", "ns/owner")
    assert going.metadata.deletion_timestamp is not None, "an event from before the deletion"
    report(Absent("ns/p", "u1"))
    assert names(view) == []
    assert not view.is_ahead


async def test_a_successor_of_the_same_name_is_not_terminating(view: WriteThroughCache[Pod]) -> None:
    report = view.informer._on_report
    report(Present(pod(5)))
    view.removed("u1")
    report(Absent("ns/p", "u1"))
    view.wrote(pod(8, "u2"))
    (successor,) = view.by("owner", "ns/owner")
    assert (successor.metadata.uid, successor.metadata.deletion_timestamp) == ("u2", None)


async def test_a_write_that_the_watch_never_shows_is_forgotten(
    view: WriteThroughCache[Pod], monkeypatch: pytest.MonkeyPatch
) -> None:
    view.wrote(pod(5))
    monkeypatch.setattr(module, "_now", lambda: asyncio.get_running_loop().time() + module.TRUST + 1)
    assert names(view) == []


async def test_a_kind_that_is_watched_already_is_not_watched_again() -> None:
    client = Client(cast(Http, None))  # it can send no request
    running = Reflector(client, PODS, lambda _: None)
    context = Context(client, EventRecorder(client, "me"), ["schedspec"], reflectors=[running])
    view = context.view(PODS)
    assert view.informer.reflector is running
    assert context.view(PODS, labels="a=b").informer.reflector is not running
    running._present(pod(5))
    assert [pod.metadata.name for pod in view] == ["p"]
    await view.informer.run()


async def test_objects_that_were_listed_before_the_controllers_started_count() -> None:
    client = Client(cast(Http, None))
    nodes, groups = Reflector(client, NODES, lambda _: None), Reflector(client, PODGROUPS, lambda _: None)
    capacity = {"status": {"allocatable": {"cpu": "4"}}}
    nodes._present(msgspec.convert({"metadata": {"name": "n", "uid": "n", "resourceVersion": "1"}, **capacity}, Node))
    meta = {"namespace": "ns", "name": "g", "uid": "g", "resourceVersion": "1"}
    body = {"spec": {"queue": "q"}, "status": {"phase": "Running"}}
    groups._present(msgspec.convert({"metadata": meta, **body}, PodGroup))
    context = Context(client, EventRecorder(client, "me"), ["schedspec"], reflectors=[nodes, groups])
    context.watch_nodes(lambda: None)
    assert context.capacity.total == {"cpu": 4000}
    queues = QueueController(context)
    assert queues._phases == {"q": {"Running": 1}}
    groups._absent("ns/g", "g")
    assert queues._phases == {}  # tenants choose the names of queues: no count of zero is kept


@pytest.mark.parametrize("resource", [JOBS, PYTORCH_JOBS, COMMANDS, PODGROUPS, PODS, QUEUES], ids=lambda it: it.plural)
async def test_an_object_of_any_kind_that_is_too_large_is_malformed_for_controllers(resource: Resource[Any]) -> None:
    client = Client(cast(Http, None))
    context = Context(client, EventRecorder(client, "me"), ["schedspec"])
    view = context.view(resource)
    labels = {f"label{number}": "value" for number in range(20_000)}
    meta = {"name": "large", "namespace": "ns" if resource.namespaced else "", "labels": labels, "resourceVersion": "1"}
    event = {"type": "ADDED", "object": {"metadata": meta, "spec": {"schedulerName": "schedspec"}}}
    view.informer.reflector._on_line(json.dumps(event).encode())
    (malformed,) = view.informer.malformed.values()
    assert "metadata.labels is too large" in malformed.error
    assert not list(view)


async def test_events_about_an_object_are_forgotten_with_the_object() -> None:
    recorder = create_autospec(EventRecorder)
    jobs = Context(Client(cast(Http, None)), recorder, ["schedspec"]).view(JOBS).informer.reflector
    jobs._present(msgspec.convert({"metadata": {"namespace": "ns", "name": "j", "uid": "u"}}, jobs.resource.struct))
    jobs._absent("ns/j", "u")
    recorder.on_object.assert_called_with(Absent("ns/j", "u"))
