"""Binds and evictions on their way to the API server.

The one rule: every write that was decided is carried on until its outcome is known, and what the API refuses is given
back to the state as Reverted, after a pause that grows with each refusal of the same pod; meanwhile its room stays
taken. A write that has no answer yet waits outside of the workers, so that those of other namespaces go on. Nothing
is ever decided here.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from structlog.contextvars import bind_contextvars, get_contextvars

from ..framework.decisions import Bind, Evict
from ..kube import PODS, Client, Conflict, KubeError, NotFound, Patch, Resource
from ..kube.attempts import Again, again_after
from ..kube.backoff import Backoff
from ..kube.resource import Bare
from ..model.times import timestamp
from ..reasons import render_victim
from ..recording.events import Reverted
from .inbox import Bound, Inbox, Refused
from .metrics import Metrics
from .turns import SLICE
from .write_queue import TerminatingPods, WaveBarrier, WorkerPool

log = logging.getLogger(__name__)

BINDS_IN_FLIGHT = 64
EVICTIONS_IN_FLIGHT = 32
_FORGET_AFTER = 10_000
_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", Bare, namespaced=False
)
_MAY_I = {"resourceAttributes": {"verb": "create", "resource": "pods", "subresource": "binding"}}
_LATEST = 1.0
"""Seconds that a less urgent write waits for binds and evictions, at most; and a wave of victims for the one before."""
_LEAVE_WITHIN = 2.0
"""Seconds for which victims that are on their way out count as urgent work of others: who ends them needs the API
server more than we do.
"""


@dataclass(slots=True)
class _Victim:
    """One that is to go, and how far it has come."""

    decision: Evict
    barrier: WaveBarrier
    is_told: bool = False


class Writer:
    """Carries out binds and evictions, and puts what became of them into the inbox. ``client`` is one that tries
    ``once``.
    """

    def __init__(self, client: Client, inbox: Inbox, metrics: Metrics) -> None:
        self.binds = WorkerPool(BINDS_IN_FLIGHT)
        self.evictions = WorkerPool(EVICTIONS_IN_FLIGHT)
        self._client = client
        self._inbox = inbox
        self._metrics = metrics
        self._pauses: dict[str, Backoff] = {}
        self._leaving = TerminatingPods(_LEAVE_WITHIN)
        self._waves = 0
        """How many wait for the one before."""

    def bind(self, decision: Bind) -> None:
        """Put the pod onto its node, soon."""
        self._put(self.binds, decision, partial(self._bind, decision), get_contextvars())

    def evict(self, waves: Iterable[Sequence[Evict]]) -> None:
        """Tell each pod why it has to go, and delete it, soon. A wave begins when the one before it has been told:
        who watches sees the least important leave first.
        """
        left = deque(waves)
        self._waves += len(left)
        self._next_wave(left, get_contextvars())

    def _next_wave(self, waves: deque[Sequence[Evict]], cycle: Mapping[str, object]) -> None:
        if not waves:
            return
        wave = waves.popleft()
        self._waves -= 1
        barrier = WaveBarrier({decision.uid for decision in wave}, _LATEST, lambda: self._next_wave(waves, cycle))
        self._put_wave(deque(wave), barrier, cycle)

    def _put_wave(self, left: deque[Evict], barrier: WaveBarrier, cycle: Mapping[str, object]) -> None:
        for _ in range(min(len(left), SLICE)):
            decision = left.popleft()
            self._put(self.evictions, decision, partial(self._evict, _Victim(decision, barrier)), cycle)
        if left:
            asyncio.get_running_loop().call_soon(self._put_wave, left, barrier, cycle)

    def probe(self) -> None:
        """Ask the API server for what it grants to everybody and what changes nothing, in turn with the binds: where
        this is answered, what has no answer is a matter of its namespace.
        """
        self.binds.put("", self._probe)

    async def _probe(self) -> None:
        with contextlib.suppress(KubeError):
            await self._client.create(_ACCESS_REVIEWS, {"metadata": {}, "spec": _MAY_I})

    def gone(self, uid: str) -> None:
        """A pod is gone."""
        self._leaving.gone(uid)

    @property
    def is_evicting(self) -> bool:
        """Whether victims have to be told yet, or are on their way out."""
        return self._waves > 0 or self.evictions.pressing > 0 or bool(self._leaving)

    @property
    def unfinished(self) -> int:
        """How many writes have no verdict yet."""
        return self._waves + len(self.binds) + len(self.evictions)

    async def finished(self) -> None:
        """Wait until each bind and each eviction has had its first attempt; what has no verdict then is left to whoever
        decides next.
        """
        while self._waves or self.binds.pressing or self.evictions.pressing:
            await self.binds.calm()
            await self.evictions.calm()
            await asyncio.sleep(0.01 if self._waves else 0.0)

    async def urgent(self) -> None:
        """Wait until nothing urgent is under way; under a load that never ends, for a while only: statuses may be late,
        not missing.
        """
        try:
            async with asyncio.timeout(_LATEST):
                await self.finished()
                await self._leaving.wait()
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
        """``cycle`` is what is logged beside all that comes of it: the number of the cycle that decided."""
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
        except Exception as error:  # a bug met on one pod: give it back as if it were refused
            log.exception("a write failed in an unforeseen way")
            self._refused(decision, KubeError(decision.task, f"failed in an unforeseen way: {error!r}"))
        return None

    # ------------------------------------------------------------------------------------------------------------ binds

    async def _bind(self, decision: Bind) -> None:
        namespace, _, name = decision.task.partition("/")
        try:
            await self._client.bind(namespace, name, decision.uid, decision.node)
        except Conflict:
            # bound already, perhaps by us: an answer was lost and the bind repeated, or we were restarted
            if not await self._is_bound(namespace, name, decision):
                raise
        self._pauses.pop(decision.uid, None)
        self._metrics.bound()
        self._inbox.put(Bound(decision, time.time()))

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
            if not victim.is_told:
                try:
                    await self._mark_as_victim(namespace, name, decision)
                finally:
                    victim.barrier.tried(decision.uid)
                victim.is_told = True
                self._leaving.add(decision.uid)
            await self._client.delete(PODS, name, namespace, uid=decision.uid)
        except (NotFound, Conflict):
            self.gone(decision.uid)  # by itself, or another pod has its name now: there is nothing left to evict
        self._pauses.pop(decision.uid, None)
        self._metrics.evicted(decision.reason.action)

    async def _mark_as_victim(self, namespace: str, name: str, decision: Evict) -> None:
        """Volcano's conditions on a victim: who reads them are the Job controllers (``podFailurePolicy``) and
        people.
        """
        now = timestamp(time.time())
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
        log.warning("%s of %s refused, given back in %.2f s: %s", kind, decision.task, pause, error)
        self._metrics.refused(kind)
        self._inbox.put(Refused(decision, error))
        loop = asyncio.get_running_loop()
        loop.call_later(pause, self._inbox.put, Reverted(decision.task, decision.uid))
