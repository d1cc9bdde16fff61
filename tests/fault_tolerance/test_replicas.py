"""Two replicas: one schedules, the other takes over, and the first writes nothing when it resumes."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from schedspec.scheduler.live.leader import LEASES, NAME
from tests.support.fake_server import SAFETY_NET
from tests.support.live.busy import busy
from tests.support.live.scheduler_process import Scheduler
from tests.support.live.target_cluster import TargetCluster

pytestmark = [pytest.mark.embedded, pytest.mark.faults]

LEASE = 15.0


@pytest.mark.deadline(60)
async def test_a_frozen_leader_is_replaced_in_time_and_writes_nothing_when_it_resumes(
    target: TargetCluster,
) -> None:
    async with target.scenario(nodes=4, cpu="8"):
        options = ("--leader-elect", "--lease-seconds", f"{LEASE:g}", "--lease-namespace", "default")
        first = target.start(*options, "--identity", "first")
        await target.gang("one", 4)
        await target.bound(4)
        async with target.second_proxy() as (proxy, start):
            second: Scheduler = await asyncio.to_thread(start, *options, "--identity", "second")
            await target.ready(second)
            await target.assert_settled()
            assert not [call for call in proxy.calls if call.is_write], (
                "the second replica writes, although it does not lead"
            )
            os.kill(first.process.pid, signal.SIGSTOP)
            loop = asyncio.get_running_loop()
            frozen = loop.time()
            written = len([call for call in target.proxy.calls if call.is_write])
            await target.gang("two", 4)
            async with busy() as times:
                await target.bound(8)
            took, limit = loop.time() - frozen, LEASE + 2.5 * max(times)
            assert took <= limit, f"taken over after {took:.1f} s; {limit:.1f} s are allowed"
            lease = await target.client.get(LEASES, NAME, "default")
            assert lease.spec.holder_identity == "second"
            await target.gang("three", 4)
            os.kill(first.process.pid, signal.SIGCONT)
            await target.bound(12)
            await asyncio.to_thread(first.process.wait, SAFETY_NET)
            late = [c for c in target.proxy.calls if c.is_write][written:]
            assert [f"{c.method} {c.path}" for c in late if "/leases" not in c.path] == []
            assert first.process.returncode == 1


@pytest.mark.deadline(60)
async def test_a_leader_that_stops_finishes_its_binds_and_releases_the_lease(target: TargetCluster) -> None:
    async with target.scenario(nodes=10, cpu="32"):
        options = ("--leader-elect", "--lease-seconds", "15", "--lease-namespace", "default")
        first = target.start(*options)
        await target.ready(first)
        await target.history.until(first.leads, "the first replica leads")
        second = await asyncio.to_thread(target.start, *options)  # in a thread, because the proxy needs this event loop
        await target.ready(second)
        for i in range(20):
            await target.gang(f"g{i}", 10)
        await target.history.until(lambda: len(target.history.bound()) > 0, "binds are under way")
        holder = (await target.client.get(LEASES, NAME, "default")).spec.holder_identity
        status = await asyncio.to_thread(first.stop)
        assert status == 0
        lease = await target.client.get(LEASES, NAME, "default")
        assert lease.spec.holder_identity != holder, "the second replica has to wait until the lease expires"
        await target.bound(200)
        await target.gang("next", 4)
        await target.bound(204)
