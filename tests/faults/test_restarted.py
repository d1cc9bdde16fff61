"""Room that was freed for a gang is its own, whoever asks for it after a restart."""

from __future__ import annotations

import pytest

from scheduler.kube import PODGROUPS, PODS
from tests.support.fake_server import run
from tests.support.live.api_objects import pod_body, queue
from tests.support.live.target_cluster import NAMESPACE, TargetCluster

pytestmark = [pytest.mark.embedded, pytest.mark.faults]

QUEUES = [
    queue("a", deserved={"cpu": "1"}, reclaimable=True),
    queue("b", deserved={"cpu": "4"}),
    queue("first", deserved={"cpu": "4"}, priority=9),
]


def test_freed_room_goes_to_its_nominee_after_a_kill_and_not_to_whom_is_served_before_it(
    target: TargetCluster,
) -> None:
    async def test() -> None:
        async with target.scenario(nodes=1, cpu="4", queues=QUEUES):
            for i in range(4):
                group = {"metadata": {"name": f"a-{i}"}, "spec": {"minMember": 1, "queue": "a"}}
                await target.client.create(PODGROUPS, group, NAMESPACE)
                body = pod_body(f"a-{i}-0", f"a-{i}")
                body["metadata"]["annotations"]["schedspec.dev/stop-after"] = "4s"
                body["spec"]["terminationGracePeriodSeconds"] = 10
                await target.client.create(PODS, body, NAMESPACE)
            scheduler = target.start()
            await target.bound(4)
            await target.history.until(
                lambda: all(pod.status.phase == "Running" for pod in target.history.pods.values()), 10, "all run"
            )
            await target.gang("b", 3, "b")
            await target.history.until(lambda: _nominated(target) == 3, 10, "room is kept for the gang")
            assert len(target.history.evicting) == 3
            scheduler.kill()
            target.stopped(scheduler)
            await target.gang("first", 3, "first")
            await target.ready(target.start())
            assert _nominated(target) == 3
            await target.history.until(lambda: len(target.history.bound("b-0")) == 3, 20, "the nominee runs")
            await target.rests()
            assert target.history.bound("first-0") == []

    run(test, seconds=60)


def _nominated(target: TargetCluster) -> int:
    waiting = target.history.gangs().get("b-0", [])
    return sum(pod.status.nominated_node_name == "node-0" for pod in waiting)
