"""Binds that the API server refuses, throttles, cuts off or does not answer: every gang still runs."""

from __future__ import annotations

import time

import pytest

from tests.support.live.proxy import Answer, Call, Handling, Ignore, Lose
from tests.support.live.status_queries import events, eventually
from tests.support.live.target_cluster import NAMESPACE, TargetCluster

pytestmark = [pytest.mark.embedded, pytest.mark.faults]

ANSWERS: dict[str, Handling] = {
    "409 conflict": Answer(409, "Conflict"),
    "404 no such pod": Answer(404, "NotFound"),
    "429 slow down": Answer(429, "TooManyRequests", headers="Retry-After: 1\r\n"),
    "500 internal error": Answer(500, "InternalError"),
    "carried out, but the answer is lost": Lose(),
    "no answer at all": Ignore(),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.deadline(90)
async def test_all_gangs_run_although_a_third_of_the_binds_fail(target: TargetCluster, answer: Handling) -> None:
    async with target.scenario(nodes=3, cpu="4"):
        failed: set[str] = set()
        binds = 0

        def judge(call: Call) -> Handling:
            nonlocal binds
            if not call.is_bind or call.path in failed:
                return None
            binds += 1
            if binds % 3:
                return None
            failed.add(call.path)
            return answer

        target.proxy.judge = judge
        for i in range(3):
            await target.gang(f"g{i}", 4)
        target.start()
        await target.bound(12)
        await target.assert_settled()
        assert len(failed) >= 3
        assert not target.history.evicting


@pytest.mark.deadline(60)
async def test_a_bind_that_is_always_refused_is_retried_with_backoff_and_delays_no_other(target: TargetCluster) -> None:
    async with target.scenario(nodes=3, cpu="4"):
        refused: list[float] = []

        def judge(call: Call) -> Handling:
            if call.is_bind and "/bad-0-0/" in call.path:
                refused.append(time.monotonic())
                return Answer(403, "Forbidden")
            return None

        target.proxy.judge = judge
        await target.gang("bad", 1)
        await target.gang("good", 6)
        target.start()
        await target.bound(6)
        await target.history.until(lambda: len(refused) >= 7, "the bind is retried")
        assert refused[6] - refused[5] > 0.5  # pauses grow from 0.05 s by a factor of two, less a random part
        await target.gang("later", 3)
        await target.bound(9)

        async def is_reported() -> bool:
            return "FailedBinding" in await events(target.client, NAMESPACE, "Pod", "bad-0-0")

        await eventually("an event on the pod", is_reported)
        severity, message = (await events(target.client, NAMESPACE, "Pod", "bad-0-0"))["FailedBinding"]
        assert severity == "Warning"
        assert message.endswith("/pods/bad-0-0/binding: 403 Forbidden: injected by a test")
