"""Two replicas: one schedules, the other takes over, and the first, when it thaws, writes nothing more."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from scheduler.live.leader import LEASES, NAME
from tests.support.fake_server import run
from tests.support.live.scheduler_process import Scheduler
from tests.support.live.target_cluster import TargetCluster

pytestmark = [pytest.mark.embedded, pytest.mark.faults]

LEASE = 4.0


def test_a_frozen_leader_is_replaced_within_its_lease_and_writes_nothing_when_it_thaws(
    target: TargetCluster,
) -> None:
    async def test() -> None:
        async with target.scenario(nodes=4, cpu="8"):
            options = ("--leader-elect", "--lease-seconds", f"{LEASE:g}", "--lease-namespace", "default")
            first = target.start(*options, "--identity", "first")
            await target.history.until(lambda: True, 1, "")
            await target.gang("one", 4)
            await target.bound(4)
            async with target.second_way() as (proxy, start):
                second: Scheduler = start(*options, "--identity", "second")
                await target.ready(second)
                await asyncio.sleep(1.0)
                assert not [call for call in proxy.calls if call.is_write], (
                    "the second replica writes and does not lead"
                )
                os.kill(first.process.pid, signal.SIGSTOP)
                loop = asyncio.get_running_loop()
                frozen = loop.time()
                written = len([call for call in target.proxy.calls if call.is_write])
                await target.gang("two", 4)
                await target.bound(8, seconds=LEASE + 6)
                took = loop.time() - frozen
                assert took <= LEASE + 2.5, f"taken over after {took:.1f} s"
                lease = await target.client.get(LEASES, NAME, "default")
                assert lease.spec.holder_identity == "second"
                await target.gang("three", 4)
                os.kill(first.process.pid, signal.SIGCONT)
                await target.bound(12)
                await asyncio.to_thread(first.process.wait, 20)
                late = [c for c in target.proxy.calls if c.is_write][written:]
                assert [f"{c.method} {c.path}" for c in late if "/leases" not in c.path] == []
                assert first.process.returncode == 1

    run(test, seconds=60)


def test_a_leader_that_is_told_to_stop_finishes_its_binds_and_hands_over_at_once(target: TargetCluster) -> None:
    async def test() -> None:
        async with target.scenario(nodes=10, cpu="32"):
            options = ("--leader-elect", "--lease-seconds", "15", "--lease-namespace", "default")
            first = target.start(*options)
            await target.ready(first)
            await target.history.until(first.leads, 20, "the first leads")
            second = target.start(*options)
            await target.ready(second)
            for i in range(20):
                await target.gang(f"g{i}", 10)
            await target.history.until(lambda: len(target.history.bound()) > 0, 20, "binds are under way")
            status = await asyncio.to_thread(first.stop)
            assert status == 0
            loop = asyncio.get_running_loop()
            stopped = loop.time()
            await target.bound(200)
            await target.gang("next", 4)
            await target.bound(204, seconds=8)
            assert loop.time() - stopped < 12, "the second waited for the lease to run out"

    run(test, seconds=60)
