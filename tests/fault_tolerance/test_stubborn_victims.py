"""Victims ignore SIGTERM and have a grace period of decades: the preemptor does not wait for them."""

from __future__ import annotations

import pytest

from schedspec.scheduler.kube import PODGROUPS, PODS
from tests.support.live.api_objects import pod_body, queue
from tests.support.live.status_queries import (
    EVENTS,
    eventually,
)
from tests.support.live.target_cluster import NAMESPACE, TargetCluster

pytestmark = [pytest.mark.embedded, pytest.mark.faults]

QUEUES = [queue("a", deserved={"cpu": "1"}, reclaimable=True), queue("b", deserved={"cpu": "3"})]
DECADES = 10**9


async def _stubborn(target: TargetCluster, name: str) -> None:
    """Create a pod of queue a that, when it is deleted, runs until its grace period of decades ends."""
    group = {"metadata": {"name": name}, "spec": {"minMember": 1, "queue": "a", "minResources": {"cpu": "2"}}}
    await target.client.create(PODGROUPS, group, NAMESPACE)
    body = pod_body(f"{name}-0", name, "2")
    body["metadata"]["annotations"]["schedspec.dev/stop-after"] = f"{DECADES}s"
    body["spec"]["terminationGracePeriodSeconds"] = DECADES
    await target.client.create(PODS, body, NAMESPACE)


@pytest.mark.parametrize("after", ["another", "force"])
@pytest.mark.deadline(90)
async def test_a_preemptor_does_not_wait_for_victims_that_do_not_end(target: TargetCluster, after: str) -> None:
    async with target.scenario(nodes=1, cpu="4", queues=QUEUES):
        target.start("--longest-grace", "1", "--after-grace", after)
        for name in ("a0", "a1"):
            await _stubborn(target, name)
        await target.bound(2)
        await target.gang("b", 1, "b", cpu="2")
        if after == "force":
            await target.history.until(lambda: len(target.history.bound("b-0")) == 1, "the preemptor runs")
            assert len(target.history.evicting) == 1
            return
        await target.history.until(lambda: len(target.history.evicting) == 2, "another victim is chosen")

        async def is_reported() -> bool:
            return "EvictionOverdue" in {it.reason for it in (await target.client.list(EVENTS, NAMESPACE)).items}

        await eventually("an event about a victim that is overdue", is_reported)
