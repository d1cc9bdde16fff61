"""What users get to read of a cycle, and what is left to others to say."""

from __future__ import annotations

from typing import Any

import msgspec

from scheduler.decisions import Decisions
from scheduler.kube import PODS, Client, Connection, Http
from scheduler.live.feed import Feed
from scheduler.live.metrics import Metrics
from scheduler.live.publication import Publication
from scheduler.model import objects
from scheduler.model.cluster import Cluster
from scheduler.reasons import Gated, NoNode, Refusal


class Told:
    """Stands in for the publisher and the recorder: notes whom something was said of."""

    def __init__(self) -> None:
        self.conditions: list[str] = []
        self.events: list[str] = []

    def apply(self, *_: Any, **__: Any) -> None:
        """Statuses of groups and queues are of no interest here."""

    def merge(self, _resource: object, _namespace: str, name: str, *_: Any) -> None:
        self.conditions.append(name)

    def event(self, resource: object, metadata: objects.ObjectMeta, *_: Any) -> None:
        if resource is PODS:
            self.events.append(metadata.name)


def pod(name: str, **spec: Any) -> objects.Pod:
    annotations = {"scheduling.k8s.io/group-name": "g"}
    body = {"metadata": {"name": name, "namespace": "ns", "uid": name, "annotations": annotations}, "spec": spec}
    return msgspec.convert(body, objects.Pod)


def test_of_a_gated_pod_the_api_server_says_itself_why_it_waits() -> None:
    cluster, told = Cluster(), Told()
    cluster.set_podgroup(msgspec.convert({"metadata": {"name": "g", "namespace": "ns"}}, objects.PodGroup))
    cluster.set_pod(pod("gated", schedulingGates=[{"name": "quota"}]))
    cluster.set_pod(pod("open"))
    feed = Feed(cluster, Client(Http(Connection("127.0.0.1", 9))))
    publication = Publication(feed, told, told, Metrics())  # type: ignore[arg-type]
    publication.publish(Decisions(refusals={"ns/g": Refusal((NoNode("ns/open", 0), Gated(1)))}), now=0.0)
    assert (told.conditions, told.events) == (["open"], ["open"])
