"""Capacity that was freed for a gang stays reserved for the gang after a restart."""

from __future__ import annotations

import pytest

from schedspec.scheduler.kube import PODGROUPS, PODS
from tests.support.live.api_objects import pod_body, queue
from tests.support.live.target_cluster import NAMESPACE, TargetCluster

pytestmark = [pytest.mark.embedded, pytest.mark.faults]

QUEUES = [
    queue("a", deserved={"cpu": "1"}, reclaimable=True),
    queue("b", deserved={"cpu": "4"}),
    queue("first", deserved={"cpu": "4"}, priority=9),
]


@pytest.mark.deadline(60)
async def test_freed_capacity_goes_to_its_nominee_after_a_restart(
    target: TargetCluster,
) -> None:
    async with target.scenario(nodes=1, cpu="4", queues=QUEUES):
        for i in range(4):
            group = {"metadata": {"name": f"a-{i}"}, "spec": {"minMember": 1, "queue": "a"}}
            await target.client.create(PODGROUPS, group, NAMESPACE)
            body = pod_body(f"a-{i}-0", f"a-{i}")
            body["metadata"]["annotations"]["schedspec.dev/stop-after"] = "3600s"
            body["spec"]["terminationGracePeriodSeconds"] = 3600
            await target.client.create(PODS, body, NAMESPACE)
        scheduler = target.start()
        await target.bound(4)
        await target.history.until(
            lambda: all(pod.status.phase == "Running" for pod in target.history.pods.values()), "all run"
        )
        await target.gang("b", 3, "b")
        await target.history.until(lambda: _nominated(target) == 3, "capacity is reserved for the gang")
        assert len(target.history.evicting) == 3
        scheduler.kill()
        target.stopped(scheduler)
        await target.gang("first", 3, "first")
        await target.ready(target.start())
        assert _nominated(target) == 3
        for pod in [pod for pod in target.history.pods.values() if pod.metadata.uid in target.history.evicting]:
            await target.delete_pod(pod.metadata.name)
        await target.history.until(lambda: len(target.history.bound("b-0")) == 3, "the nominee runs")
        await target.assert_settled()
        assert target.history.bound("first-0") == []


def _nominated(target: TargetCluster) -> int:
    waiting = target.history.gangs().get("b-0", [])
    return sum(pod.status.nominated_node_name == "node-0" for pod in waiting)
