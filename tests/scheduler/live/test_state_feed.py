"""From watches to the state: nothing is lost, a bad object stops nothing, and only relevant changes are urgent."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from schedspec.scheduler.framework.decisions import Bind
from schedspec.scheduler.inputs import Assumed, Input, ObjectGone, ObjectSeen, Reverted
from schedspec.scheduler.kube import (
    PODGROUPS,
    WATCHED,
    Absent,
    Client,
    Connection,
    Http,
    KubeError,
    Malformed,
    Present,
    Unreadable,
)
from schedspec.scheduler.live.inbox import Bound, RefusedWrite
from schedspec.scheduler.live.state_feed import StateFeed, Urgency
from schedspec.scheduler.model import objects
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.state_kinds import STATE_KINDS
from schedspec.scheduler.model.task import TaskStatus


def make_feed(**more: Any) -> StateFeed:
    return StateFeed(Cluster(["schedspec"]), Client(Http(Connection("127.0.0.1", 9))), **more)


def test_each_kind_of_the_state_is_watched_and_read_by_one_struct() -> None:
    assert {it.kind: it.struct for it in WATCHED} == {name: kind.struct for name, kind in STATE_KINDS.items()}


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


def test_the_state_changes_only_when_the_inbox_is_emptied() -> None:
    feed = make_feed()
    feed.inbox.put(ObjectSeen("Pod", pod()))
    assert feed.inbox.arrived.is_set()
    assert feed.cluster.tasks == {}
    assert feed.empty().urgency is Urgency.SOON
    assert feed.cluster.tasks["ns/p"].status is TaskStatus.PENDING
    assert not feed.inbox.arrived.is_set()


URGENCIES: dict[str, tuple[list[Input], Input, Urgency]] = {
    "a new pod": ([], ObjectSeen("Pod", pod()), Urgency.SOON),
    "a new pod of a gang that lacks another pod": (
        [ObjectSeen("PodGroup", group(minMember=2))],
        ObjectSeen("Pod", pod()),
        Urgency.SOON,
    ),
    "a new pod that completes its gang": (
        [ObjectSeen("PodGroup", group(minMember=2)), ObjectSeen("Pod", pod(name="other", uid="o"))],
        ObjectSeen("Pod", pod()),
        Urgency.NOW,
    ),
    "a new pod that is a gang by itself": ([ObjectSeen("PodGroup", group())], ObjectSeen("Pod", pod()), Urgency.NOW),
    "a new pod of a complete gang that has a node": (
        [ObjectSeen("PodGroup", group())],
        ObjectSeen("Pod", pod(node="n")),
        Urgency.SOON,
    ),
    "a pod without a change": ([ObjectSeen("Pod", pod())], ObjectSeen("Pod", pod()), Urgency.NONE),
    "a bind that is confirmed": (
        [ObjectSeen("Pod", pod()), Assumed("ns/p", "u", "n")],
        ObjectSeen("Pod", pod(node="n")),
        Urgency.LAZY,
    ),
    "a bound pod that runs": ([ObjectSeen("Pod", pod(node="n"))], ObjectSeen("Pod", pod("Running", "n")), Urgency.LAZY),
    "a pod that gets its group": ([ObjectSeen("Pod", pod(annotations={}))], ObjectSeen("Pod", pod()), Urgency.SOON),
    "a pod that has finished": (
        [ObjectSeen("Pod", pod("Running", "n"))],
        ObjectSeen("Pod", pod("Succeeded", "n")),
        Urgency.SOON,
    ),
    "a deleted pod": ([ObjectSeen("Pod", pod())], ObjectGone("Pod", "ns/p", "u"), Urgency.SOON),
    "a deleted pod that was unknown": ([], ObjectGone("Pod", "ns/p", "u"), Urgency.NONE),
    "a successor of the same name": ([ObjectSeen("Pod", pod(node="n"))], ObjectSeen("Pod", pod(uid="v")), Urgency.SOON),
    "a bind that is reverted": (
        [ObjectSeen("Pod", pod()), Assumed("ns/p", "u", "n")],
        Reverted("ns/p", "u"),
        Urgency.SOON,
    ),
    "a group's reason, which we wrote ourselves": (
        [ObjectSeen("PodGroup", group("Inqueue"))],
        ObjectSeen("PodGroup", group("Inqueue", "because")),
        Urgency.NONE,
    ),
    "a group's phase as it was decided": (
        [ObjectSeen("PodGroup", group("Pending"))],
        ObjectSeen("PodGroup", group("Inqueue")),
        Urgency.LAZY,
    ),
    "a group's phase that was not decided": (
        [ObjectSeen("PodGroup", group("Running"))],
        ObjectSeen("PodGroup", group("Pending")),
        Urgency.SOON,
    ),
    "a group's phase and spec": (
        [ObjectSeen("PodGroup", group("Pending"))],
        ObjectSeen("PodGroup", group("Inqueue", minMember=2)),
        Urgency.SOON,
    ),
    "a group's spec": ([ObjectSeen("PodGroup", group())], ObjectSeen("PodGroup", group(minMember=2)), Urgency.SOON),
}


@pytest.mark.parametrize(("before", "given", "expected"), URGENCIES.values(), ids=URGENCIES)
def test_urgency_of_a_change(before: list[Input], given: Input, expected: Urgency) -> None:
    feed = make_feed()
    for item in before:
        feed.apply(item)
    feed.inbox.put(given)
    assert feed.empty().urgency is expected


def test_an_object_that_cannot_be_applied_is_skipped_and_reported() -> None:
    inputs: list[Input] = []
    feed = make_feed(on_input=inputs.append)
    feed.apply(ObjectSeen("PodGroup", group()))
    feed.inbox.put(ObjectSeen("PodGroup", group(minResources={"cpu": "many"})))
    feed.inbox.put(ObjectSeen("Pod", pod()))
    [trouble] = feed.empty().troubles
    assert feed.cluster.jobs["ns/g"].group is None
    assert "ns/p" in feed.cluster.tasks
    assert (trouble.resource.kind, trouble.metadata.key) == ("PodGroup", "ns/g")
    assert "many" in trouble.error
    assert [type(given).__name__ for given in inputs] == ["ObjectSeen", "ObjectGone", "ObjectSeen"]


@pytest.mark.parametrize("name", ["requests.cpu", "count/pods"])
def test_a_quota_with_an_invalid_amount_is_skipped_and_reported(name: str) -> None:
    """The plugin resourcequota reads the amounts of all namespaces in every cycle, so it must never read this quota."""
    feed = make_feed()
    bad = {"metadata": {"name": "q", "namespace": "ns"}, "status": {"hard": {name: "many", "count/secrets": "9"}}}
    feed.inbox.put(ObjectSeen("ResourceQuota", msgspec.convert(bad, objects.ResourceQuota)))
    [trouble] = feed.empty().troubles
    assert "'many' is not a quantity" in trouble.error
    assert not feed.cluster.quotas


def test_an_unreadable_object_is_removed_until_it_is_valid_again() -> None:
    feed = make_feed()
    feed.apply(ObjectSeen("PodGroup", group()))
    handle = feed._handler_of(PODGROUPS)
    handle(Unreadable("ns/g", Malformed(group().metadata, "Expected `int`")))
    feed.empty()
    assert "ns/g" not in feed.cluster.jobs
    assert [kind for kind, _ in feed.troubles] == ["PodGroup"]
    handle(Present(group()))
    feed.empty()
    assert feed.troubles == {}
    assert "ns/g" in feed.cluster.jobs
    handle(Absent("ns/g", "ug"))
    feed.empty()
    assert "ns/g" not in feed.cluster.jobs


def test_changed_jobs_are_recorded_until_they_are_published() -> None:
    feed = make_feed()
    feed.apply(ObjectSeen("Pod", pod()))
    assert feed.touched == {"ns/g"}
    feed.touched.clear()
    feed.apply(ObjectGone("Pod", "ns/p", "u"))
    assert feed.touched == {"ns/g"}
    feed.touched.clear()
    feed.apply(ObjectGone("PodGroup", "ns/g", "ug"))
    assert feed.touched == {"ns/g"}


def test_deleted_pods_are_reported_once() -> None:
    feed = make_feed()
    for given in (ObjectSeen("Pod", pod()), ObjectGone("PodGroup", "ns/g", "ug"), ObjectGone("Pod", "ns/p", "u")):
        feed.inbox.put(given)
    assert feed.empty().gone == ["u"]
    assert feed.empty().gone == []


def test_outcomes_of_writes_are_passed_on_and_request_no_cycle() -> None:
    feed = make_feed()
    bound = Bound(Bind("ns/p", "u", "n", "ns/g"), 1.0)
    feed.inbox.put(bound)
    assert not feed.inbox.arrived.is_set()
    refused = RefusedWrite(bound.decision, KubeError("POST /x", "no"))
    feed.inbox.put(refused)
    assert feed.inbox.arrived.is_set()
    intake = feed.empty()
    assert intake.outcomes == [bound, refused]
    assert intake.urgency is Urgency.NONE
