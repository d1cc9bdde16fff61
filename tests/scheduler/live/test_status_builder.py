"""Events and conditions for users: a problem is published for as long as it exists."""

from __future__ import annotations

import asyncio
import json
from unittest.mock import create_autospec

import pytest

from schedspec.scheduler.framework.decisions import Bind, Decisions, Evict
from schedspec.scheduler.inputs import ObjectGone, ObjectSeen
from schedspec.scheduler.kube import (
    NORMAL,
    PODGROUPS,
    PODS,
    WARNING,
    Absent,
    ApiError,
    EventData,
    EventRecorder,
    Malformed,
    Unreadable,
)
from schedspec.scheduler.live.inbox import RefusedWrite, Trouble
from schedspec.scheduler.live.metrics import Metrics
from schedspec.scheduler.live.state_feed import StateFeed
from schedspec.scheduler.live.status_builder import StatusBuilder
from schedspec.scheduler.live.status_writer import StatusWriter
from schedspec.scheduler.model.objects import ObjectMeta
from schedspec.scheduler.reasons import NoGroup, NoNode, PodsMissing, Refusal, TooCostly, VictimReason
from tests.scheduler.live.test_state_feed import group, make_feed, pod
from tests.scheduler.live.test_status_writer import DONE
from tests.support.fake_server import cancelled, serving

NOW = 1_800_000_000.0
NO_ROOM = Refusal((NoNode("ns/p", 2),))


def malformed(metrics: Metrics) -> list[str]:
    return [line for line in metrics.render().decode().splitlines() if line.startswith("schedspec_malformed_objects{")]


def of(feed: StateFeed, metrics: Metrics) -> StatusBuilder:
    return StatusBuilder(feed, create_autospec(StatusWriter), create_autospec(EventRecorder), metrics)


def test_a_malformed_object_is_counted_until_it_is_valid() -> None:
    feed, metrics = make_feed(), Metrics()
    status_builder = of(feed, metrics)
    meta = ObjectMeta(name="g", namespace="ns", uid="ug")
    feed.inbox.put(Trouble(PODGROUPS, meta, "Expected `int`, got `str`"))
    status_builder.report(feed.empty())
    assert malformed(metrics) == ['schedspec_malformed_objects{kind="PodGroup"} 1.0']
    feed.inbox.put(ObjectSeen("PodGroup", group()))
    feed.empty()
    asyncio.run(status_builder.publish(Decisions(), now=0.0))
    assert malformed(metrics) == []


def test_events_about_an_object_are_forgotten_with_the_object() -> None:
    feed = make_feed()
    status_builder = of(feed, Metrics())
    for reflector in feed.reflectors:
        reflector._notify(Absent("ns/x", reflector.resource.plural))
    gone = [call.args[0].uid for call in status_builder._events.on_object.call_args_list]  # type: ignore[attr-defined]
    assert gone == [reflector.resource.plural for reflector in feed.reflectors]


@pytest.mark.parametrize("kind", ["PodGroup", "Queue"])
def test_an_object_that_a_watch_cannot_read_gets_a_condition(kind: str) -> None:
    feed = make_feed()
    status_builder = of(feed, Metrics())
    [resource] = [reflector.resource for reflector in feed.reflectors if reflector.resource.kind == kind]
    meta = ObjectMeta(name="g", namespace="ns", uid="ug")
    feed._handler_of(resource)(Unreadable("ns/g", Malformed(meta, "Expected `int`, got `str`")))
    status_builder.report(feed.empty())
    [call] = status_builder._status_writer.apply.call_args_list  # type: ignore[attr-defined]
    assert call.args[0] == resource
    assert [condition["type"] for condition in call.args[-1]["conditions"]] == ["Malformed"]


async def test_an_outdated_reason_for_waiting_is_not_written_after_the_bind() -> None:
    bound = asyncio.Event()
    async with serving(lambda request: DONE) as (server, client):
        status_writer = StatusWriter(client, bound.wait, pause=0.01)  # type: ignore[arg-type]
        feed = make_feed()
        status_builder = StatusBuilder(feed, status_writer, create_autospec(EventRecorder), Metrics())
        writing = asyncio.create_task(status_writer.run())
        for given in (ObjectSeen("PodGroup", group("Inqueue")), ObjectSeen("Pod", pod())):
            feed.apply(given)
        await status_builder.publish(Decisions(refusals={"ns/g": NO_ROOM}), NOW)
        await status_builder.publish(Decisions(binds=[Bind("ns/p", "u", "n", "ns/g")]), NOW)
        bound.set()
        await status_writer.drain()
        assert [request.path for request in server.requests if "/pods/" in request.path] == []
        await cancelled(writing)


def test_a_missing_gang_member_or_podgroup_is_reported_after_a_delay() -> None:
    for refusal, why in (
        (Refusal((PodsMissing(1, 3),)), "gang: 1 of at least 3 pods exist"),
        (Refusal((NoGroup("ns/g"),)), "PodGroup ns/g does not exist or cannot be read"),
    ):
        feed = make_feed()
        feed.apply(ObjectSeen("PodGroup", group("Inqueue")))
        feed.apply(ObjectSeen("Pod", pod()))
        if isinstance(refusal.items[0], NoGroup):
            feed.apply(ObjectGone("PodGroup", "ns/g", "ug"))
        status_builder = of(feed, Metrics())
        events, status_writer = status_builder._events, status_builder._status_writer
        asyncio.run(status_builder.publish(Decisions(refusals={"ns/g": refusal}), NOW))
        assert status_builder.again_at == NOW + 2
        asyncio.run(status_builder.publish(Decisions(refusals={"ns/g": refusal}), NOW + 1))
        assert not status_writer.merge.called  # type: ignore[attr-defined]
        assert not status_writer.apply.called  # type: ignore[attr-defined]
        assert not events.event.called  # type: ignore[attr-defined]
        asyncio.run(status_builder.publish(Decisions(refusals={"ns/g": refusal}), NOW + 2))
        assert status_builder.again_at is None
        assert status_writer.merge.call_args.args[-1]["conditions"][0]["message"] == why  # type: ignore[attr-defined]
        if isinstance(refusal.items[0], PodsMissing):
            assert status_writer.apply.call_args.args[-1]["conditions"][0]["message"] == why  # type: ignore[attr-defined]
        assert events.event.call_args.args[2:] == (WARNING, "FailedScheduling", why)  # type: ignore[attr-defined]
        before = events.event.call_count  # type: ignore[attr-defined]
        asyncio.run(status_builder.publish(Decisions(refusals={"ns/g": refusal}), NOW + 60))
        assert events.event.call_count == before  # type: ignore[attr-defined]


def test_the_event_of_a_podgroup_has_the_reasons_as_data() -> None:
    feed = make_feed()
    feed.apply(ObjectSeen("PodGroup", group("Inqueue")))
    feed.apply(ObjectSeen("Pod", pod()))
    status_builder = of(feed, Metrics())
    asyncio.run(status_builder.publish(Decisions(refusals={"ns/g": NO_ROOM}), NOW))
    of_group, of_pod = status_builder._events.event.call_args_list  # type: ignore[attr-defined]
    (why,) = json.loads(of_group.kwargs["data"].annotations["schedspec.dev/waits"])
    assert why["text"] == of_group.args[4]
    assert not of_pod.kwargs["data"].annotations


def test_a_refused_write_is_an_event_of_the_pod_and_not_of_its_successor() -> None:
    feed = make_feed()
    feed.apply(ObjectSeen("Pod", pod()))
    status_builder = of(feed, Metrics())
    event = status_builder._events.event
    error = ApiError("POST /x", 403, "Forbidden", "not you")
    reason = VictimReason("reclaim", "ns/b", "ns/b-0", "qb", "qa")
    for uid in ("u", "successor"):
        feed.inbox.put(RefusedWrite(Bind("ns/p", uid, "n", "ns/g"), error))
        feed.inbox.put(RefusedWrite(Evict("ns/p", uid, "ns/g", reason), error))
    status_builder.report(feed.empty())
    message = "POST /x: 403 Forbidden: not you"
    assert [(call.args[0], *call.args[2:]) for call in event.call_args_list] == [  # type: ignore[attr-defined]
        (PODS, WARNING, "FailedBinding", message),
        (PODS, WARNING, "FailedEviction", message),
    ]


def test_events_of_a_victim_and_its_podgroup_name_the_preemptor() -> None:
    feed = make_feed()
    feed.apply(ObjectSeen("PodGroup", group("Running")))
    feed.apply(ObjectSeen("Pod", pod("Running", "n")))
    status_builder = of(feed, Metrics())
    reason = VictimReason("reclaim", "ns/b", "ns/b-0", "qb", "qa", 1, votes=(("gang", True), ("capacity", False)))
    status_builder.evicting(Evict("ns/p", "u", "ns/g", reason))
    message = "reclaimed for ns/b of queue qb (victim's queue: qa); tier 2 decided (gang permits, capacity vetoes)"
    event = status_builder._events.event
    assert event.call_args_list[0].kwargs["data"] == EventData(  # type: ignore[attr-defined]
        "reclaim",
        {"apiVersion": "v1", "kind": "Pod", "namespace": "ns", "name": "b-0"},
        {
            "schedspec.dev/preemptor-job": "ns/b",
            "schedspec.dev/preemptor-queue": "qb",
            "schedspec.dev/victim-queue": "qa",
            "schedspec.dev/tier": "2",
            "schedspec.dev/votes": '{"gang": "permits", "capacity": "vetoes"}',
        },
    )
    assert [(call.args[0], *call.args[2:]) for call in event.call_args_list] == [  # type: ignore[attr-defined]
        (PODS, WARNING, "Evict", message),
        (PODGROUPS, NORMAL, "Evict", f"pod p {message}"),
    ]


def test_a_reason_that_was_not_urgent_is_published_by_a_later_cycle() -> None:
    feed = make_feed()
    for given in (ObjectSeen("PodGroup", group("Inqueue")), ObjectSeen("Pod", pod())):
        feed.apply(given)
    status_builder = of(feed, Metrics())
    asyncio.run(status_builder.publish(Decisions(), NOW))
    refused = Decisions(refusals={"ns/g": NO_ROOM})
    asyncio.run(status_builder.publish(refused, NOW + 1, only_urgent=True))
    status_builder._events.event.assert_not_called()  # type: ignore[attr-defined]
    asyncio.run(status_builder.publish(refused, NOW + 2))
    assert {call.args[3] for call in status_builder._events.event.call_args_list} == {  # type: ignore[attr-defined]
        "Unschedulable",
        "FailedScheduling",
    }


def test_too_costly_jobs_are_counted_while_that_is_why_they_wait() -> None:
    feed, metrics = make_feed(), Metrics()
    status_builder = of(feed, metrics)
    costly = Refusal((TooCostly("allocate"),))
    seen = []
    for refusals in ({"ns/a": costly, "ns/b": costly, "ns/c": NO_ROOM}, {"ns/a": costly, "ns/b": NO_ROOM}, {}):
        asyncio.run(status_builder.publish(Decisions(refusals=refusals), now=0.0))
        seen += [line for line in metrics.render().decode().splitlines() if line.startswith("schedspec_too_costly")]
    assert seen == [f"schedspec_too_costly_jobs {number}.0" for number in (2, 1, 0)]
