"""What Prometheus gets to read of cycles on a state that is kept in memory: the core and the shell's metrics, nothing
in between.
"""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import create_autospec

from scheduler.decide import decide
from scheduler.framework.decisions import Decisions
from scheduler.kube import EventRecorder
from scheduler.live.inbox import Bound
from scheduler.live.metrics import Metrics
from scheduler.live.state_feed import Intake
from scheduler.live.status_builder import StatusBuilder
from scheduler.live.status_writer import StatusWriter
from scheduler.live.stopwatch import Stopwatch
from tests.scheduler.live.test_state_feed import make_feed
from tests.support.core.events import policy_of
from tests.support.core.world import World


def lines(metrics: Metrics, start: str) -> list[str]:
    """The samples whose name begins so, as a scrape gets them."""
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
        """Decide, measure and publish; nothing is carried out."""
        watch = Stopwatch()
        decisions = decide(self.world.cluster, self.world.policy, self.world.now, watch.step)
        self.metrics.cycle(0.001, decisions, watch.laps)
        self.feed.touched.update(self.world.cluster.jobs)
        asyncio.run(self.status_builder.publish(decisions, self.world.now))
        return decisions

    def bind(self, decisions: Decisions, *, at: float) -> None:
        """The API server binds what was decided, at a time, and the pods run."""
        self.status_builder.report(Intake(outcomes=[Bound(bind, at) for bind in decisions.binds]))
        self.world.carry_out(decisions)

    def values(self, name: str) -> dict[str, float]:
        """The samples of exactly this metric: labels as they are written → value."""
        found = [line.removeprefix(name).rsplit(" ", 1) for line in lines(self.metrics, name)]
        return {labels: float(value) for labels, value in found if labels == "" or labels.startswith("{")}
