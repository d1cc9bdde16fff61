"""Nodes and queues are deleted, and nodes cordoned, while gangs are placed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from schedspec.scheduler.kube import NODES, QUEUES, Resource
from tests.support.live.api_objects import queue
from tests.support.live.proxy import Call, Handling
from tests.support.live.target_cluster import TargetCluster

pytestmark = [pytest.mark.embedded, pytest.mark.faults]


def delete_at_first_bind(target: TargetCluster, resource: Resource[Any], name: str) -> asyncio.Event:
    """Delete an object at the first bind, before the bind is relayed. The returned event is set at that moment."""
    deleted = asyncio.Event()

    async def judge(call: Call) -> Handling:
        if call.is_bind and not deleted.is_set():
            deleted.set()
            await target.client.delete(resource, name)
        return None

    target.proxy.judge = judge
    return deleted


@pytest.mark.deadline(60)
async def test_a_node_is_deleted_while_a_gang_is_bound_to_it_and_gets_no_later_gang(target: TargetCluster) -> None:
    async with target.scenario(nodes=2, cpu="4"):
        deleted = delete_at_first_bind(target, NODES, "node-0")
        await target.gang("first", 8)
        scheduler = target.start()
        await deleted.wait()
        target.nodes.pop("node-0")
        await target.bound(8)
        for i in range(8):
            await target.delete_pod(f"first-0-{i}")
        await target.gang("second", 4)
        await target.history.until(lambda: len(target.history.bound("second-0")) == 4, "the second gang runs")
        assert {p.spec.node_name for p in target.history.gangs()["second-0"]} == {"node-1"}
        scheduler.page("/healthz")


@pytest.mark.deadline(60)
async def test_a_queue_is_deleted_while_its_gang_is_bound_and_the_gang_is_still_whole(target: TargetCluster) -> None:
    queues = [queue("deleted", deserved={"cpu": "8"}), queue("default", deserved={"cpu": "4"})]
    async with target.scenario(nodes=4, cpu="4", queues=queues):
        deleted = delete_at_first_bind(target, QUEUES, "deleted")
        await target.gang("g", 8, "deleted")
        await target.gang("late", 2, "deleted")
        scheduler = target.start()
        await deleted.wait()
        await target.history.until(
            lambda: len(target.history.bound("g-0")) in (0, 8), "the gang is bound as a whole or not at all"
        )
        await target.gang("other", 4, "default")
        await target.history.until(lambda: len(target.history.bound("other-0")) == 4, "the other gang runs")
        await target.assert_settled()
        assert len(target.history.bound("g-0")) == 8
        assert not target.history.evicting
        scheduler.page("/healthz")


@pytest.mark.deadline(60)
async def test_a_queue_is_deleted_while_its_gang_waits_and_other_gangs_still_start(target: TargetCluster) -> None:
    queues = [queue("deleted", deserved={"cpu": "4"}), queue("default", deserved={"cpu": "4"})]
    async with target.scenario(nodes=2, cpu="4", queues=queues):
        await target.gang("large", 20, "deleted")
        await target.ready(target.start())
        await target.client.delete(QUEUES, "deleted")
        await target.gang("orphan", 2, "deleted")
        await target.gang("other", 4, "default")
        await target.history.until(lambda: len(target.history.bound("other-0")) == 4, "the other gang runs")
        await target.assert_settled()
        assert target.history.bound("orphan-0") == []
        await target.client.create(QUEUES, queue("deleted", deserved={"cpu": "4"}))
        await target.history.until(
            lambda: len(target.history.bound("orphan-0")) == 2, "the gang runs, because its queue exists again"
        )


@pytest.mark.deadline(120)
async def test_gangs_run_although_half_of_the_nodes_are_cordoned_again_and_again(target: TargetCluster) -> None:
    async with target.scenario(nodes=8, cpu="4"):
        scheduler, turns = target.start(), 0

        async def flap() -> None:
            nonlocal turns
            while True:
                for i in range(4):
                    body = {"spec": {"unschedulable": turns % 2 == 0}}
                    await target.client.patch(NODES, f"node-{i}", body)
                turns += 1

        await target.ready(scheduler)
        flapping = asyncio.create_task(flap())
        for i in range(6):
            before = turns
            await target.gang(f"g{i}", 4)
            await target.history.until(lambda before=before: turns > before, "nodes flap meanwhile")
        await target.bound(24)
        flapping.cancel()
        await asyncio.gather(flapping, return_exceptions=True)
        await target.assert_settled()
        scheduler.page("/healthz")
