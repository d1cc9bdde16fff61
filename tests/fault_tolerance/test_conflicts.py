"""Conflicts (409) that have another cause than a changed uid: each write is repeated until it succeeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from schedspec.scheduler.controllers.runtime.objects import JOBS
from tests.fault_tolerance.test_bad_namespace import job
from tests.support.live.api_objects import queue
from tests.support.live.proxy import Answer, Call, Handling
from tests.support.live.target_cluster import NAMESPACE, TargetCluster

pytestmark = [pytest.mark.embedded, pytest.mark.faults]

CONFLICT = Answer(409, "Conflict", "the object has been modified")
TIMES = 5
"""Number of conflicts before a write of an object succeeds."""


def _status_of(plural: str) -> Callable[[Call], bool]:
    return lambda call: call.is_write and f"/{plural}/" in call.path and call.path.endswith("/status")


WRITES: dict[str, Callable[[Call], bool]] = {
    "PodGroup's status": _status_of("podgroups"),
    "Job's status": _status_of("jobs"),
    "Queue's status": _status_of("queues"),
    "pod's status": _status_of("pods"),
    "creation": lambda call: call.method == "POST" and call.path.endswith(("/pods", "/podgroups")),
    "bind": lambda call: call.is_bind,
    "deletion": lambda call: call.method == "DELETE" and "/pods/" in call.path,
}


def _running(target: TargetCluster) -> int:
    pods = target.history.pods.values()
    return sum(pod.metadata.name.startswith("j-main") and pod.status.phase == "Running" for pod in pods)


@pytest.mark.parametrize("selects", WRITES.values(), ids=WRITES)
@pytest.mark.deadline(90)
async def test_every_write_is_repeated_after_conflicts_until_it_succeeds(
    target: TargetCluster, selects: Callable[[Call], bool]
) -> None:
    """A Job reclaims the node of a gang while every write of one kind gets conflicts at first."""
    queues = [queue("a", deserved={"cpu": "1"}, reclaimable=True), queue("b", deserved={"cpu": "3"})]
    async with target.scenario(nodes=1, cpu="4", queues=queues):
        conflicts: Counter[tuple[str, str]] = Counter()

        def judge(call: Call) -> Handling:
            write = (call.method, call.path)
            if not selects(call) or conflicts[write] >= TIMES:
                return None
            conflicts[write] += 1
            return CONFLICT

        target.proxy.judge = judge
        await target.ready(target.start(controllers="podgroup,job,queue"))
        await target.gang("single", 1, "a", cpu="2")
        await target.bound(1)
        await target.gang("victim", 1, "a", cpu="2")
        await target.bound(2)
        body = job("j")
        spec = body["spec"]
        assert isinstance(spec, dict)
        spec["queue"] = "b"
        spec["tasks"][0]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
        await target.client.create(JOBS, body, NAMESPACE)
        await target.history.until(lambda: _running(target) == 3, "the Job of queue b runs")
        assert conflicts
        assert max(conflicts.values()) == TIMES
