"""From watches to the state: nothing is lost, nothing stops for one bad object, and only what matters is urgent."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from scheduler.kube import PODGROUPS, Absent, Client, Connection, Http, Malformed, Present, Unreadable
from scheduler.live.state_feed import Feed, Trouble, Urgency
from scheduler.model import objects
from scheduler.model.cluster import Cluster
from scheduler.model.task import TaskStatus
from scheduler.recording.events import Assumed, Input, Lost, Reverted, Seen


def make_feed(**more: Any) -> Feed:
    return Feed(Cluster(["schedspec"]), Client(Http(Connection("127.0.0.1", 9))), **more)


def pod(phase: str = "Pending", node: str = "", **meta: Any) -> objects.Pod:
    return msgspec.convert(
        {
            "metadata": {
                "name": "p",
                "namespace": "ns",
                "uid": "u",
                "annotations": {"scheduling.k8s.io/group-name": "g"},
                **meta,
            },
            "spec": {"schedulerName": "schedspec", "nodeName": node, "containers": []},
            "status": {"phase": phase},
        },
        objects.Pod,
    )


def group(phase: str = "", message: str = "", **spec: Any) -> objects.PodGroup:
    conditions = [{"type": "Unschedulable", "status": "True", "message": message}] if message else []
    body = {
        "metadata": {"name": "g", "namespace": "ns", "uid": "ug"},
        "spec": {"minMember": 1, **spec},
        "status": {"phase": phase, "conditions": conditions},
    }
    return msgspec.convert(body, objects.PodGroup)


def test_the_state_moves_only_when_the_inbox_is_emptied() -> None:
    feed = make_feed()
    feed.put(Seen("Pod", pod()))
    assert feed.arrived.is_set()
    assert feed.cluster.tasks == {}
    assert feed.empty() is Urgency.SOON
    assert feed.cluster.tasks["ns/p"].status is TaskStatus.PENDING
    assert not feed.arrived.is_set()


URGENCIES: dict[str, tuple[list[Input], Input, Urgency]] = {
    "a new pod": ([], Seen("Pod", pod()), Urgency.SOON),
    "a pod that says nothing new": ([Seen("Pod", pod())], Seen("Pod", pod()), Urgency.NONE),
    "a bind that is confirmed": (
        [Seen("Pod", pod()), Assumed("ns/p", "u", "n")],
        Seen("Pod", pod(node="n")),
        Urgency.LAZY,
    ),
    "a bound pod that runs": ([Seen("Pod", pod(node="n"))], Seen("Pod", pod("Running", "n")), Urgency.LAZY),
    "a pod that is given its group": ([Seen("Pod", pod(annotations={}))], Seen("Pod", pod()), Urgency.SOON),
    "a pod that has finished": ([Seen("Pod", pod("Running", "n"))], Seen("Pod", pod("Succeeded", "n")), Urgency.SOON),
    "a pod that is gone": ([Seen("Pod", pod())], Lost("Pod", "ns/p", "u"), Urgency.SOON),
    "a pod that was gone before": ([], Lost("Pod", "ns/p", "u"), Urgency.NONE),
    "a successor of the same name": ([Seen("Pod", pod(node="n"))], Seen("Pod", pod(uid="v")), Urgency.SOON),
    "a bind that is given back": (
        [Seen("Pod", pod()), Assumed("ns/p", "u", "n")],
        Reverted("ns/p", "u"),
        Urgency.SOON,
    ),
    "a group's reason, which we wrote ourselves": (
        [Seen("PodGroup", group("Inqueue"))],
        Seen("PodGroup", group("Inqueue", "because")),
        Urgency.NONE,
    ),
    "a group's phase": ([Seen("PodGroup", group("Pending"))], Seen("PodGroup", group("Inqueue")), Urgency.SOON),
    "a group's spec": ([Seen("PodGroup", group())], Seen("PodGroup", group(minMember=2)), Urgency.SOON),
}


@pytest.mark.parametrize(("before", "given", "expected"), URGENCIES.values(), ids=URGENCIES)
def test_how_urgent_a_change_is(before: list[Input], given: Input, expected: Urgency) -> None:
    feed = make_feed()
    for item in before:
        feed.apply(item)
    feed.put(given)
    assert feed.empty() is expected


def test_an_object_that_cannot_be_taken_in_is_left_out_and_told_of_and_the_others_go_on() -> None:
    troubles: list[Trouble] = []
    inputs: list[Input] = []
    feed = make_feed(on_trouble=troubles.append, on_input=inputs.append)
    feed.apply(Seen("PodGroup", group()))
    feed.put(Seen("PodGroup", group(minResources={"cpu": "many"})))
    feed.put(Seen("Pod", pod()))
    feed.empty()
    assert feed.cluster.jobs["ns/g"].group is None
    assert "ns/p" in feed.cluster.tasks
    [trouble] = troubles
    assert (trouble.resource.kind, trouble.metadata.key) == ("PodGroup", "ns/g")
    assert "many" in trouble.error
    assert [type(given).__name__ for given in inputs] == ["Seen", "Lost", "Seen"]


def test_an_object_that_cannot_be_read_is_forgotten_until_it_is_good_again() -> None:
    feed = make_feed()
    feed.apply(Seen("PodGroup", group()))
    hear = feed._hearing(PODGROUPS)
    hear(Unreadable("ns/g", Malformed(group().metadata, "Expected `int`")))
    feed.empty()
    assert "ns/g" not in feed.cluster.jobs
    assert [kind for kind, _ in feed.troubles] == ["PodGroup"]
    hear(Present(group()))
    feed.empty()
    assert feed.troubles == {}
    assert "ns/g" in feed.cluster.jobs
    hear(Absent("ns/g", "ug"))
    feed.empty()
    assert "ns/g" not in feed.cluster.jobs


def test_what_happened_to_a_job_is_remembered_until_it_is_published() -> None:
    feed = make_feed()
    feed.apply(Seen("Pod", pod()))
    assert feed.touched == {"ns/g"}
    feed.touched.clear()
    feed.apply(Lost("Pod", "ns/p", "u"))
    assert feed.touched == {"ns/g"}
    feed.touched.clear()
    feed.apply(Lost("PodGroup", "ns/g", "ug"))
    assert feed.touched == {"ns/g"}


def test_who_waits_for_a_pod_to_be_gone_is_told() -> None:
    feed = make_feed()
    gone: list[str] = []
    feed.on_gone = gone.append
    for given in (Seen("Pod", pod()), Lost("PodGroup", "ns/g", "ug"), Lost("Pod", "ns/p", "u")):
        feed.put(given)
    feed.empty()
    assert gone == ["u"]
