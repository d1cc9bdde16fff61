"""What users get to read: what is wrong, for as long as it is wrong."""

from __future__ import annotations

from unittest.mock import create_autospec

from scheduler.decisions import Decisions
from scheduler.inputs import Seen
from scheduler.kube import PODGROUPS, Recorder
from scheduler.live.feed import Feed, Trouble
from scheduler.live.metrics import Metrics
from scheduler.live.publication import Publication
from scheduler.live.publisher import Publisher
from scheduler.model.objects import ObjectMeta
from tests.live.test_feed import group, make_feed


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
