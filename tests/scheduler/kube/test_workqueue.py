"""A key is processed once if it is added several times, never twice at a time, and again after a failure."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from schedspec.scheduler.kube import WorkQueue
from schedspec.scheduler.kube.errors import NotFound, ServerError, TooManyRequests
from tests.support.fake_server import (
    PROMPT,
    cancelled,
    until,
)


async def test_a_key_that_is_added_several_times_is_processed_once() -> None:
    done: list[str] = []
    queue = WorkQueue("test")
    for key in "aabab":
        queue.add(key)
    assert len(queue) == 2

    async def work(key: str) -> None:
        done.append(key)

    task = asyncio.create_task(queue.run(work))
    await until(lambda: len(done) == 2)
    queue.add("last")
    await until(lambda: "last" in done)
    assert sorted(done) == ["a", "b", "last"]
    await cancelled(task)


async def test_a_key_that_is_added_while_it_is_processed_is_processed_again() -> None:
    together = most = 0
    done: list[str] = []
    queue = WorkQueue("test")

    async def work(key: str) -> None:
        nonlocal together, most
        together += 1
        most = max(most, together)
        if not done:
            queue.add(key)
            queue.add(key)
        await asyncio.sleep(0)
        together -= 1
        done.append(key)

    queue.add("a")
    task = asyncio.create_task(queue.run(work))
    await until(lambda: len(done) == 2)
    queue.add("last")
    await until(lambda: "last" in done)
    assert (done, most) == (["a", "a", "last"], 1)
    await cancelled(task)


async def test_a_failed_key_is_retried_with_growing_backoff() -> None:
    times: list[float] = []
    queue = WorkQueue("test", first=0.02, most=1.0)

    async def work(key: str) -> None:
        times.append(asyncio.get_running_loop().time())
        if len(times) < 4:
            raise NotFound("GET /x", 404, "NotFound", "no") if len(times) % 2 else ValueError("bug")

    queue.add("a")
    task = asyncio.create_task(queue.run(work))
    await until(lambda: len(times) == 4)
    gaps = [b - a for a, b in pairwise(times)]
    assert gaps[0] >= 0.01
    assert gaps[2] >= 0.04
    assert queue.failures == 3
    await cancelled(task)


async def test_of_several_delays_the_earliest_counts() -> None:
    done: list[str] = []
    queue = WorkQueue("test")

    async def work(key: str) -> None:
        done.append(key)

    queue.add_after("a", 30.0)
    queue.add_after("a", 0.01)
    queue.add_after("a", 60.0)
    task = asyncio.create_task(queue.run(work))
    await until(lambda: done == ["a"])
    await cancelled(task)


async def test_a_namespace_whose_keys_hang_or_fail_does_not_delay_the_others() -> None:
    done, hung = [], []
    queue = WorkQueue("test")

    async def work(key: str) -> None:
        if key.startswith("hangs/"):
            hung.append(key)
            await asyncio.Event().wait()
        if key.startswith("fails/"):
            raise ServerError("PATCH /x", 500, "InternalError", "no")
        if key.startswith("waits/"):
            raise TooManyRequests("PATCH /x", 429, "", "no", 30.0)
        done.append(key)

    for i in range(50):
        for namespace in ("hangs", "fails", "waits"):
            queue.add(f"{namespace}/{i}")
    task = asyncio.create_task(queue.run(work))
    await until(lambda: bool(hung) and queue.failures > 1)
    for i in range(10):
        queue.add(f"good/{i}")
    await until(lambda: len(done) == 10, PROMPT)
    await cancelled(task)
