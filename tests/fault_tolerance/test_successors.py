"""A pod is deleted and recreated under its name just before a write: the write never affects the new pod."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable
from typing import Any

import pytest

from schedspec.scheduler.kube import PODS, AlreadyExists, NotFound
from schedspec.scheduler.model.objects import Pod
from tests.support.live.api_objects import pod_body, queue
from tests.support.live.proxy import Call, Handling
from tests.support.live.target_cluster import NAMESPACE, TargetCluster

pytestmark = [pytest.mark.embedded, pytest.mark.faults]

QUEUES = [queue("a", deserved={"cpu": "2"}, reclaimable=True), queue("b", deserved={"cpu": "2"})]
VICTIM = re.compile(r"/pods/(a\d-0-0)\b")
BIND = Call(0, "POST", f"/api/v1/namespaces/{NAMESPACE}/pods/b-0-0/binding", "", b"")
WRITES: dict[str, Callable[[Call], bool]] = {
    "the bind": lambda call: call.is_bind and "/b-0-0/" in call.path,
    "the condition of the victim": lambda call: (
        call.method == "PATCH" and bool(VICTIM.search(call.path)) and call.path.endswith("/status")
    ),
    "the deletion of the victim": lambda call: call.method == "DELETE" and bool(VICTIM.search(call.path)),
}


async def _replace(target: TargetCluster, name: str) -> Pod:
    """Delete a pod at once, and create a pod of the same name for another scheduler."""
    with contextlib.suppress(NotFound):
        await target.delete_pod(name)
    body: dict[str, Any] = pod_body(name, "")
    del body["metadata"]["annotations"]
    body["spec"]["schedulerName"] = "another"
    while True:
        try:
            return await target.client.create(PODS, body, NAMESPACE)
        except AlreadyExists:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.deadline(60)
async def test_a_write_never_affects_a_new_pod_of_the_same_name(
    target: TargetCluster, write: Callable[[Call], bool]
) -> None:
    async with target.scenario(nodes=1, cpu="4", queues=QUEUES):
        successors: list[Pod] = []

        async def judge(call: Call) -> Handling:
            if write(call) and not successors:
                victim = VICTIM.search(call.path)
                successors.append(await _replace(target, victim[1] if victim else "b-0-0"))
            return None

        target.proxy.judge = judge
        scheduler = target.start()
        for i in range(2):
            await target.gang(f"a{i}", 1, "a", cpu="2")
        await target.bound(2)
        await target.gang("b", 1, "b", cpu="2")
        await target.history.until(lambda: bool(successors), "the pod is replaced before the write")
        if not write(BIND):
            await target.history.until(lambda: len(target.history.bound("b-0")) == 1, "the preemptor runs")
        await target.assert_settled()
        assert "eviction of" not in scheduler.log.read_text()
        [before] = successors
        after = await target.client.get(PODS, before.metadata.name, NAMESPACE)
        assert after.metadata.uid == before.metadata.uid
        assert after.metadata.deletion_timestamp is None
        assert after.spec.node_name == ""
        assert not [c for c in after.status.conditions or () if c.type == "DisruptionTarget"]
