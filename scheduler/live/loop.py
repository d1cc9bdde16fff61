"""The loop: wait for a change, decide, hand the decisions on.

The one rule: while a cycle decides (in a thread, so that watches are read on), nothing changes the state; what
arrives waits in the feed's inbox.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import structlog

from ..decide import decide
from ..framework.decisions import Decisions, Evict
from ..kube.backoff import Backoff
from ..recording.events import Assumed, Decided, Nominated
from .metrics import Metrics
from .pace import Pace
from .policy_file import InForce
from .record import RunningRecord
from .state_feed import StateFeed, Urgency
from .status_builder import StatusBuilder
from .stopwatch import Stopwatch
from .turns import SLICE, Turns
from .writer import BINDS_IN_FLIGHT, Writer

log = logging.getLogger(__name__)

DEBOUNCE = 0.004
"""Seconds from a change to its cycle: a gang's pods come a few ms apart."""
LAZY = 0.05
"""Seconds from a change that was expected (a bound pod runs) to its cycle."""
LAZY_UNDER_LOAD = 1.0
"""The same while binds are on their way: every ms of ours is taken from the API server's."""
PUBLISH_AT_LEAST_EVERY = 3.0
"""Seconds between two publications of all that changed, under any load."""
_LONGEST_REST = 1.0
_REST_WHEN_CUT = 0.05
"""The longest rest before a cycle that goes on with what the last one left."""


class CycleLoop:
    """The cycle loop. ``policy`` is asked before each cycle."""

    def __init__(
        self,
        feed: StateFeed,
        writer: Writer,
        status_builder: StatusBuilder,
        *,
        policy: Callable[[], InForce],
        metrics: Metrics,
        record: RunningRecord | None = None,
    ) -> None:
        self.number = 0
        self.decided = 0
        """How many cycles have come to decisions."""
        self._feed = feed
        self._writer = writer
        self._publication = status_builder
        self._policy = policy
        self._metrics = metrics
        self._record = record
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="decide")
        self._is_running = False
        self._is_deciding = False
        """Or would be, had the last cycle not failed."""
        self._due: float | None = None
        """When the next cycle is wanted, by the loop's clock."""
        self._not_before = 0.0
        self._lazy_not_before = 0.0
        self._patient_until = 0.0
        """As ``_not_before``, for as long as victims leave."""
        self._published = asyncio.get_running_loop().time()
        self._errors = Backoff(first=0.1, most=10.0)
        self._between: list[Callable[[], None]] = []
        self._pace = Pace()

    @property
    def is_due(self) -> bool:
        """Whether a cycle is wanted now, or under way, or failed."""
        now = asyncio.get_running_loop().time()
        is_wanted = self._due is not None and now >= max(self._due, self._rests_until)
        return self._is_running and (self._is_deciding or is_wanted)

    def want(self) -> None:
        """Have a cycle soon, whether or not something changed (a new policy, say)."""
        self._want(DEBOUNCE)
        self._feed.inbox.arrived.set()

    def between_cycles(self, action: Callable[[], None]) -> None:
        """Call ``action`` when no cycle runs and the state is up to date."""
        self._between.append(action)
        self._feed.inbox.arrived.set()

    async def run(self) -> None:
        """Cycle until cancelled."""
        await self._feed.synced()
        await self.take_in()
        self._is_running = True
        self._want(0.0)
        loop = asyncio.get_running_loop()
        while True:
            at = self._due
            wait = None if at is None else max(max(at, self._rests_until) - loop.time(), 0.0)
            if wait != 0.0:
                await self._arrival(wait)
            self._want_after(await self.take_in())
            while self._between:
                self._between.pop()()
            if self._due is not None and loop.time() >= max(self._due, self._rests_until):
                await self._cycle()

    @property
    def _rests_until(self) -> float:
        return max(self._not_before, self._patient_until if self._writer.is_evicting else 0.0)

    async def _arrival(self, wait: float | None) -> None:
        try:
            async with asyncio.timeout(wait):
                await self._feed.inbox.arrived.wait()
        except TimeoutError:
            pass

    async def take_in(self) -> Urgency:
        """Bring the state up to date, and hand on what that tells others; how soon a cycle should follow."""
        urgency, left = Urgency.NONE, len(self._feed.inbox)
        while True:
            intake = self._feed.empty(SLICE)
            for uid in intake.gone:
                self._writer.gone(uid)
            self._publication.tell(intake)
            urgency, left = max(urgency, intake.urgency), left - SLICE
            if left <= 0:
                return urgency
            await asyncio.sleep(0)

    def _want_after(self, urgency: Urgency) -> None:
        if urgency is Urgency.SOON:
            self._want(DEBOUNCE)
        elif urgency is Urgency.LAZY:
            wait = LAZY_UNDER_LOAD if self._writer.binds.pressing else LAZY
            self._want(max(wait, self._lazy_not_before - asyncio.get_running_loop().time()))

    def _want(self, seconds: float) -> None:
        at = asyncio.get_running_loop().time() + seconds
        self._due = at if self._due is None else min(self._due, at)

    # ------------------------------------------------------------------------------------------------------- one cycle

    async def _cycle(self) -> None:
        loop = asyncio.get_running_loop()
        self.number += 1
        self._due = None
        self._is_deciding = True
        structlog.contextvars.bind_contextvars(cycle=self.number)
        if self._record is not None:
            self._record.before_cycle(self._feed.cluster, self._policy())
        started, now, watch = loop.time(), time.time(), Stopwatch()
        cluster, policy, budget = self._feed.cluster, self._policy().policy, self._pace.budget
        try:
            asked = partial(decide, cluster, policy, now, watch.step, budget=budget)
            decisions = await loop.run_in_executor(self._thread, asked)
        except Exception:  # a defect of the core: keep the watches and the writes going, and try again
            pause = self._errors.next()
            self._metrics.failed()
            log.exception("cycle %d failed, the next in %.1f s", self.number, pause)
            self._not_before = loop.time() + pause
            self._want(pause)
            return
        self._errors.reset()
        self._is_deciding = False
        self.decided += 1
        took = loop.time() - started
        self._metrics.cycle(took, decisions, watch.laps)
        self._pace.note(decisions.steps, watch.jobs)
        self._feed.apply(Decided(self.number, now, decisions, budget))
        await self._carry_out_whole(decisions)
        many = self._writer.binds.pressing > BINDS_IN_FLIGHT
        self._rest(decisions, took, many=many)
        if not many:
            # a session is some 450 objects in a ring with its plugins: what of it grows old in the collector's eyes
            # stays for hours
            gc.collect(0)
        is_late = loop.time() - self._published > PUBLISH_AT_LEAST_EVERY
        if is_late or not many:
            self._published = loop.time()
        await self._publication.publish(decisions, now, only_urgent=many and not is_late)
        if self._writer.binds.pressing:
            self._want(LAZY_UNDER_LOAD)  # what is not published yet
        if self._publication.again_at is not None:
            self._want(max(self._publication.again_at - now, LAZY))
        if decisions.cut or cluster.backlog.has_due(now):
            self._want(0.0)
        if decisions.wake_at is not None:
            self._want(max(decisions.wake_at - now, DEBOUNCE))
        log.log(
            logging.INFO if decisions.binds or decisions.evictions else logging.DEBUG,
            "decided %d binds, %d evictions, %d jobs wait, in %.1f ms",
            len(decisions.binds),
            len(decisions.evictions),
            len(decisions.refusals),
            took * 1000,
        )

    def _rest(self, decisions: Decisions, took: float, *, many: bool) -> None:
        """At most half of the time goes into cycles, so that a large state cannot starve the writes; a tenth while many
        binds are under way, while victims leave, one after the other, and there is nothing else to decide, and for
        what was expected.
        """
        now = asyncio.get_running_loop().time()
        only_waits = not decisions.binds and not decisions.evictions
        short, long = (now + min(took * rests, _LONGEST_REST) for rests in (1, 9))
        self._lazy_not_before = long
        self._not_before = min(long if many else short, now + _REST_WHEN_CUT if decisions.cut else math.inf)
        self._patient_until = long if only_waits else short

    def _by_priority(self, evictions: list[Evict]) -> list[list[Evict]]:
        """The victims in waves: those of the lowest job priority first."""
        waves: dict[int, list[Evict]] = {}
        for eviction in evictions:
            job = self._feed.cluster.jobs.get(eviction.job)
            waves.setdefault(job.priority if job is not None else 0, []).append(eviction)
        return [waves[priority] for priority in sorted(waves)]

    async def _carry_out_whole(self, decisions: Decisions) -> None:
        """Hand on all that was decided, even where this task is told to end meanwhile: no gang is left at a half."""
        work = asyncio.create_task(self._carry_out(decisions))
        try:
            await asyncio.shield(work)
        finally:
            await work

    async def _carry_out(self, decisions: Decisions) -> None:
        turns = Turns(SLICE)
        for bind in decisions.binds:
            self._feed.apply(Assumed(bind.task, bind.uid, bind.node))
            self._writer.bind(bind)
            await turns.spent()
        for eviction in decisions.evictions:
            self._publication.evicting(eviction)
            self._feed.apply(Assumed(eviction.task, eviction.uid))
            await turns.spent()
        if decisions.evictions:
            self._writer.evict(self._by_priority(decisions.evictions))
        for nomination in decisions.nominations:
            self._feed.apply(Nominated(nomination.task, nomination.uid, nomination.node))
            await turns.spent()

    def close(self) -> None:
        self._thread.shutdown(wait=False)
