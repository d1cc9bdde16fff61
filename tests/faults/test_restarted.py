"""Room that was freed for a gang is its own, whoever asks for it after a restart."""

from __future__ import annotations

import pytest

from scheduler.kube import PODGROUPS, PODS
from tests.support.fake_server import run
from tests.support.live.api_objects import pod_body, queue
from tests.support.live.ground import NAMESPACE, Ground

pytestmark = [pytest.mark.embedded, pytest.mark.faults]

QUEUES = [
    queue("a", deserved={"cpu": "1"}, reclaimable=True),
    queue("b", deserved={"cpu": "4"}),
    queue("first", deserved={"cpu": "4"}, priority=9),
]


def test_freed_room_goes_to_its_nominee_after_a_kill_and_not_to_whom_is_served_before_it(ground: Ground) -> None:
    async def test() -> None:
        async with ground.scenario(nodes=1, cpu="4", queues=QUEUES):
            for i in range(4):
                group = {"metadata": {"name": f"a-{i}"}, "spec": {"minMember": 1, "queue": "a"}}
                await ground.client.create(PODGROUPS, group, NAMESPACE)
                body = pod_body(f"a-{i}-0", f"a-{i}")
                body["metadata"]["annotations"]["schedspec.dev/stop-after"] = "4s"
                body["spec"]["terminationGracePeriodSeconds"] = 10
                await ground.client.create(PODS, body, NAMESPACE)
            scheduler = ground.start()
            await ground.bound(4)
            await ground.history.until(
                lambda: all(pod.status.phase == "Running" for pod in ground.history.pods.values()), 10, "all run"
            )
            await ground.gang("b", 3, "b")
            await ground.history.until(lambda: _nominated(ground) == 3, 10, "room is kept for the gang")
            assert len(ground.history.evicting) == 3
            scheduler.kill()
            ground.stopped(scheduler)
            await ground.gang("first", 3, "first")
            await ground.ready(ground.start())
            assert _nominated(ground) == 3
            await ground.history.until(lambda: len(ground.history.bound("b-0")) == 3, 20, "the nominee runs")
            await ground.rests()
            assert ground.history.bound("first-0") == []

    run(test, seconds=60)


def _nominated(ground: Ground) -> int:
    waiting = ground.history.gangs().get("b-0", [])
    return sum(pod.status.nominated_node_name == "node-0" for pod in waiting)
