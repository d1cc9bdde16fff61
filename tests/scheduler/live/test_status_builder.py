"""What users get to read: what is wrong, for as long as it is wrong."""

from __future__ import annotations

import asyncio
from unittest.mock import create_autospec

from scheduler.framework.decisions import Bind, Decisions, Evict
from scheduler.kube import NORMAL, PODGROUPS, PODS, WARNING, ApiError, Recorder
from scheduler.live.metrics import Metrics
from scheduler.live.state_feed import Feed, Trouble
from scheduler.live.status_builder import Publication
from scheduler.live.status_writer import Publisher
from scheduler.model.objects import ObjectMeta
from scheduler.reasons import NoGroup, NoNode, PodsMissing, Refusal, VictimReason
from scheduler.recording.events import Lost, Seen
from tests.scheduler.live.test_state_feed import group, make_feed, pod
from tests.scheduler.live.test_status_writer import DONE
from tests.support.fake_server import cancelled, run, standing_in

NOW = 1_800_000_000.0
NO_ROOM = Refusal((NoNode("ns/p", 2),))


def malformed(metrics: Metrics) -> list[str]:
    return [line for line in metrics.render().decode().splitlines() if line.startswith("schedspec_malformed_objects{")]


def of(feed: Feed, metrics: Metrics) -> Publication:
    publication = Publication(feed, create_autospec(Publisher), create_autospec(Recorder), metrics)
    feed.on_trouble = publication.trouble
    return publication


def test_a_malformed_object_is_counted_until_it_is_good() -> None:
    feed, metrics = make_feed(), Metrics()
    publication = of(feed, metrics)
    meta = ObjectMeta(name="g", namespace="ns", uid="ug")
    feed._refuse(Trouble(PODGROUPS, meta, "Expected `int`, got `str`"))
    assert malformed(metrics) == ['schedspec_malformed_objects{kind="PodGroup"} 1.0']
    feed.put(Seen("PodGroup", group()))
    feed.empty()
    publication.publish(Decisions(), now=0.0)
    assert malformed(metrics) == []


def test_what_is_no_longer_so_when_a_pod_is_bound_is_not_written_after_the_bind() -> None:
    async def test() -> None:
        bound = asyncio.Event()
        async with standing_in(lambda asked: DONE) as (server, client):
            publisher = Publisher(client, bound.wait, pause=0.01)  # type: ignore[arg-type]
            feed = make_feed()
            publication = Publication(feed, publisher, create_autospec(Recorder), Metrics())
            writing = asyncio.create_task(publisher.run())
            for given in (Seen("PodGroup", group("Inqueue")), Seen("Pod", pod())):
                feed.apply(given)
            publication.publish(Decisions(refusals={"ns/g": NO_ROOM}), NOW)
            publication.publish(Decisions(binds=[Bind("ns/p", "u", "n", "ns/g")]), NOW)
            bound.set()
            await publisher.drain()
            assert [asked.path for asked in server.asked if "/pods/" in asked.path] == []
            await cancelled(writing)

    run(test)


def test_a_pod_whose_gang_or_group_is_still_being_made_is_told_when_that_takes_long() -> None:
    for refusal, why in (
        (Refusal((PodsMissing(1, 3),)), "gang: 1 of at least 3 pods exist"),
        (Refusal((NoGroup("ns/g"),)), "PodGroup ns/g does not exist or cannot be read"),
    ):
        feed = make_feed()
        feed.apply(Seen("PodGroup", group("Inqueue")))
        feed.apply(Seen("Pod", pod()))
        if isinstance(refusal.items[0], NoGroup):
            feed.apply(Lost("PodGroup", "ns/g", "ug"))
        publication = of(feed, Metrics())
        events, publisher = publication._events, publication._publisher
        publication.publish(Decisions(refusals={"ns/g": refusal}), NOW)
        assert publication.again_at == NOW + 2
        publication.publish(Decisions(refusals={"ns/g": refusal}), NOW + 1)
        assert not publisher.merge.called  # type: ignore[attr-defined]
        assert not publisher.apply.called  # type: ignore[attr-defined]
        assert not events.event.called  # type: ignore[attr-defined]
        publication.publish(Decisions(refusals={"ns/g": refusal}), NOW + 2)
        assert publication.again_at is None
        assert publisher.merge.call_args.args[-1]["conditions"][0]["message"] == why  # type: ignore[attr-defined]
        if isinstance(refusal.items[0], PodsMissing):
            assert publisher.apply.call_args.args[-1]["conditions"][0]["message"] == why  # type: ignore[attr-defined]
        assert events.event.call_args.args[2:] == (WARNING, "FailedScheduling", why)  # type: ignore[attr-defined]
        before = events.event.call_count  # type: ignore[attr-defined]
        publication.publish(Decisions(refusals={"ns/g": refusal}), NOW + 60)
        assert events.event.call_count == before  # type: ignore[attr-defined]


def test_a_write_that_is_refused_is_told_on_the_pod_and_not_on_its_successor() -> None:
    feed = make_feed()
    feed.apply(Seen("Pod", pod()))
    publication = of(feed, Metrics())
    event = publication._events.event
    error = ApiError("POST /x", 403, "Forbidden", "not you")
    reason = VictimReason("reclaim", "ns/b", "ns/b-0", "qb", "qa")
    for uid in ("u", "successor"):
        publication.refused(Bind("ns/p", uid, "n", "ns/g"), error)
        publication.refused(Evict("ns/p", uid, "ns/g", reason), error)
    told = "POST /x: 403 Forbidden: not you"
    assert [(call.args[0], *call.args[2:]) for call in event.call_args_list] == [  # type: ignore[attr-defined]
        (PODS, WARNING, "FailedBinding", told),
        (PODS, WARNING, "FailedEviction", told),
    ]


def test_a_victim_and_its_group_are_told_who_takes_its_place() -> None:
    feed = make_feed()
    feed.apply(Seen("PodGroup", group("Running")))
    feed.apply(Seen("Pod", pod("Running", "n")))
    publication = of(feed, Metrics())
    reason = VictimReason("reclaim", "ns/b", "ns/b-0", "qb", "qa")
    publication.condemned(Evict("ns/p", "u", "ns/g", reason))
    told = "reclaimed for ns/b of queue qb (victim's queue: qa)"
    event = publication._events.event
    assert [(call.args[0], *call.args[2:]) for call in event.call_args_list] == [  # type: ignore[attr-defined]
        (PODS, WARNING, "Evict", told),
        (PODGROUPS, NORMAL, "Evict", f"pod p {told}"),
    ]


def test_a_reason_that_came_when_there_was_no_time_to_tell_it_is_told_later() -> None:
    feed = make_feed()
    for given in (Seen("PodGroup", group("Inqueue")), Seen("Pod", pod())):
        feed.apply(given)
    publication = of(feed, Metrics())
    publication.publish(Decisions(), NOW)
    refused = Decisions(refusals={"ns/g": NO_ROOM})
    publication.publish(refused, NOW + 1, only_urgent=True)
    publication._events.event.assert_not_called()  # type: ignore[attr-defined]
    publication.publish(refused, NOW + 2)
    assert {call.args[3] for call in publication._events.event.call_args_list} == {  # type: ignore[attr-defined]
        "Unschedulable",
        "FailedScheduling",
    }
