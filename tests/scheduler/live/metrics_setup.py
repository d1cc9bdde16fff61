"""Run cycles of the core on a state in memory, and read the metrics that Prometheus would scrape."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import create_autospec

from schedspec.scheduler.decide import decide
from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.kube import EventRecorder
from schedspec.scheduler.live.inbox import Bound
from schedspec.scheduler.live.metrics import Metrics
from schedspec.scheduler.live.state_feed import Intake
from schedspec.scheduler.live.status_builder import StatusBuilder
from schedspec.scheduler.live.status_writer import StatusWriter
from schedspec.scheduler.live.stopwatch import Stopwatch
from tests.scheduler.live.test_state_feed import make_feed
from tests.support.core.events import policy_of
from tests.support.core.world import World


def lines(metrics: Metrics, start: str) -> list[str]:
    """Return the lines of a scrape that begin with `start`."""
    return [line for line in metrics.render().decode().splitlines() if line.startswith(start)]


class MetricsSetup:
    """A world whose cycles are measured and published. `policy` is a name in `tests/support/core/policies.yaml`."""

    def __init__(self, policy: str, table: dict[str, Any]) -> None:
        self.world = World(policy_of(policy))
        self.world.load(table)
        self.metrics = Metrics()
        self.feed = make_feed()
        self.feed.cluster = self.world.cluster
        self.status_builder = StatusBuilder(
            self.feed, create_autospec(StatusWriter), create_autospec(EventRecorder), self.metrics
        )

    def cycle(self) -> Decisions:
        """Decide, measure and publish, but do not carry out the decisions."""
        watch = Stopwatch()
        decisions = decide(self.world.cluster, self.world.policy, self.world.now, watch.step)
        self.metrics.cycle(0.001, decisions, watch.laps)
        self.feed.touched.update(self.world.cluster.jobs)
        asyncio.run(self.status_builder.publish(decisions, self.world.now))
        return decisions

    def bind(self, decisions: Decisions, *, at: float) -> None:
        """Report at time `at` that the API server made all binds, and let the pods run."""
        self.status_builder.report(Intake(outcomes=[Bound(bind, at) for bind in decisions.binds]))
        self.world.carry_out(decisions)

    def values(self, name: str) -> dict[str, float]:
        """Return the samples of exactly this metric: labels as text → value."""
        found = [line.removeprefix(name).rsplit(" ", 1) for line in lines(self.metrics, name)]
        return {labels: float(value) for labels, value in found if labels == "" or labels.startswith("{")}
