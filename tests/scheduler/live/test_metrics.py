"""Prometheus metrics with Volcano's names and units."""

from __future__ import annotations

from typing import Any

from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.live.metrics import Metrics
from schedspec.scheduler.live.stopwatch import Lap
from tests.scheduler.live.metrics_setup import MetricsSetup, lines

SMALL: dict[str, Any] = {
    "nodes": [{"name": "n1", "has": "4 cpu"}],
    "queues": [{"name": "default"}],
    "jobs": [{"name": "job", "tasks": "2 x 1 cpu"}],
}


def test_a_pods_wait_is_counted_in_milliseconds_and_is_never_negative() -> None:
    metrics = Metrics()
    metrics.waited(0.25)
    metrics.waited(-0.4)  # the API reports the creation in whole seconds of its own clock
    assert lines(metrics, "volcano_task_scheduling_latency_milliseconds_sum")[0].endswith(" 250.0")
    assert lines(metrics, "volcano_task_scheduling_latency_milliseconds_count")[0].endswith(" 2.0")


def test_steps_are_counted_in_milliseconds_by_action_and_by_plugin() -> None:
    metrics = Metrics()
    metrics.cycle(0.01, Decisions(), [Lap("plugin", "gang", 0.002), Lap("action", "allocate", 0.003)])
    metrics.cycle(0.01, Decisions(), [Lap("action", "allocate", 0.004)])
    assert lines(metrics, "volcano_action_scheduling_latency_milliseconds_sum") == [
        'volcano_action_scheduling_latency_milliseconds_sum{action="allocate"} 7.0'
    ]
    assert lines(metrics, "volcano_action_scheduling_latency_milliseconds_count") == [
        'volcano_action_scheduling_latency_milliseconds_count{action="allocate"} 2.0'
    ]
    assert lines(metrics, "volcano_plugin_scheduling_latency_milliseconds_sum") == [
        'volcano_plugin_scheduling_latency_milliseconds_sum{OnSession="OnSessionOpen",plugin="gang"} 2.0'
    ]


def test_every_action_and_plugin_of_the_policy_is_measured_once_a_cycle() -> None:
    showing = MetricsSetup("capacity", SMALL)
    policy = showing.world.policy
    showing.cycle()
    showing.world.now += 1
    showing.cycle()  # nothing has changed, so nothing is decided anew
    actions = showing.values("volcano_action_scheduling_latency_milliseconds_count")
    assert actions == {f'{{action="{name}"}}': 1.0 for name in policy.actions}
    plugins = showing.values("volcano_plugin_scheduling_latency_milliseconds_count")
    names = [option.name for tier in policy.tiers for option in tier]
    assert plugins == {f'{{OnSession="OnSessionOpen",plugin="{name}"}}': 1.0 for name in names}


def test_a_preemption_is_counted_with_its_victims() -> None:
    showing = MetricsSetup(
        "plain-preempt",
        {
            "nodes": [{"name": "n1", "has": "4 cpu"}],
            "queues": [{"name": "default"}],
            "jobs": [
                {"name": "low", "tasks": "4 x 1 cpu running on n1", "min": 1, "priority": 1},
                {"name": "high", "tasks": "1 x 2 cpu", "priority": 9, "phase": "Inqueue"},
            ],
        },
    )
    assert showing.values("volcano_total_preemption_attempts") == {"": 0.0}
    assert len(showing.cycle().evictions) == 2
    assert showing.values("volcano_pod_preemption_victims") == {"": 2.0}
    assert showing.values("volcano_total_preemption_attempts") == {"": 1.0}
    assert showing.values("volcano_eviction_transactions_total") == {'{action="preempt"}': 1.0}
    assert showing.values("schedspec_evicted_to_requested_ratio_sum") == {"": 1.0}


def test_a_reclaim_is_counted_as_an_eviction_and_not_as_a_preemption() -> None:
    showing = MetricsSetup(
        "capacity",
        {
            "nodes": [{"name": "n1", "has": "4 cpu"}],
            "queues": [{"name": "a", "deserved": "1 cpu"}, {"name": "b", "deserved": "3 cpu"}],
            "jobs": [
                {"name": "taken", "queue": "a", "tasks": "4 x 1 cpu running on n1", "min": 1},
                {"name": "one", "queue": "b", "tasks": "1 x 1 cpu", "phase": "Inqueue"},
                {"name": "two", "queue": "b", "tasks": "1 x 1 cpu", "phase": "Inqueue"},
            ],
        },
    )
    assert len(showing.cycle().evictions) == 2
    assert showing.values("volcano_eviction_transactions_total") == {'{action="reclaim"}': 2.0}
    assert showing.values("volcano_total_preemption_attempts") == {"": 0.0}


def test_evicted_pods_are_counted_by_action() -> None:
    metrics = Metrics()
    for action in ("reclaim", "reclaim", "preempt"):
        metrics.evicted(action)
    assert lines(metrics, "schedspec_evicted_pods_total") == [
        'schedspec_evicted_pods_total{action="reclaim"} 2.0',
        'schedspec_evicted_pods_total{action="preempt"} 1.0',
    ]
