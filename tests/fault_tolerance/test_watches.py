"""Watches that are cut or silent, and expired resource versions: no change is missed."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.live.proxy import Answer, Call, Handling
from tests.support.live.target_cluster import TargetCluster

pytestmark = [pytest.mark.embedded, pytest.mark.faults]


@pytest.mark.deadline(90)
async def test_no_change_is_missed_although_watches_are_cut_every_200_ms(target: TargetCluster) -> None:
    async with target.scenario(nodes=4, cpu="8"):
        scheduler = target.start()
        await target.ready(scheduler)
        cuts = 0

        async def cut() -> None:
            nonlocal cuts
            while True:
                await asyncio.sleep(0.2)
                cuts += target.proxy.cut_watches()

        cutting = asyncio.create_task(cut())
        for i in range(8):
            before = cuts
            await target.gang(f"g{i}", 4)
            await target.history.until(lambda before=before: cuts > before, "watches are cut meanwhile")
        await target.bound(32)
        await target.history.until(lambda: cuts > 9, "watches are cut again and again")
        cutting.cancel()
        await asyncio.gather(cutting, return_exceptions=True)


@pytest.mark.deadline(60)
async def test_after_an_expired_version_a_new_list_shows_pods_deleted_meanwhile(target: TargetCluster) -> None:
    async with target.scenario(nodes=2, cpu="4"):
        scheduler = target.start()
        await target.ready(scheduler)
        await target.gang("old", 8)
        await target.bound(8)
        expired: set[str] = set()
        blocked, refused = True, 0

        def judge(call: Call) -> Handling:
            nonlocal refused
            if call.is_watch and call.path.endswith("/pods"):
                if blocked:
                    refused += 1
                    return Answer(503, "ServiceUnavailable")
                if call.path not in expired:
                    expired.add(call.path)
                    return Answer(410, "Expired", "too old resource version")
            return None

        target.proxy.judge = judge
        target.proxy.cut_watches()
        await target.gang("new", 6)
        for i in range(8):
            await target.delete_pod(f"old-0-{i}")
        await target.history.until(lambda: refused > 0, "the watch is reopened")
        blocked = False
        await target.history.until(lambda: len(target.history.bound("new-0")) == 6, "the new gang runs")
        assert expired


@pytest.mark.nightly
@pytest.mark.deadline(300)
async def test_a_watch_that_falls_silent_is_replaced_and_misses_nothing(target: TargetCluster) -> None:
    async with target.scenario(nodes=2, cpu="4"):
        scheduler = target.start()
        await target.ready(scheduler)
        await target.gang("before", 2)
        await target.bound(2)
        target.proxy.mute_watches()
        await target.gang("meanwhile", 2)
        await target.bound(4)
        assert "no event and no bookmark for 90 s; replaced by a new watch" in scheduler.log.read_text()
        scheduler.page("/readyz")
