"""Numbers for Prometheus: Volcano's names and units, and nothing of what is gone."""

from __future__ import annotations

from scheduler.live.metrics import Metrics


def lines(metrics: Metrics, start: str) -> list[str]:
    return [line for line in metrics.render().decode().splitlines() if line.startswith(start)]


def test_a_queues_numbers_have_volcanos_names_and_units() -> None:
    metrics = Metrics()
    metrics.queue("a", "allocated", {"cpu": 1500.0, "memory": 2.0**30, "nvidia.com/gpu": 8000.0})
    assert lines(metrics, "volcano_queue_allocated") == [
        'volcano_queue_allocated_milli_cpu{queue_name="a"} 1500.0',
        'volcano_queue_allocated_memory_bytes{queue_name="a"} 1.073741824e+09',
        'volcano_queue_allocated_scalar_resources{queue_name="a",resource="nvidia.com/gpu"} 8000.0',
    ]


def test_a_resource_that_a_queue_no_longer_holds_is_nothing() -> None:
    metrics = Metrics()
    metrics.queue("a", "allocated", {"cpu": 1000.0, "nvidia.com/gpu": 8000.0})
    metrics.queue("a", "allocated", {})
    assert {line.split()[-1] for line in lines(metrics, "volcano_queue_allocated")} == {"0.0"}


def test_nothing_is_shown_of_a_queue_that_is_gone() -> None:
    metrics = Metrics()
    for name in ("a", "b"):
        for what in ("allocated", "deserved", "capacity"):
            metrics.queue(name, what, {"cpu": 1000.0, "nvidia.com/gpu": 8000.0})
    metrics.share("b", 0.5)
    metrics.queue_gone("a")
    metrics.queue_gone("b")
    assert lines(metrics, "volcano_queue") == []


def test_a_pods_wait_is_counted_in_milliseconds_and_never_below_nothing() -> None:
    metrics = Metrics()
    metrics.waited(0.25)
    metrics.waited(-0.4)  # the API tells creation in whole seconds of its own clock
    assert lines(metrics, "volcano_task_scheduling_latency_milliseconds_sum")[0].endswith(" 250.0")
    assert lines(metrics, "volcano_task_scheduling_latency_milliseconds_count")[0].endswith(" 2.0")
