"""Metrics of queues: Volcano's names and units from the last cycle; deleted queues leave no series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from schedspec.scheduler.framework.decisions import QueueNumbers
from schedspec.scheduler.live.metrics import Metrics
from schedspec.scheduler.live.series import QueueSeries
from schedspec.scheduler.model import objects
from schedspec.scheduler.model.queue import Queue
from tests.scheduler.live.metrics_setup import MetricsSetup, lines


def a_queue(name: str, **spec: Any) -> Queue:
    return Queue(objects.Queue(objects.ObjectMeta(name=name), objects.QueueSpec(**spec)))


def shown(numbers: Mapping[str, QueueNumbers] | None, *queues: Queue) -> tuple[Metrics, QueueSeries]:
    metrics = Metrics()
    series = QueueSeries(lambda: {queue.name: queue for queue in queues}, lambda: {("a", "Running"): 2})
    series.numbers = numbers
    metrics.show(series)
    return metrics, series


TWO: dict[str, Any] = {
    "nodes": [{"name": "n1", "has": "4 cpu, 8Gi memory, 8 gpu"}],
    "queues": [
        {"name": "a", "weight": 2, "deserved": "1 cpu, 2 gpu", "capability": "3 cpu, 9 pods"},
        {"name": "b", "weight": 1, "deserved": "3 cpu, 6 gpu", "guarantee": "1 cpu"},
    ],
    "jobs": [
        {"name": "runs", "queue": "a", "tasks": ["2 x 1 cpu running on n1", "1 x 1 cpu"], "min": 1},
        {"name": "waits", "queue": "b", "tasks": "1 x 9 cpu", "requests": "none"},
    ],
}


def test_a_queues_numbers_have_volcanos_names_and_units() -> None:
    held = {"cpu": 1500.0, "memory": 2.0**30, "nvidia.com/gpu": 8000.0}
    metrics, _ = shown({"a": QueueNumbers(allocated=held)}, a_queue("a"))
    assert lines(metrics, "volcano_queue_allocated") == [
        'volcano_queue_allocated_milli_cpu{queue_name="a"} 1500.0',
        'volcano_queue_allocated_memory_bytes{queue_name="a"} 1.073741824e+09',
        'volcano_queue_allocated_scalar_resources{queue_name="a",resource="nvidia.com/gpu"} 8000.0',
    ]


def test_a_resource_that_a_queue_may_hold_but_does_not_is_shown_as_zero() -> None:
    metrics, series = shown({"a": QueueNumbers(allocated={"cpu": 1000.0, "nvidia.com/gpu": 8000.0})}, a_queue("a"))
    series.numbers = {"a": QueueNumbers(capability={"nvidia.com/gpu": 8000.0})}
    assert {line.rsplit(" ", 1)[0]: line.split()[-1] for line in lines(metrics, "volcano_queue_allocated")} == {
        'volcano_queue_allocated_milli_cpu{queue_name="a"}': "0.0",
        'volcano_queue_allocated_memory_bytes{queue_name="a"}': "0.0",
        'volcano_queue_allocated_scalar_resources{queue_name="a",resource="nvidia.com/gpu"}': "0.0",
    }


def test_a_deleted_queue_leaves_no_series() -> None:
    showing = MetricsSetup("capacity", TWO)
    showing.cycle()
    assert lines(showing.metrics, "volcano_queue_share{")
    for name in ("a", "b"):
        showing.world.remove("Queue", name)
    assert lines(showing.metrics, "volcano_queue_") == []


@pytest.mark.parametrize("named_by", ["node", "queue"])
def test_a_resource_that_no_object_names_any_more_leaves_no_series(named_by: str) -> None:
    setup = MetricsSetup("capacity", TWO)
    series = 'resource="example.com/card"'
    if named_by == "node":
        setup.world.load({"nodes": [{"name": "n2", "has": "1 cpu, 2 example.com/card"}]})
        setup.world.load({"jobs": [{"name": "j", "queue": "a", "tasks": "1 x 1 example.com/card running on n2"}]})
    else:
        setup.world.change("Queue", "b", {"spec": {"capability": {"example.com/card": "2"}}})
    setup.cycle()
    assert series in setup.metrics.render().decode()
    if named_by == "node":
        for pod in setup.world.pods_of("j"):
            setup.world.remove("Pod", pod)
        setup.world.remove("PodGroup", "t/j")
        setup.world.remove("Node", "n2")
    else:
        setup.world.remove("Queue", "b")
    setup.cycle()
    assert series not in setup.metrics.render().decode()


def test_queues_have_no_series_before_the_first_cycle() -> None:
    metrics, _ = shown(None, a_queue("a"))
    assert lines(metrics, "volcano_queue") == []


def test_held_deserved_requested_and_maximum_resources_have_separate_series() -> None:
    showing = MetricsSetup("capacity", TWO)
    showing.cycle()
    cpus = {
        what: showing.values(f"volcano_queue_{what}_milli_cpu")
        for what in ("allocated", "deserved", "request", "capacity", "real_capacity")
    }
    assert cpus == {
        "allocated": {'{queue_name="a"}': 2000.0, '{queue_name="b"}': 0.0},
        "deserved": {'{queue_name="a"}': 1000.0, '{queue_name="b"}': 3000.0},
        "request": {'{queue_name="a"}': 3000.0, '{queue_name="b"}': 9000.0},
        "capacity": {'{queue_name="a"}': 3000.0},  # queue b has no capability
        "real_capacity": {'{queue_name="a"}': 3000.0, '{queue_name="b"}': 4000.0},
    }
    assert showing.values("volcano_queue_capacity_scalar_resources") == {}


def test_a_queue_shows_its_weight_and_its_share() -> None:
    showing = MetricsSetup("capacity", TWO)
    showing.cycle()
    assert showing.values("volcano_queue_weight") == {'{queue_name="a"}': 2.0, '{queue_name="b"}': 1.0}
    assert showing.values("volcano_queue_share") == {'{queue_name="a"}': 2.0, '{queue_name="b"}': 0.0}


@pytest.mark.parametrize(("policy", "held", "overused"), [
    ("capacity", 1, 0.0), ("capacity", 2, 0.0), ("capacity", 3, 1.0),  # the queue deserves 2 cpu
    ("proportion", 1, 1.0),  # the queue deserves, and holds, what its jobs request
])  # fmt: skip
def test_a_queue_that_is_not_entitled_to_more_is_overused(policy: str, held: int, overused: float) -> None:
    jobs = [{"name": "job", "queue": "a", "tasks": f"{held} x 1 cpu running on n1"}]
    queues = [{"name": "a", "deserved": "2 cpu"}]
    showing = MetricsSetup(policy, {"nodes": TWO["nodes"], "queues": queues, "jobs": jobs})
    showing.cycle()
    assert showing.values("volcano_queue_overused") == {'{queue_name="a"}': overused}


def test_without_a_queue_plugin_only_weights_and_podgroup_counts_have_series() -> None:
    showing = MetricsSetup("plain", TWO)
    showing.cycle()
    names = {line.partition("{")[0] for line in lines(showing.metrics, "volcano_queue_")}
    phases = {
        f"volcano_queue_pod_group_{phase}_count" for phase in ("pending", "inqueue", "running", "unknown", "completed")
    }
    assert names == {"volcano_queue_weight", *phases}


def test_podgroups_are_counted_by_queue_and_by_phase_after_the_cycle() -> None:
    showing = MetricsSetup("capacity", TWO)
    decisions = showing.cycle()
    assert decisions.phases == {"t/waits": "Inqueue"}
    assert showing.values("volcano_queue_pod_group_running_count") == {'{queue_name="a"}': 1.0, '{queue_name="b"}': 0.0}
    assert showing.values("volcano_queue_pod_group_inqueue_count") == {'{queue_name="a"}': 0.0, '{queue_name="b"}': 1.0}
    assert set(showing.values("volcano_queue_pod_group_pending_count").values()) == {0.0}
    showing.world.remove("PodGroup", "t/waits")
    assert set(showing.values("volcano_queue_pod_group_inqueue_count").values()) == {0.0}


def test_a_scrape_by_name_returns_only_that_metric() -> None:
    metrics, _ = shown({"a": QueueNumbers(allocated={"cpu": 1500.0})}, a_queue("a", weight=3))
    text = metrics.render(["volcano_queue_weight"]).decode()
    assert [line for line in text.splitlines() if not line.startswith("#")] == [
        'volcano_queue_weight{queue_name="a"} 3.0'
    ]
