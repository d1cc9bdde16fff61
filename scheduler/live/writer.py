"""Carry out binds and evictions.

Every write is tried until its outcome is known. A refused write is reverted in the state (`Reverted`), after a pause
that grows with each refusal of the same pod; until then its capacity stays reserved. In the next cycle, all other jobs
come before that of a refused bind, so that a bind which is refused for ever starves nobody.

A write without an answer occupies no worker while it waits, so that writes of other namespaces continue.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from structlog.contextvars import bind_contextvars, get_contextvars

from ..framework.decisions import Bind, Evict
from ..inputs import Reverted
from ..kube import PODS, Client, Conflict, KubeError, NotFound, Patch, Resource
from ..kube.backoff import Again, Backoff, again_after
from ..kube.clock import wall_time
from ..kube.resource import Bare
from ..model.times import timestamp
from ..reasons import render_victim
from .inbox import Bound, Inbox, RefusedWrite
from .metrics import Metrics
from .turns import ITEMS_PER_TURN
from .write_queue import TerminatingPods, WaveBarrier, WorkerPool

log = logging.getLogger(__name__)

BINDS_IN_FLIGHT = 64
EVICTIONS_IN_FLIGHT = 32
_FORGET_AFTER = 10_000
_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", Bare, namespaced=False
)
_MAY_BIND = {"resourceAttributes": {"verb": "create", "resource": "pods", "subresource": "binding"}}
_LONGEST_WAIT = 1.0
"""Maximum seconds that a less urgent write waits for binds and evictions, and a wave of victims for the previous one.
"""
_CHECK_EVERY = 0.01
_TERMINATING_COUNTS_FOR = 2.0
"""Seconds for which terminating victims count as urgent. Other components end those pods, and they need the API server
more than we do.
"""


@dataclass(slots=True)
class _Victim:
    """A pod to evict, and the progress of its eviction."""

    decision: Evict
    barrier: WaveBarrier
    is_marked: bool = False


class Writer:
    """Carry out binds and evictions, and put the outcomes into the inbox.

    Args:
        client: A client with `once`: the writer itself retries.
        grace_of: Returns the grace period in seconds with which to delete a victim; None keeps the pod's own.
    """

    def __init__(
        self,
        client: Client,
        inbox: Inbox,
        metrics: Metrics,
        grace_of: Callable[[Evict], int | None] = lambda _: None,
    ) -> None:
        self.binds = WorkerPool(BINDS_IN_FLIGHT)
        self.evictions = WorkerPool(EVICTIONS_IN_FLIGHT)
        self._client = client
        self._inbox = inbox
        self._metrics = metrics
        self._grace_of = grace_of
        self._pauses: dict[str, Backoff] = {}
        self._terminating = TerminatingPods(_TERMINATING_COUNTS_FOR)
        self._waves = 0
        """Number of waves that wait for the previous wave."""

    def bind(self, decision: Bind) -> None:
        """Queue a bind."""
        self._put(self.binds, decision, partial(self._bind, decision), get_contextvars())

    def evict(self, waves: Iterable[Sequence[Evict]]) -> None:
        """Queue evictions in waves.

        Each victim gets a condition with the reason and is deleted. A wave starts when all victims of the previous wave
        have their condition, so that the least important pods terminate first.
        """
        left = deque(waves)
        self._waves += len(left)
        self._next_wave(left, get_contextvars())

    def _next_wave(self, waves: deque[Sequence[Evict]], cycle: Mapping[str, object]) -> None:
        if not waves:
            return
        wave = waves.popleft()
        self._waves -= 1
        barrier = WaveBarrier({decision.uid for decision in wave}, _LONGEST_WAIT, lambda: self._next_wave(waves, cycle))
        self._put_wave(deque(wave), barrier, cycle)

    def _put_wave(self, left: deque[Evict], barrier: WaveBarrier, cycle: Mapping[str, object]) -> None:
        for _ in range(min(len(left), ITEMS_PER_TURN)):
            decision = left.popleft()
            self._put(self.evictions, decision, partial(self._evict, _Victim(decision, barrier)), cycle)
        if left:
            asyncio.get_running_loop().call_soon(self._put_wave, left, barrier, cycle)

    def probe(self) -> None:
        """Queue a harmless request that every user may make, in turn with the binds.

        An answer proves that the API server works; writes without answers are then a problem of their namespaces.
        """
        self.binds.put("", self._probe)

    async def _probe(self) -> None:
        with contextlib.suppress(KubeError):
            await self._client.create(_ACCESS_REVIEWS, {"metadata": {}, "spec": _MAY_BIND})

    def gone(self, uid: str) -> None:
        """Record that a pod was deleted."""
        self._terminating.gone(uid)

    @property
    def is_evicting(self) -> bool:
        """Whether victims still wait for their condition, or terminate."""
        return self._waves > 0 or self.evictions.pressing > 0 or bool(self._terminating)

    @property
    def unfinished(self) -> int:
        """Return the number of writes without a verdict. A wave that has not started counts as one write."""
        return self._waves + len(self.binds) + len(self.evictions)

    async def finished(self) -> None:
        """Wait, without a limit, until each bind and each eviction had its first attempt.

        The caller sets a timeout. The next leader decides on the writes that have no verdict then.
        """
        while self._waves or self.binds.untried or self.evictions.untried:
            await asyncio.sleep(_CHECK_EVERY)

    async def urgent(self) -> None:
        """Wait until no urgent write is in flight, for a limited time: statuses may be late, but not missing.

        Writes of a namespace without answers are not waited for.
        """
        try:
            async with asyncio.timeout(_LONGEST_WAIT):
                while self._waves or self.binds.pressing or self.evictions.pressing:
                    await self.binds.settled()
                    await self.evictions.settled()
                    await asyncio.sleep(_CHECK_EVERY if self._waves else 0.0)
                await self._terminating.wait()
        except TimeoutError:
            pass

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.binds.run(), name="binds")
            group.create_task(self.evictions.run(), name="evictions")

    def _put(
        self,
        pool: WorkerPool,
        decision: Bind | Evict,
        attempt: Callable[[], Awaitable[None]],
        cycle: Mapping[str, object],
    ) -> None:
        """Queue an attempt. `cycle` is added to its log lines; it has the number of the cycle that decided."""
        namespace = decision.task.partition("/")[0]
        pool.put(namespace, partial(self._try, decision, attempt, Backoff(first=0.1, most=5.0), cycle))

    async def _try(
        self,
        decision: Bind | Evict,
        attempt: Callable[[], Awaitable[None]],
        backoff: Backoff,
        cycle: Mapping[str, object],
    ) -> Again | None:
        bind_contextvars(**cycle)
        try:
            await attempt()
        except KubeError as error:
            again = again_after(error, backoff)
            if again is None:
                self._refused(decision, error)
            else:
                log.info("no verdict yet: %s", error)
            return again
        except Exception as error:  # a defect that one pod triggers counts as a refusal
            log.exception("write refused after an unexpected error")
            self._refused(decision, KubeError(decision.task, f"unexpected error: {error!r}"))
        return None

    # ------------------------------------------------------------------------------------------------------------ binds

    async def _bind(self, decision: Bind) -> None:
        namespace, _, name = decision.task.partition("/")
        try:
            await self._client.bind(namespace, name, decision.uid, decision.node, decision.annotations)
        except Conflict:
            # the pod is bound, perhaps by us: an answer was lost and the bind was repeated, or the process restarted
            if not await self._is_bound(namespace, name, decision):
                raise
        self._pauses.pop(decision.uid, None)
        self._metrics.bound()
        self._inbox.put(Bound(decision, wall_time()))

    async def _is_bound(self, namespace: str, name: str, decision: Bind) -> bool:
        try:
            pod = await self._client.get(PODS, name, namespace)
        except KubeError:
            return False
        return pod.metadata.uid == decision.uid and pod.spec.node_name == decision.node

    # -------------------------------------------------------------------------------------------------------- evictions

    async def _evict(self, victim: _Victim) -> None:
        decision = victim.decision
        namespace, _, name = decision.task.partition("/")
        try:
            if not victim.is_marked:
                try:
                    await self._mark_as_victim(namespace, name, decision)
                finally:
                    victim.barrier.tried(decision.uid)
                victim.is_marked = True
                self._terminating.add(decision.uid)
            await self._client.delete(PODS, name, namespace, uid=decision.uid, grace=self._grace_of(decision))
        except NotFound:
            self.gone(decision.uid)  # the pod was deleted by another client: nothing is left to evict
        except Conflict:
            if await self._client.exists(PODS, name, namespace, decision.uid):
                raise  # the pod was not replaced by one of the same name: revert the eviction
            self.gone(decision.uid)
        self._pauses.pop(decision.uid, None)
        self._metrics.evicted(decision.reason.action)

    async def _mark_as_victim(self, namespace: str, name: str, decision: Evict) -> None:
        """Set the condition `DisruptionTarget` on a victim, for Job controllers (`podFailurePolicy`) and users."""
        now = timestamp(wall_time())
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": render_victim(decision.reason),
            "lastTransitionTime": now,
        }
        body = {"metadata": {"uid": decision.uid}, "status": {"conditions": [condition]}}
        await self._client.patch(PODS.bare, name, body, namespace, kind=Patch.STRATEGIC, sub="status")

    # --------------------------------------------------------------------------------------------------------- refusals

    def _refused(self, decision: Bind | Evict, error: KubeError) -> None:
        if len(self._pauses) > _FORGET_AFTER:
            self._pauses.clear()
        pause = self._pauses.setdefault(decision.uid, Backoff(first=0.05, most=10.0)).next()
        self.gone(decision.uid)
        kind = "bind" if isinstance(decision, Bind) else "eviction"
        log.warning("%s of %s refused, reverted in %.2f s: %s", kind, decision.task, pause, error)
        self._metrics.refused(kind)
        self._inbox.put(RefusedWrite(decision, error))
        loop = asyncio.get_running_loop()
        loop.call_later(pause, self._inbox.put, Reverted(decision.task, decision.uid))
