"""Two replicas: one schedules, the other takes over, and the first, when it thaws, writes nothing more."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from scheduler.live.leader import LEASES, NAME
from tests.support.fake_server import run
from tests.support.live.ground import Ground
from tests.support.live.scheduler_process import Scheduler

pytestmark = [pytest.mark.embedded, pytest.mark.faults]

LEASE = 4.0


def test_a_frozen_leader_is_replaced_within_its_lease_and_writes_nothing_when_it_thaws(ground: Ground) -> None:
    async def test() -> None:
        async with ground.scenario(nodes=4, cpu="8"):
            options = ("--leader-elect", "--lease-seconds", f"{LEASE:g}", "--lease-namespace", "default")
            first = ground.start(*options, "--identity", "first")
            await ground.history.until(lambda: True, 1, "")
            await ground.gang("one", 4)
            await ground.bound(4)
            async with ground.second_way() as (proxy, start):
                second: Scheduler = start(*options, "--identity", "second")
                await ground.ready(second)
                await asyncio.sleep(1.0)
                assert not [call for call in proxy.calls if call.is_write], (
                    "the second replica writes and does not lead"
                )
                os.kill(first.process.pid, signal.SIGSTOP)
                loop = asyncio.get_running_loop()
                frozen = loop.time()
                written = len([call for call in ground.proxy.calls if call.is_write])
                await ground.gang("two", 4)
                await ground.bound(8, seconds=LEASE + 6)
                took = loop.time() - frozen
                assert took <= LEASE + 2.5, f"taken over after {took:.1f} s"
                lease = await ground.client.get(LEASES, NAME, "default")
                assert lease.spec.holder_identity == "second"
                await ground.gang("three", 4)
                os.kill(first.process.pid, signal.SIGCONT)
                await ground.bound(12)
                await asyncio.to_thread(first.process.wait, 20)
                late = [c for c in ground.proxy.calls if c.is_write][written:]
                assert [f"{c.method} {c.path}" for c in late if "/leases" not in c.path] == []
                assert first.process.returncode == 1

    run(test, seconds=60)


def test_a_leader_that_is_told_to_stop_finishes_its_binds_and_hands_over_at_once(ground: Ground) -> None:
    async def test() -> None:
        async with ground.scenario(nodes=10, cpu="32"):
            options = ("--leader-elect", "--lease-seconds", "15", "--lease-namespace", "default")
            first = ground.start(*options)
            await ground.ready(first)
            await ground.history.until(first.leads, 20, "the first leads")
            second = ground.start(*options)
            await ground.ready(second)
            for i in range(20):
                await ground.gang(f"g{i}", 10)
            await ground.history.until(lambda: len(ground.history.bound()) > 0, 20, "binds are under way")
            status = await asyncio.to_thread(first.stop)
            assert status == 0
            loop = asyncio.get_running_loop()
            stopped = loop.time()
            await ground.bound(200)
            await ground.gang("next", 4)
            await ground.bound(204, seconds=8)
            assert loop.time() - stopped < 12, "the second waited for the lease to run out"

    run(test, seconds=60)
