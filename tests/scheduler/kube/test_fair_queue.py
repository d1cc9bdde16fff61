"""Flows take turns, and no flow can keep the others from finding a worker."""

from __future__ import annotations

import asyncio
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.kube.fair_queue import FairQueue
from tests.support.fake_server import cancelled, run_until_complete, until


class Workers:
    """Workers that take all available items, and complete an item of a flow at each `finish`."""

    def __init__(self, queue: FairQueue[int]) -> None:
        self.queue = queue
        self.busy: Counter[str] = Counter()
        self.done: list[tuple[str, int]] = []
        self._finished = {flow: asyncio.Semaphore(0) for flow in "abcdefgh"}
        self._tasks = [asyncio.create_task(self._work()) for _ in range(queue.workers)]

    async def _work(self) -> None:
        while True:
            flow, item = await self.queue.take()
            self.busy[flow] += 1
            await self._finished[flow].acquire()
            self.busy[flow] -= 1
            self.done.append((flow, item))
            self.queue.done(flow)

    def finish(self, flow: str, count: int = 1) -> None:
        for _ in range(count):
            self._finished[flow].release()

    async def end(self) -> None:
        for task in self._tasks:
            await cancelled(task)


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_single_flow_has_its_maximum_and_later_flows_always_find_a_worker() -> None:
    workers = Workers(FairQueue(64))
    for item in range(200):
        workers.queue.put("a", item)
    await settled()
    assert workers.busy == {"a": 64}
    for flow in "bcd":  # their items never complete either
        for item in range(200):
            workers.queue.put(flow, item)
    await settled()
    assert min(workers.busy[flow] for flow in "bcd") >= 6
    workers.queue.put("e", 0)
    await settled()
    assert workers.busy["e"] == 1
    await workers.end()


async def test_flows_take_turns_and_each_keeps_its_order() -> None:
    queue: FairQueue[int] = FairQueue(1)
    for flow, count in (("a", 4), ("b", 2), ("c", 1)):
        for item in range(count):
            queue.put(flow, item)
    taken = []
    for _ in range(7):
        taken.append(await queue.take())
        queue.done(taken[-1][0])
    assert taken == [("a", 0), ("b", 0), ("c", 0), ("a", 1), ("b", 1), ("a", 2), ("a", 3)]


async def test_a_flow_that_is_held_waits_and_the_others_do_not() -> None:
    workers = Workers(FairQueue(4))
    workers.queue.hold("a", 0.2)
    for flow in "ab":
        workers.finish(flow)
        workers.queue.put(flow, 1)
    await settled()
    assert workers.done == [("b", 1)]
    started = asyncio.get_running_loop().time()
    await until(lambda: len(workers.done) == 2)
    assert asyncio.get_running_loop().time() - started >= 0.15
    await workers.end()


STEPS = st.lists(st.tuples(st.sampled_from(["put", "finish"]), st.sampled_from("abcdefgh")), max_size=120)


@given(st.integers(1, 12), STEPS)
def test_no_item_is_lost_and_no_worker_idles_that_a_flow_may_use(alone: int, steps: list[tuple[str, str]]) -> None:
    async def test() -> None:
        queue: FairQueue[int] = FairQueue(alone)
        workers = Workers(queue)
        wanted: list[tuple[str, int]] = []
        for number, (step, flow) in enumerate(steps):
            if step == "put":
                queue.put(flow, number)
                wanted.append((flow, number))
            elif workers.busy[flow]:
                workers.finish(flow)
            await settled()
            busy, free = workers.busy, queue.workers - workers.busy.total()
            assert free >= 0
            for one in "abcdefgh":
                waiting = sum(flow == one for flow, _ in wanted) - busy[one] - sum(f == one for f, _ in workers.done)
                assert not waiting or not free or (busy[one] and (free == 1 or busy[one] >= 2 * free))
        for flow in "abcdefgh":
            workers.finish(flow, len(steps))
        await until(lambda: len(workers.done) == len(wanted))
        for flow in "abcdefgh":
            assert [one for one in workers.done if one[0] == flow] == [one for one in wanted if one[0] == flow]
        await workers.end()

    run_until_complete(test)
