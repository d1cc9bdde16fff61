"""Watches that are cut, and versions that have expired: nothing is missed."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.fake_server import run
from tests.support.live.ground import Ground
from tests.support.live.proxy import Answer, Call, Verdict

pytestmark = [pytest.mark.embedded, pytest.mark.faults]


def test_watches_that_are_cut_every_200_ms_lose_nothing(ground: Ground) -> None:
    async def test() -> None:
        async with ground.scenario(nodes=4, cpu="8"):
            scheduler = ground.start()
            await ground.ready(scheduler)
            cuts = 0

            async def cut() -> None:
                nonlocal cuts
                while True:
                    await asyncio.sleep(0.2)
                    cuts += ground.proxy.cut_watches()

            cutting = asyncio.create_task(cut())
            for i in range(8):
                await ground.gang(f"g{i}", 4)
                await asyncio.sleep(0.1)
            await ground.bound(32, seconds=40)
            cutting.cancel()
            await asyncio.gather(cutting, return_exceptions=True)
            assert cuts > 9

    run(test, seconds=90)


def test_an_expired_version_is_listed_anew_and_what_went_meanwhile_is_noticed(ground: Ground) -> None:
    async def test() -> None:
        async with ground.scenario(nodes=2, cpu="4"):
            scheduler = ground.start()
            await ground.ready(scheduler)
            await ground.gang("old", 8)
            await ground.bound(8)
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

            ground.proxy.judge = judge
            ground.proxy.cut_watches()
            await ground.gang("new", 6)
            for i in range(8):
                await ground.delete_pod(f"old-0-{i}")
            await asyncio.sleep(0.5)
            blocked = False
            await ground.history.until(lambda: len(ground.history.bound("new-0")) == 6, 30, "the new gang runs")
            assert expired

    run(test, seconds=60)
