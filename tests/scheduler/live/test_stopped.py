"""After SIGTERM, the scheduler makes no new decision, and all earlier decisions reach the API server."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from tests.support.fake_server import SAFETY_NET
from tests.support.live.api_objects import queue
from tests.support.live.proxy import Call, Handling, Ignore
from tests.support.live.target_cluster import TargetCluster

pytestmark = pytest.mark.embedded

LEADING = ("--leader-elect", "--lease-namespace", "default")


@pytest.mark.deadline(60)
async def test_all_binds_of_a_gang_are_finished_even_if_answers_are_late(target: TargetCluster) -> None:
    async with target.scenario(nodes=2, cpu="8"):
        begun = asyncio.Event()
        relayed: list[str] = []

        async def judge(call: Call) -> Handling:
            if call.is_bind:
                begun.set()
                await asyncio.sleep(3.0)
                relayed.append(call.path)
            return None

        scheduler = target.start()
        await target.ready(scheduler)
        target.proxy.judge = judge
        await target.gang("g", 12)
        await begun.wait()
        assert relayed == []
        status = await asyncio.to_thread(scheduler.stop)
        assert len(relayed) == 12
        target.stopped(scheduler)
        assert status == 0
        await target.bound(12)


@pytest.mark.deadline(60)
async def test_started_evictions_are_finished_and_nothing_more_is_decided(target: TargetCluster) -> None:
    queues = [queue("a", deserved={"cpu": "4"}, reclaimable=True), queue("b", deserved={"cpu": "4"})]
    async with target.scenario(nodes=2, cpu="4", queues=queues):
        begun = asyncio.Event()

        async def judge(call: Call) -> Handling:
            if "/pods/a" in call.path and (call.method == "DELETE" or b"DisruptionTarget" in call.body):
                begun.set()
                await asyncio.sleep(0.5)
            return None

        scheduler = target.start()
        await target.ready(scheduler)
        for i in range(8):
            await target.gang(f"a{i}", 1, "a")
        await target.bound(8)
        target.proxy.judge = judge
        await target.gang("b", 4, "b")
        await begun.wait()
        assert not target.history.evicting
        status = await asyncio.to_thread(scheduler.stop)
        target.stopped(scheduler)
        assert status == 0
        await target.history.until(lambda: len(target.history.bound()) == 4, "four victims are deleted")
        assert len(target.history.evicting) == 4
        assert target.history.bound("b-0") == []


@pytest.mark.parametrize("options", [(), LEADING], ids=["alone", "leading"])
@pytest.mark.deadline(60)
async def test_a_scheduler_stops_even_while_the_api_server_is_silent(
    target: TargetCluster, options: tuple[str, ...]
) -> None:
    async with target.scenario(nodes=1, cpu="4"):
        scheduler = target.start(*options)
        await target.ready(scheduler)
        await target.gang("g", 2)
        await target.bound(2)
        target.proxy.judge = lambda _: Ignore()
        status = await asyncio.to_thread(scheduler.stop)
        target.stopped(scheduler)
        assert status == 0


@pytest.mark.deadline(60)
async def test_log_lines_are_json_and_decisions_have_the_number_of_their_cycle(target: TargetCluster) -> None:
    async with target.scenario(nodes=1, cpu="4"):
        scheduler = target.start("--log-level", "debug", *LEADING, controllers="all")
        await target.ready(scheduler)
        await target.gang("g", 2)
        await target.bound(2)
        await target.gang("h", 1)
        await target.bound(3)
        scheduler.change_policy("actions: 7\n")
        await target.history.until(lambda: json.loads(scheduler.page("/policy"))["error"], "the policy is refused")
        scheduler.process.terminate()
        assert await asyncio.to_thread(scheduler.process.wait, SAFETY_NET) == 0
        lines = [json.loads(line) for line in scheduler.log.read_text().splitlines()]
        assert all({"message", "level", "logger", "timestamp"} <= line.keys() for line in lines)
        decided = [line["cycle"] for line in lines if line["message"].startswith("decided ")]
        assert decided == sorted(set(decided))
        binding = [line["cycle"] for line in lines if re.match(r"decided [1-9]\d* binds", line["message"])]
        assert len(binding) >= 2
        assert any(line["level"] == "error" and "policy refused" in line["message"] for line in lines)
