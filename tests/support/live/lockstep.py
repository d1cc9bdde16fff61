"""Play a load on a live cluster in virtual time, one virtual instant after the other.

1. The scheduler decides nothing until its own state shows all changes that are due at an instant, as in the
   simulation. Watches deliver a burst in pieces, and a cycle between two pieces would decide on half of an arrival.
2. The scheduler runs one cycle after the other. A cycle begins when the state shows all effects of the last one: bound
   pods run, victims are deleted and recreated, phases are written. A cycle that decides nothing ends the instant.
3. The next instant begins: the next arrival, or the end of a gang whose run time is over.

So months fit into minutes, and the time of an instant does not depend on how busy the machine is. This module owns all
pods: it recreates an evicted pod and leaves the other pods of its gang running (`OnEviction.REPLACE`).
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.kube import PODGROUPS, PODS, Client
from schedspec.scheduler.live.loop import CycleLoop
from schedspec.scheduler.live.state_feed import StateFeed
from schedspec.scheduler.model.task import Task, TaskStatus
from schedspec.scheduler.recording.events import Decided, Input, ObjectSeen
from schedspec.virtual import Arrival, Workload
from tests.support.fake_server import SAFETY_NET, until
from tests.support.live.api_objects import Body, each, pod_body

END, ARRIVAL = 0, 1
"""The order of the events of one instant, as in the simulation."""


class HeldLoop(CycleLoop):
    """A cycle loop that applies changes at any time, but runs a cycle only when `one_cycle` requests it."""

    _is_held = True
    _ended_cycles = 0

    @property
    def _paused_until(self) -> float:
        return math.inf if self._is_held else super()._paused_until

    async def _cycle(self) -> None:
        self._is_held = True
        await super()._cycle()
        self._ended_cycles += 1

    async def one_cycle(self) -> None:
        before, self._is_held = self._ended_cycles, False
        self.request_cycle()
        await until(lambda: self._ended_cycles > before)


@dataclass
class Gang:
    """A workload on the cluster."""

    work: Workload
    clock: int = 0
    """Incremented when the gang starts or falls below its minimum, which voids an end that was planned before."""
    is_running: bool = False
    uids: set[str] = field(default_factory=set)


class Lockstep:
    """Play one load. Afterwards `evictions`, `starts`, `instants` and `shown` hold the result."""

    def __init__(self, client: Client, namespace: str, feed: StateFeed, cycles: HeldLoop) -> None:
        self._client, self._namespace, self._feed, self._cycles = client, namespace, feed, cycles
        self._record, feed.on_input = feed.on_input, self._on_input
        self._events: list[tuple[float, int, int, Callable[[], Coroutine[Any, Any, None]]]] = []
        self._planned = 0
        self._gangs: dict[str, Gang] = {}
        self._groups: dict[str, str] = {}
        """Job → uid of its PodGroup."""
        self._decided = Decided(0, 0.0, Decisions())
        self.now = 0.0
        self.shown: list[ObjectSeen] = []
        """Nodes, queues and priority classes, as the scheduler saw them before the load."""
        self.evictions: Counter[tuple[str, str]] = Counter()
        """Victim job and preemptor job → number of pods."""
        self.starts: list[tuple[str, int]] = []
        """Job and cycle of each start of a gang."""
        self.instants: list[tuple[float, int, int]] = []
        """Time, first and last cycle of each instant."""

    def _on_input(self, given: Input) -> None:
        if self._record is not None:
            self._record(given)
        if isinstance(given, Decided):
            self._decided = given
        elif isinstance(given, ObjectSeen) and not self.now:
            self.shown.append(given)

    async def play(self, load: Iterable[Arrival]) -> None:
        """Run the load to its end."""
        await self._cycles.one_cycle()
        for arrival in load:
            assert isinstance(arrival.item, Workload)
            self._at(arrival.at, ARRIVAL, partial(self._arrive, Gang(arrival.item)))
        while self._events:
            await self._instant()

    def _at(self, time: float, rank: int, action: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._planned += 1
        heapq.heappush(self._events, (time, rank, self._planned, action))

    async def _instant(self) -> None:
        self.now, first = self._events[0][0], self._decided.cycle + 1
        while self._events and self._events[0][0] == self.now:
            await heapq.heappop(self._events)[3]()
        while await self._step():
            pass
        self.instants.append((self.now, first, self._decided.cycle))

    async def _step(self) -> bool:
        """Run one cycle and wait for its effects. Return False if the cycle decided nothing."""
        await self._wait_until_shown()
        await self._cycles.one_cycle()
        decided = self._decided.decisions
        for eviction in decided.evictions:
            self.evictions[eviction.job, eviction.reason.preemptor] += 1
            self._gangs[eviction.job].uids.discard(eviction.uid)
        for job in dict.fromkeys(it.job for it in decided.evictions):
            self._break_if_short(self._gangs[job])
        await self._wait_until_shown()
        for eviction in decided.evictions:
            await self._make_pod(self._gangs[eviction.job], eviction.task.partition("/")[2])
        for job in dict.fromkeys(it.job for it in decided.binds):
            self._start_if_enough(self._gangs[job])
        return bool(decided.binds or decided.evictions or decided.cut)

    # ---------------------------------------------------------------------------------------------------------- writes

    async def _arrive(self, gang: Gang) -> None:
        work = gang.work
        self._gangs[work.key] = gang
        spec = {
            "minMember": work.minimum,
            "queue": work.queue,
            "priorityClassName": work.priority_class,
            "minResources": {"cpu": str(int(work.requests["cpu"]) * work.minimum)},
        }
        made = await self._client.create(PODGROUPS, {"metadata": {"name": work.name}, "spec": spec}, self._namespace)
        self._groups[work.key] = made.metadata.uid
        await each(range(work.pods), lambda index: self._make_pod(gang, f"{work.name}-{index}"), 8)

    async def _make_pod(self, gang: Gang, name: str) -> None:
        body: Body = pod_body(name, gang.work.name, gang.work.requests["cpu"])
        body["spec"]["priorityClassName"] = gang.work.priority_class
        made = await self._client.create(PODS, body, self._namespace)
        gang.uids.add(made.metadata.uid)

    async def _end(self, gang: Gang, clock: int) -> None:
        if gang.clock != clock:
            return
        del self._gangs[gang.work.key], self._groups[gang.work.key]
        names = [f"{gang.work.name}-{index}" for index in range(gang.work.pods)]
        await each(names, lambda name: self._client.delete(PODS, name, self._namespace, grace=0), 8)
        await self._client.delete(PODGROUPS, gang.work.name, self._namespace)

    # -------------------------------------------------------------------------------------------- effects in the state

    async def _wait_until_shown(self) -> None:
        """Wait until the state shows all writes, and all effects of the decisions."""
        try:
            await until(self._is_shown)
        except TimeoutError:
            seen = {key: (it.status, it.node, it.assumed) for key, it in self._feed.cluster.tasks.items()}
            raise AssertionError(f"not shown {SAFETY_NET:g} s after {self.now:g}: {seen}") from None

    def _is_shown(self) -> bool:
        cluster = self._feed.cluster
        groups = {key: it.group.metadata.uid for key, it in cluster.jobs.items() if it.group is not None}
        pods = {uid for gang in self._gangs.values() for uid in gang.uids}
        return (
            not len(self._feed.inbox)
            and groups == self._groups
            and {it.uid for it in cluster.tasks.values()} == pods
            and all(_is_settled(it) for it in cluster.tasks.values())
            and all(it.phase == self._decided.decisions.phases.get(key, it.phase) for key, it in cluster.jobs.items())
        )

    def _start_if_enough(self, gang: Gang) -> None:
        if gang.is_running or self._holding(gang) < gang.work.minimum:
            return
        gang.is_running, gang.clock = True, gang.clock + 1
        self.starts.append((gang.work.key, self._decided.cycle))
        self._at(self.now + gang.work.run_time, END, partial(self._end, gang, gang.clock))

    def _break_if_short(self, gang: Gang) -> None:
        if gang.is_running and self._holding(gang) < gang.work.minimum:
            gang.is_running, gang.clock = False, gang.clock + 1

    def _holding(self, gang: Gang) -> int:
        """Return how many pods of a gang have a node; victims do not count."""
        return sum(bool(it.node) for it in self._feed.cluster.tasks.values() if it.uid in gang.uids)


def _is_settled(task: Task) -> bool:
    return task.status is TaskStatus.RUNNING or (task.status is TaskStatus.PENDING and not task.assumed)
