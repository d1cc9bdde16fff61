"""Watches that are cut, and versions that have expired: nothing is missed."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.fake_server import run
from tests.support.live.proxy import Answer, Call, Verdict
from tests.support.live.target_cluster import TargetCluster

pytestmark = [pytest.mark.embedded, pytest.mark.faults]


def test_watches_that_are_cut_every_200_ms_lose_nothing(target: TargetCluster) -> None:
    async def test() -> None:
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
                await target.gang(f"g{i}", 4)
                await asyncio.sleep(0.1)
            await target.bound(32, seconds=40)
            cutting.cancel()
            await asyncio.gather(cutting, return_exceptions=True)
            assert cuts > 9

    run(test, seconds=90)


def test_an_expired_version_is_listed_anew_and_what_went_meanwhile_is_noticed(target: TargetCluster) -> None:
    async def test() -> None:
        async with target.scenario(nodes=2, cpu="4"):
            scheduler = target.start()
            await target.ready(scheduler)
            await target.gang("old", 8)
            await target.bound(8)
            expired: set[str] = set()
            blocked = True

            def judge(call: Call) -> Verdict:
                if call.is_watch and call.path.endswith("/pods"):
                    if blocked:
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
            await asyncio.sleep(0.5)
            blocked = False
            await target.history.until(lambda: len(target.history.bound("new-0")) == 6, 30, "the new gang runs")
            assert expired

    run(test, seconds=60)
