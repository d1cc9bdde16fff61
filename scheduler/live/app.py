"""One scheduler process: its parts, put together, started and stopped.

The one rule: a part that ends unasked ends the process. Whoever runs it starts it again, and a start loses nothing:
everything that matters is in the API server.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..kube import NORMAL, WARNING, Client, Connection, EventRecorder, Http, connect
from ..model.cluster import Cluster
from ..model.objects import ObjectMeta
from .endpoints import Endpoints
from .leader import LEASES, Leader, leader_of
from .leader import NAME as LEASE_NAME
from .loop import CycleLoop
from .metrics import Metrics
from .options import Options
from .policy_file import InForce, PolicyFile
from .progress import LONGEST, TICK, Progress, Strand
from .record import RunningRecord, write_cycle
from .state_feed import StateFeed
from .status_builder import StatusBuilder
from .status_writer import StatusWriter
from .writer import Writer

if TYPE_CHECKING:
    from ..controllers import Context

log = logging.getLogger(__name__)

COMPONENT = "schedspec"
_IN_FLIGHT = 320
"""Requests at a time, more than all the queues before it let through together: who waits, waits there, in turns."""
_FINISH_WRITES = 10.0
_FINISH_STATUSES = 2.0
_PROBE_EVERY = LONGEST / 4
"""Seconds without an answer to any write after which one of our own is tried."""


class App:
    """Everything that one process has. Made inside of a running event loop."""

    def __init__(self, options: Options, policy: PolicyFile) -> None:
        self.options = options
        self.policy = policy
        connection = connect(options.kubeconfig, options.context)
        self.metrics = Metrics()
        self.leader = self._leader(connection)
        may_write = self.leader.may_write if self.leader is not None else lambda: True
        self.http = Http(connection, _IN_FLIGHT, agent=f"{COMPONENT}-scheduler", may_write=may_write)
        self.client = Client(self.http, once=True, scope=options.scope)
        self.record = RunningRecord(options.record, options.record_bytes) if options.record is not None else None
        cluster = Cluster(options.scheduler_names, options.node_selector)
        self.feed = StateFeed(cluster, self.client, on_input=self.record.add if self.record is not None else None)
        self.writer = Writer(self.client, self.feed.inbox, self.metrics)
        self.events = EventRecorder(self.client, options.scheduler_names[0], urgent=self.writer.urgent)
        self.status_writer = StatusWriter(self.client, self.writer.urgent)
        self.status_builder = StatusBuilder(self.feed, self.status_writer, self.events, self.metrics)
        self.cycles = CycleLoop(
            self.feed,
            self.writer,
            self.status_builder,
            policy=self._policy_in_force,
            metrics=self.metrics,
            record=self.record,
        )
        self._writes: Strand | None = None
        self.progress = self._expectations()
        self.pages = Endpoints(self.feed, policy, self.metrics, self.progress)
        if options.controllers and not options.leader_elect:  # a replica that does not lead runs none
            self.pages.unlisted = lambda: ["the controllers have not begun"]
        self.stopping = asyncio.Event()
        self._broken = False
        self._tasks: list[asyncio.Task[Any]] = []

    def _policy_in_force(self) -> InForce:
        self.policy.look()
        return self.policy.current

    def _leader(self, connection: Connection) -> Leader | None:
        return leader_of(self.options, connection, LEASE_NAME)

    def _expectations(self) -> Progress:
        """What has to get on: cycles that are due; and, where our Lease shows that the API server answers, writes."""
        progress = Progress()
        progress.expect(Strand("no cycle has ended", lambda: self.cycles.is_due, lambda: self.cycles.decided))
        if (leader := self.leader) is not None:
            self._writes = progress.expect(
                Strand(
                    "no write of any namespace has been answered, though our Lease is,",
                    lambda: bool(self.writer.unfinished) and leader.is_answered and leader.may_write(),
                    lambda: self.http.writes_answered,
                )
            )
        self.metrics.progress(lambda: progress.age)
        return progress

    # ------------------------------------------------------------------------------------------------------------ life

    async def run(self) -> int:
        """Live until told to stop (0), deposed or broken (1)."""
        self._listen_to_signals()
        self._start(self.feed.run(), "watches")
        self._start(self._keep_watch(), "progress")
        if self.options.policy is not None:
            self._start(self.policy.run(), "policy file")
        stopped = asyncio.create_task(self.stopping.wait(), name="stop")
        lead = asyncio.create_task(self._lead(), name="lead")
        try:
            await asyncio.wait({stopped, lead}, return_when=asyncio.FIRST_COMPLETED)
            if lead.done():
                self._ended(lead)
            await self._finish(deciding=lead)
            return 1 if self._broken else 0
        finally:
            for task in (stopped, lead, *self._tasks):
                task.cancel()
            await asyncio.gather(stopped, lead, *self._tasks, return_exceptions=True)
            self.cycles.close()
            if self.record is not None:
                self.record.close()
            await self.http.close()
            if self.leader is not None:
                await self.leader.close()

    async def _lead(self) -> None:
        """Decide and write for as long as this replica leads; returns when it no longer does."""
        if self.leader is not None:
            await self._stand_by(self.leader)
        self.metrics.leads(True)
        for work, name in (
            (self.writer.run(), "writer"),
            (self.status_writer.run(), "statuses"),
            (self.events.run(), "events"),
        ):
            self._start(work, name)
        await self.feed.synced()
        gc.freeze()  # what was listed stays: the collector need not look at it in every round
        async with asyncio.TaskGroup() as group:
            group.create_task(self.cycles.run(), name="cycles")
            self._start_controllers(group)
            if self.leader is not None:
                await self.leader.hold()
                raise LeadershipLost("the lease was lost")

    async def _stand_by(self, leader: Leader) -> None:
        """Wait for the lease, with a state that is kept up to date meanwhile: a take-over begins with a cycle, not
        with lists.
        """
        elected = asyncio.create_task(leader.elected(), name="election")
        try:
            while not elected.done():
                await self.cycles.take_in()
                await asyncio.wait({elected}, timeout=0.1)
            elected.result()
        finally:
            elected.cancel()

    def _start_controllers(self, group: asyncio.TaskGroup) -> None:
        if not self.options.controllers:
            return
        from ..controllers import run_controllers  # noqa: PLC0415 - not loaded where none runs

        work = run_controllers(
            self.client,
            self.events,
            self.options.controllers,
            scheduler_names=self.options.scheduler_names,
            queue_command_namespace=self.options.queue_command_namespace,
            node_selector=self.options.node_selector,
            reflectors=self.feed.reflectors,
            tell=self._hear_of_controllers,
        )
        group.create_task(work, name="controllers")

    async def _finish(self, deciding: asyncio.Task[None]) -> None:
        """Decide nothing more, let what was decided reach the API server, give the lease up; at once where nothing
        gets on any more.
        """
        deciding.cancel()
        await asyncio.gather(deciding, return_exceptions=True)
        if self.leader is not None and self.progress.trouble:
            await self.leader.release()
            return
        for what, wait, seconds in (
            ("binds and evictions", self.writer.finished(), _FINISH_WRITES),
            ("statuses", self.status_writer.drain(), _FINISH_STATUSES),
            ("events", self.events.drain(), _FINISH_STATUSES),
        ):
            try:
                async with asyncio.timeout(seconds):
                    await wait
            except TimeoutError:
                log.warning("%s left unwritten after %g s", what, seconds)
        if self.leader is not None:
            await self.leader.release()

    def _start(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled():
            log.error("%s ended, and so does this process", task.get_name(), exc_info=task.exception())
            self._broken = True
            self.stopping.set()

    async def _keep_watch(self) -> None:
        """See that all gets on; returns when something does not."""
        probed = 0.0
        while not self.progress.trouble:
            self.progress.tick()
            unanswered = self._writes.age if self._writes is not None else 0.0
            probed = min(probed, unanswered)
            if unanswered - probed > _PROBE_EVERY:
                probed = unanswered
                self.writer.probe()
            self.metrics.requests(self.http.throttled, self.events.dropped)
            await asyncio.sleep(TICK)
        log.error("no progress: %s; giving up", self.progress.trouble)

    # --------------------------------------------------------------------------------------------------------- signals

    def _listen_to_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        loop.add_signal_handler(signal.SIGUSR2, self.cycles.between_cycles, self._write_cycle_record)

    def _write_cycle_record(self) -> None:
        """The state as it is and what would be decided on it now, as a file of its own."""
        parent = self.options.record or Path.cwd()
        write_cycle(parent, self.cycles.number, time.time(), self.feed.cluster, self.policy.current)

    # ---------------------------------------------------------------------------------------------------------- telling

    def _hear_of_controllers(self, context: Context) -> None:
        self.pages.unlisted = context.unlisted

    def on_policy(self, current: InForce) -> None:
        """A policy file was loaded or refused: say so where people look, and decide by the new one."""
        about = ObjectMeta(name=LEASE_NAME, namespace=self.options.lease_namespace)  # as other components' own events
        if current.error:
            self.metrics.policy("refused")
            self.events.event(LEASES, about, WARNING, "PolicyRefused", f"the old one stays: {current.error}")
        else:
            self.metrics.policy("loaded")
            message = f"{current.path}, sha256 {current.sha256}, is in force"
            self.events.event(LEASES, about, NORMAL, "PolicyLoaded", message)
            self.cycles.want()


class LeadershipLost(Exception):  # noqa: N818 - as the errors of the API
    """Another replica leads, or may lead."""
