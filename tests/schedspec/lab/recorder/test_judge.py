"""What was planted in a cluster is found in its recording, at its time and with its objects, and nothing else is."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from schedspec.lab.recorder.judge import Finding, Judge
from schedspec.lab.recorder.versions import VersionReader
from schedspec.virtual.state.over_time import inputs_over_time
from tests.schedspec.lab.recorder.nights import judged
from tests.schedspec.lab.recorder.recorded_cluster import SPACE, RecordedCluster, recorded
from tests.schedspec.lab.reduce.recordings import Recorded


def needless(cluster: RecordedCluster) -> str:
    """Evict a pod although its node has room for the preemptor beside it."""
    cluster.group("spared", "batch")
    cluster.runs("spared-0", "spared", "n1", 4)
    cluster.group("wants", "online")
    cluster.pod("wants-0", "wants", 2)
    cluster.advance(1.0)
    cluster.evict("spared-0", "reclaim for team/wants of queue online")
    cluster.advance(3.0)
    cluster.bind("wants-0", "n1")
    return "team/spared-0"


def ping_pong(cluster: RecordedCluster, message: str = "evicted by volcano") -> str:
    """Evict two jobs for each other in turn. Their pods are created again with the same names."""
    cluster.group("ping", "batch")
    cluster.group("pong", "online")
    cluster.runs("ping-0", "ping", "n1", 8)
    cluster.pod("pong-0", "pong", 8)
    here, there = "ping", "pong"
    for _ in range(4):
        cluster.advance(20.0)
        cluster.evict(f"{here}-0", message.format(there))
        cluster.advance(3.0)
        cluster.bind(f"{there}-0", "n1")
        cluster.advance(1.0)
        cluster.pod(f"{here}-0", here, 8)
        here, there = there, here
    return "team/ping-0"


def guarantee(cluster: RecordedCluster) -> str:
    """Bind a pod of one queue to what is guaranteed to another queue."""
    cluster.queue("safe", guarantee={"resource": {"cpu": "6"}}, deserved={"cpu": "6"})
    cluster.advance(5.0)
    cluster.group("greedy", "batch")
    cluster.runs("greedy-0", "greedy", "n1", 4)
    return "team/greedy-0"


def in_part(cluster: RecordedCluster) -> str:
    """Bind half of a gang."""
    cluster.group("half", "batch", 2)
    for number in range(2):
        cluster.pod(f"half-{number}", "half", 1)
    cluster.advance(1.0)
    cluster.bind("half-0", "n1")
    return "team/half"


def hopeless(cluster: RecordedCluster) -> str:
    """Create a pod that is larger than every node."""
    cluster.group("large", "online")
    cluster.pod("large-0", "large", 99)
    return "team/large-0"


Plant = Callable[[RecordedCluster], str]
PLANTS: list[tuple[str, Plant, str]] = [
    ("needless-eviction", needless, "batch"),
    ("ping-pong", ping_pong, "batch"),
    ("guarantee", guarantee, "batch"),
    ("gang", in_part, "batch"),
    ("hopeless-wait", hopeless, "online"),
]


@pytest.mark.parametrize(("monitor", "plant", "queue"), PLANTS, ids=[name for name, _, _ in PLANTS])
def test_a_planted_incident_is_found_with_its_time_and_object(
    tmp_path: Path, monitor: str, plant: Plant, queue: str
) -> None:
    with recorded(tmp_path) as cluster:
        cluster.advance(60.0)
        began = cluster.now
        about = plant(cluster)
        cluster.advance(300.0)
        ended = cluster.now
    found = judged(tmp_path)
    assert (monitor, about, queue) in {(one.monitor, one.about, one.queue) for one in found}
    assert all(began <= one.at <= ended for one in found)
    # what is taken back was needless as well
    also = {"repeated-eviction", "needless-eviction"} if plant is ping_pong else set[str]()
    assert {one.monitor for one in found} - also == {monitor}


def test_two_pods_that_name_each_other_in_turn_are_found_by_two_rules(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        ping_pong(cluster, "preempt for team/{}")
        cluster.advance(200.0)
    assert {"ping-pong", "repeated-eviction"} <= {one.monitor for one in judged(tmp_path)}


def test_a_queue_that_gets_its_share_back_once_is_no_ping_pong(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        cluster.group("a", "batch")
        cluster.group("b", "online")
        cluster.runs("a-0", "a", "n1", 8)
        for here, there in (("a-0", "b-0"), ("b-0", "a-1")):
            cluster.pod(there, there[0], 8)
            cluster.advance(5.0)
            cluster.evict(here, "evicted")
            cluster.advance(3.0)
            cluster.bind(there, "n1")
            cluster.advance(20.0)
        cluster.advance(200.0)
    assert judged(tmp_path) == []


@pytest.mark.slow
def test_in_twenty_minutes_of_our_scheduler_nothing_is_found(tmp_path: Path) -> None:
    draw = random.Random(20)
    with recorded(tmp_path, scheduler="schedspec") as cluster:
        cluster.node("n2", 8)
        began, number = cluster.now, 0
        while cluster.now < began + 1200.0:
            number += 1
            size = draw.randint(1, 3)
            cluster.group(f"g{number}", draw.choice(["online", "batch"]), size)
            for index in range(size):
                cluster.pod(f"g{number}-{index}", f"g{number}", draw.randint(1, 3))
            cluster.advance(draw.uniform(5.0, 40.0))
            if draw.random() < 0.7:
                done = f"g{draw.randint(max(1, number - 5), number)}-0"
                cluster.cluster.request("DELETE", f"/api/v1/namespaces/{SPACE}/pods/{done}", b"{}")
    assert judged(tmp_path) == []


def test_what_happens_in_a_gap_is_not_judged(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        cluster.kill()
        guarantee(cluster)
        in_part(cluster)
        cluster.record()
        cluster.advance(60.0)
    assert judged(tmp_path) == []


def test_an_eviction_that_a_gap_cuts_off_is_not_called_needless(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        cluster.group("a", "batch")
        cluster.group("b", "online", 2)
        for number in range(2):
            cluster.runs(f"a-{number}", "a", "n1", 4)
            cluster.pod(f"b-{number}", "b", 4)
        for number in range(2):
            cluster.evict(f"a-{number}", "reclaim for team/b of queue online")
        cluster.advance(3.0)
        cluster.bind("b-0", "n1")
        cluster.advance(1.5)
        cluster.kill()
        cluster.bind("b-1", "n1")
        cluster.record()
        cluster.advance(60.0)
    assert judged(tmp_path) == []


def test_the_same_is_found_while_it_happens_and_afterwards(tmp_path: Path) -> None:
    live: list[Finding] = []
    judge = Judge(live.append)
    reader = VersionReader(judge)
    cluster = RecordedCluster(tmp_path)
    try:
        cluster.node("n1", 8)
        for name in ("online", "batch"):
            cluster.queue(name, deserved={"cpu": "4"})
        cluster.advance(1.0)
        cluster.record(sink=reader.read)
        cluster.node("n2", 8)
        for _, plant, _ in (PLANTS[4], PLANTS[0], PLANTS[3]):
            plant(cluster)
            cluster.advance(120.0)
        cluster.advance(200.0)
    finally:
        cluster.close()
    assert {one.monitor for one in live} >= {"gang", "hopeless-wait"}
    judge.end(float("inf"))
    assert sorted(map(str, live)) == sorted(map(str, judged(tmp_path)))


def test_a_pod_without_a_group_is_named_with_its_namespace(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        cluster.runs("alone-0", "", "n1", 5)
        cluster.runs("alone-1", "", "n1", 5)
    assert [(one.monitor, one.about) for one in judged(tmp_path)] == [("node", "team/alone-1")]


def test_a_rule_that_is_left_out_finds_nothing(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        hopeless(cluster)
        cluster.advance(200.0)
    assert judged(tmp_path, off=("hopeless-wait",)) == []


def test_the_judge_keeps_what_lives_and_not_what_was(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        for number in range(150):
            cluster.runs(f"p-{number}", "", "n1", 0)
            cluster.call("DELETE", f"/api/v1/namespaces/{SPACE}/pods/p-{number}", {"gracePeriodSeconds": 0})
            cluster.advance(2.0)
    judge = Judge(lambda _: None)
    reader = VersionReader(judge)
    reader.read_all(inputs_over_time(tmp_path))
    assert judge.versions > 600
    assert len(judge._ledger.pods) == 0
    assert len(reader._waiting) == 0
    assert len(judge._evictions._acts.acts) < 60


PREEMPTED = "schedspec: preempting to accommodate a higher priority pod"


def ended_just_before(cluster: Recorded) -> None:
    """Evict a pod when another one has just left its node: the scheduler had decided before."""
    cluster.runs("victim", 2)
    cluster.runs("leaves", 6)
    cluster.pod("wants", 4)
    cluster.pass_time(1.0)
    cluster.delete("leaves")
    cluster.evict("victim", PREEMPTED)
    cluster.bind("wants")


def preemptor_evicted_itself(cluster: Recorded) -> None:
    """Evict the preemptor of a needed eviction for a smaller pod: every message is the same, and names nobody."""
    cluster.runs("stays", 5)
    cluster.runs("victim", 1)
    cluster.pod("wants", 3)
    cluster.pass_time(1.0)
    cluster.evict("victim", PREEMPTED)
    cluster.bind("wants")
    cluster.pod("smaller", 2)
    cluster.pass_time(3.0)
    cluster.evict("wants", PREEMPTED)
    cluster.bind("smaller")


@pytest.mark.parametrize("story", [ended_just_before, preemptor_evicted_itself])
def test_an_eviction_that_the_scheduler_had_reason_for_is_not_called_needless(
    tmp_path: Path, story: Callable[[Recorded], None]
) -> None:
    cluster = Recorded(tmp_path)
    cluster.node("n1", 8)
    cluster.pass_time(2.0)
    story(cluster)
    cluster.close()
    assert judged(tmp_path) == []
