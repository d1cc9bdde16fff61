"""Each eviction of a recording has its preemptor: as the scheduler named it, or inferred and marked so."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedspec.lab.recorder.evictions import about, between
from tests.schedspec.lab.recorder.nights import evictions
from tests.schedspec.lab.recorder.recorded_cluster import SPACE, RecordedCluster, recorded


def displaced(cluster: RecordedCluster, victim: str, preemptor: str, message: str, *, told: str = "") -> None:
    """Evict the pod of a job for the pod of another, which is then bound to its node."""
    cluster.advance(5.0)
    if told:
        about_it = {"kind": "Pod", "namespace": SPACE, "name": f"{victim}-0", "uid": uid_of(cluster, f"{victim}-0")}
        related = {
            "kind": "Pod",
            "namespace": SPACE,
            "name": f"{preemptor}-0",
            "uid": uid_of(cluster, f"{preemptor}-0"),
        }
        path = f"/api/v1/namespaces/{SPACE}/events"
        by_uid = f"Preempted by pod {related['uid']} on node n1"
        more = {"related": related} if told == "related" else {"message": by_uid}
        cluster.make(path, f"{victim}.1", involvedObject=about_it, reason="Preempted", **more)
    cluster.evict(f"{victim}-0", message)
    cluster.advance(3.0)
    cluster.bind(f"{preemptor}-0", "n1")
    cluster.advance(5.0)


def uid_of(cluster: RecordedCluster, pod: str) -> str:
    return str(cluster.call("GET", f"/api/v1/namespaces/{SPACE}/pods/{pod}", {})["metadata"]["uid"])


@pytest.mark.parametrize(
    ("message", "told", "inferred"),
    [
        ("evicted by volcano", "", True),
        ("evicted by volcano", "related", False),
        ("evicted by volcano", "uid", False),
        ("reclaim for team/taker of queue online", "", False),
        ("", "", True),
    ],
    ids=["nobody-named", "named-by-an-event", "named-by-uid-in-an-event", "named-by-the-message", "no-message"],
)
def test_the_preemptor_is_named_or_inferred(tmp_path: Path, message: str, told: str, inferred: bool) -> None:
    with recorded(tmp_path) as cluster:
        cluster.group("giver", "batch")
        cluster.group("taker", "online")
        cluster.runs("giver-0", "giver", "n1", 8)
        cluster.pod("taker-0", "taker", 8)
        displaced(cluster, "giver", "taker", message, told=told)
        cluster.advance(130.0)
    [one] = evictions(tmp_path)
    assert (one.pod, one.job, one.queue, one.node) == ("team/giver-0", "team/giver", "batch", "n1")
    assert (one.preemptor_job, one.preemptor_queue, one.is_inferred) == ("team/taker", "online", inferred)
    text = about("team/giver-0", [one])
    assert ("inferred" in text) == inferred
    assert "team/giver-0 (queue batch) was evicted on n1 at 2026-" in text
    assert text.endswith("team/giver lost 1 pod to team/taker, and team/taker lost 0 pods to team/giver.")


def test_a_preemptor_is_named_though_its_job_is_over_at_once(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        cluster.group("giver", "batch")
        cluster.group("taker", "online")
        cluster.runs("giver-0", "giver", "n1", 8)
        cluster.pod("taker-0", "taker", 8)
        group = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{SPACE}/podgroups/taker"
        uid = cluster.call("GET", group, {})["metadata"]["uid"]
        displaced(cluster, "giver", "taker", f"Preempted to accommodate a workload (UID: {uid}, JobUID: j)")
        for path in (f"/api/v1/namespaces/{SPACE}/pods/taker-0", group):
            cluster.call("DELETE", path, {"gracePeriodSeconds": 0})
        cluster.advance(200.0)
    [one] = evictions(tmp_path)
    assert (one.preemptor_job, one.is_inferred) == ("team/taker", False)


def test_an_eviction_for_nobody_says_so(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        cluster.runs("alone-0", "", "n1", 8)
        cluster.evict("alone-0", "evicted")
        cluster.advance(130.0)
    [one] = evictions(tmp_path)
    assert (one.preemptor, one.preemptor_job) == ("", "")
    assert "for whom is unknown" in about("team/alone-0", [one])


def test_the_chain_names_who_made_room_before_and_who_went_later(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        for job in ("first", "second", "third", "fourth"):
            cluster.group(job, "batch")
        cluster.runs("first-0", "first", "n1", 8)
        for victim, preemptor in (("first", "second"), ("second", "third"), ("third", "fourth")):
            cluster.pod(f"{preemptor}-0", preemptor, 8)
            displaced(cluster, victim, preemptor, f"preempt for team/{preemptor}")
        cluster.advance(130.0)
    found = evictions(tmp_path)
    assert [(one.job, one.preemptor_job) for one in found] == [
        ("team/first", "team/second"),
        ("team/second", "team/third"),
        ("team/third", "team/fourth"),
    ]
    text = about("team/second-0", found)
    assert f"others had made room for team/second: team/first at {found[0].time} for team/second." in text
    assert f"Later team/third was evicted itself, at {found[2].time} for team/fourth." in text


def test_pods_that_made_room_together_are_counted(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        cluster.group("gang", "batch", 2)
        cluster.group("taker", "online")
        for number in range(2):
            cluster.runs(f"gang-{number}", "gang", "n1", 4)
        cluster.pod("taker-0", "taker", 8)
        cluster.advance(1.0)
        for number in range(2):
            cluster.evict(f"gang-{number}", "preempt for team/taker")
        cluster.advance(3.0)
        cluster.bind("taker-0", "n1")
        cluster.advance(130.0)
    found = evictions(tmp_path)
    assert "together with 1 pod." in about("team/gang-0", found)
    [line] = between(found, found[0].at - 1.0, found[0].at + 5.0)
    assert line == f"{found[0].time} 2 pods of team/gang (queue batch) for team/taker (queue online)"
    assert between(found, found[0].at + 10.0, found[0].at + 20.0) == []


def test_evictions_in_a_gap_are_not_invented(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        cluster.runs("giver-0", "", "n1", 8)
        cluster.kill()
        cluster.evict("giver-0", "evicted")
        cluster.advance(10.0)
        cluster.record()
        cluster.advance(130.0)
    assert evictions(tmp_path) == []
