"""The cycle loop: wait for a change, decide, carry out the decisions, publish statuses and events.

The state does not change while a cycle decides; changes wait in the inbox of the feed.

A pod alone on an idle cluster takes the short path (docs/operating.md, Speed):

1. The change that completes a gang starts a cycle at once; any other change waits for `DEBOUNCE` first.
2. A cycle that is expected to be quick is decided on the event loop. Any other cycle is decided in a thread, so that
   watches are still read.
3. Binds are sent first. Metrics, statuses and events are built when the watch shows a bind, or after `_HEAD_START`.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import structlog

from ..framework.decisions import Decisions, Evict
from ..framework.work import Budget
from ..inputs import Assumed, Decided, Nominated
from ..kube.backoff import Backoff
from ..kube.clock import wall_time
from ..policy.model import Policy
from .metrics import Metrics
from .pace import Pace
from .policy_file import InForce
from .record import RunningRecord
from .state_feed import StateFeed, Urgency
from .status_builder import StatusBuilder
from .stopwatch import Stopwatch
from .turns import ITEMS_PER_TURN, Turns
from .writer import BINDS_IN_FLIGHT, Writer

log = logging.getLogger(__name__)

DEBOUNCE = 0.004
"""Seconds from a change to its cycle. The pods of a gang arrive a few ms apart."""
_IDLE = 0.02
"""Seconds without a cycle after which the change that completes a gang starts one at once."""
_QUICK = 0.004
"""CPU seconds, both measured and computed from its steps, that a cycle may take on the event loop."""
_HEAD_START = 0.02
"""Maximum wait in seconds after a few binds, before metrics, statuses and events are built; any input ends the wait.
The API server needs the CPU time meanwhile to notify all watches of the binds.
"""
LAZY = 0.05
"""Seconds from an expected change (a bound pod runs) to its cycle."""
LAZY_UNDER_LOAD = 1.0
"""The same while binds are in flight, because a cycle takes CPU time from the API server."""
PUBLISH_AT_LEAST_EVERY = 3.0
"""Seconds between two complete publications, under any load."""
_LONGEST_PAUSE = 1.0
_PAUSE_WHEN_CUT = 0.05
"""Maximum pause in seconds before a cycle that continues with the jobs that the last cycle left."""


class CycleLoop:
    """The cycle loop. It reads `policy` before each cycle; `pace` sets the budgets, from measurements by default."""

    def __init__(
        self,
        feed: StateFeed,
        writer: Writer,
        status_builder: StatusBuilder,
        *,
        policy: Callable[[], InForce],
        metrics: Metrics,
        record: RunningRecord | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.number = 0
        self.decided = 0
        """Number of cycles that produced decisions."""
        self._feed = feed
        self._writer = writer
        self._status_builder = status_builder
        self._policy = policy
        self._metrics = metrics
        self._record = record
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="decide")
        self._is_running = False
        self._is_deciding = False
        """Whether a cycle runs, or the last cycle failed."""
        self._due: float | None = None
        """Requested start of the next cycle, by the loop's clock."""
        self._not_before = 0.0
        self._lazy_not_before = 0.0
        self._no_cycle_while_evicting_before = 0.0
        """Like `_not_before`; applies only while victims terminate."""
        self._published = asyncio.get_running_loop().time()
        self._errors = Backoff(first=0.1, most=10.0)
        self._between: list[Callable[[], None]] = []
        self._pace = pace or Pace()
        self._ended = 0.0
        """When the last cycle ended, by the loop's clock."""
        self._applied = 0
        """Number of inputs that were applied to the state since the last cycle."""
        self._was_quick = False
        """Whether the last cycle could have been decided on the event loop."""
        self._watch = Stopwatch()
        """The stopwatch of the cycle that was started last."""

    @property
    def is_due(self) -> bool:
        """Whether a cycle is due, is running, or has failed."""
        now = asyncio.get_running_loop().time()
        is_requested = self._due is not None and now >= max(self._due, self._paused_until)
        return self._is_running and (self._is_deciding or is_requested)

    @property
    def trying(self) -> str:
        """Return the key of the job that the running cycle is trying; empty between attempts."""
        return self._watch.trying

    def request_cycle(self) -> None:
        """Request a cycle soon, even if the state did not change (for example for a new policy)."""
        self._request(DEBOUNCE)
        self._feed.inbox.arrived.set()

    def between_cycles(self, action: Callable[[], None]) -> None:
        """Call `action` between two cycles, with an up-to-date state."""
        self._between.append(action)
        self._feed.inbox.arrived.set()

    async def run(self) -> None:
        """Run cycles until cancelled."""
        await self._feed.synced()
        await self.apply_inbox()
        self._is_running = True
        self._request(0.0)
        loop = asyncio.get_running_loop()
        while True:
            at = self._due
            wait = None if at is None else max(max(at, self._paused_until) - loop.time(), 0.0)
            if wait != 0.0:
                await self._arrival(wait)
            self._request_after(await self.apply_inbox())
            while self._between:
                self._between.pop()()
            if self._due is not None and loop.time() >= max(self._due, self._paused_until):
                await self._cycle()

    @property
    def _paused_until(self) -> float:
        return max(self._not_before, self._no_cycle_while_evicting_before if self._writer.is_evicting else 0.0)

    async def _arrival(self, wait: float | None) -> None:
        try:
            async with asyncio.timeout(wait):
                await self._feed.inbox.arrived.wait()
        except TimeoutError:
            pass

    async def apply_inbox(self) -> Urgency:
        """Apply the inbox to the state and report the side effects. Return how soon a cycle should follow."""
        urgency, left = Urgency.NONE, len(self._feed.inbox)
        self._applied += left
        while True:
            intake = self._feed.empty(ITEMS_PER_TURN)
            for uid in intake.gone:
                self._writer.gone(uid)
            self._status_builder.report(intake)
            urgency, left = max(urgency, intake.urgency), left - ITEMS_PER_TURN
            if left <= 0:
                return urgency
            await asyncio.sleep(0)

    def _request_after(self, urgency: Urgency) -> None:
        is_idle = asyncio.get_running_loop().time() - self._ended > _IDLE
        if urgency is Urgency.NOW and is_idle:
            self._request(0.0)
        elif urgency >= Urgency.SOON:
            self._request(DEBOUNCE)
        elif urgency is Urgency.LAZY:
            wait = LAZY_UNDER_LOAD if self._writer.binds.pressing else LAZY
            self._request(max(wait, self._lazy_not_before - asyncio.get_running_loop().time()))

    def _request(self, seconds: float) -> None:
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
            self._record.before_cycle(self._feed.core, self._policy())
        started, now = loop.time(), wall_time()
        try:
            decisions, budget, watch = await self._decide(now)
        except Exception:  # a defect of the core must not stop watches and writes
            pause = self._errors.next()
            self._metrics.failed()
            log.exception("cycle %d failed, next cycle in %.1f s", self.number, pause)
            self._not_before = loop.time() + pause
            self._request(pause)
            return
        self._errors.reset()
        self._is_deciding = False
        self.decided += 1
        took = loop.time() - started
        self._pace.note(decisions.steps, watch.jobs)
        self._feed.apply(Decided(self.number, now, decisions, budget))
        await self._carry_out_all(decisions)
        many = self._writer.binds.pressing > BINDS_IN_FLIGHT
        self._set_pause(decisions, took, many=many)
        if decisions.binds and not many:
            await self._arrival(_HEAD_START)  # ends as soon as the watch shows a pod on its node
        self._metrics.cycle(took, decisions, watch.laps)
        is_late = loop.time() - self._published > PUBLISH_AT_LEAST_EVERY
        if is_late or not many:
            self._published = loop.time()
        await self._status_builder.publish(decisions, now, only_urgent=many and not is_late)
        if self._writer.binds.pressing:
            self._request(LAZY_UNDER_LOAD)  # publish what `only_urgent` left
        if self._status_builder.again_at is not None:
            self._request(max(self._status_builder.again_at - now, LAZY))
        if decisions.cut or self._feed.core.has_due(now):
            self._request(0.0)
        if decisions.wake_at is not None:
            self._request(max(decisions.wake_at - now, DEBOUNCE))
        log.log(
            logging.INFO if decisions.binds or decisions.evictions else logging.DEBUG,
            "decided %d binds, %d evictions, %d jobs wait, in %.1f ms",
            len(decisions.binds),
            len(decisions.evictions),
            len(decisions.refusals),
            took * 1000,
        )
        self._ended = loop.time()

    async def _decide(self, now: float) -> tuple[Decisions, Budget, Stopwatch]:
        """Decide on the event loop if the cycle turns out to be quick, else in a thread.

        On the event loop, the core gets a small budget. A cycle that exhausts the budget is discarded and decided again
        in the thread. This is safe, because the core does not change the state.
        """
        policy, applied = self._policy().policy, self._applied
        self._applied = 0
        if self._was_quick and applied <= ITEMS_PER_TURN:
            budget, watch = self._pace.budget_within(_QUICK), Stopwatch()
            decisions = self._decide_and_time(policy, now, budget, watch)
            if not decisions.cut and decisions.steps < budget.job:
                return decisions, budget, watch
            self._feed.core.forget_last_cycle()
        budget, watch = self._pace.budget, Stopwatch()
        work = partial(self._decide_and_time, policy, now, budget, watch)
        decisions = await asyncio.get_running_loop().run_in_executor(self._thread, work)
        return decisions, budget, watch

    def _decide_and_time(self, policy: Policy, now: float, budget: Budget, watch: Stopwatch) -> Decisions:
        """Decide, and record whether the cycle was quick. Runs in the thread or on the event loop."""
        self._was_quick = False
        self._watch = watch
        started = self._pace.cpu_seconds()
        decisions = self._feed.core.decide(policy, now, watch.step, budget=budget)
        within = decisions.steps < self._pace.budget_within(_QUICK).job and not decisions.cut
        self._was_quick = within and self._pace.cpu_seconds() - started <= _QUICK
        return decisions

    def _set_pause(self, decisions: Decisions, took: float, *, many: bool) -> None:
        """Set the pause before the next cycle.

        Cycles use at most half of the loop's time, so that a large state cannot starve the writes. They use a tenth
        while many binds are in flight, for expected changes, and while victims terminate after a cycle that decided
        nothing. Long and cut cycles use more: `_LONGEST_PAUSE` and `_PAUSE_WHEN_CUT` limit the pause.
        """
        now = asyncio.get_running_loop().time()
        only_waits = not decisions.binds and not decisions.evictions
        short, long = (now + min(took * ratio, _LONGEST_PAUSE) for ratio in (1, 9))
        self._lazy_not_before = long
        self._not_before = min(long if many else short, now + _PAUSE_WHEN_CUT if decisions.cut else math.inf)
        self._no_cycle_while_evicting_before = long if only_waits else short

    def _by_priority(self, evictions: list[Evict]) -> list[list[Evict]]:
        """Group victims into waves, the lowest job priority first."""
        waves: dict[int, list[Evict]] = {}
        for eviction in evictions:
            job = self._feed.cluster.jobs.get(eviction.job)
            waves.setdefault(job.priority if job is not None else 0, []).append(eviction)
        return [waves[priority] for priority in sorted(waves)]

    async def _carry_out_all(self, decisions: Decisions) -> None:
        """Pass on all decisions, even if this task is cancelled meanwhile, so that no gang is carried out in part.

        A few decisions fit into one turn of the event loop, within which nothing can cancel this task. They run without
        a separate task, which would delay a lone bind by two turns.
        """
        if len(decisions.binds) + len(decisions.evictions) + len(decisions.nominations) < ITEMS_PER_TURN:
            await self._carry_out(decisions)
            return
        work = asyncio.create_task(self._carry_out(decisions))
        try:
            await asyncio.shield(work)
        finally:
            await work

    async def _carry_out(self, decisions: Decisions) -> None:
        turns = Turns(ITEMS_PER_TURN)
        for bind in decisions.binds:
            self._feed.apply(Assumed(bind.task, bind.uid, bind.node, bind.annotations))
            self._writer.bind(bind)
            await turns.spent()
        for eviction in decisions.evictions:
            self._status_builder.evicting(eviction)
            self._feed.apply(Assumed(eviction.task, eviction.uid))
            await turns.spent()
        if decisions.evictions:
            self._writer.evict(self._by_priority(decisions.evictions))
        for nomination in decisions.nominations:
            self._feed.apply(Nominated(nomination.task, nomination.uid, nomination.node))
            await turns.spent()

    def close(self) -> None:
        self._thread.shutdown(wait=False)
