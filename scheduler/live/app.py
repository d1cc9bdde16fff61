"""Assemble, start and stop the parts of one scheduler process.

A part that ends unexpectedly ends the process. A supervisor restarts the process; a restart loses nothing, because all
lasting state is in the API server.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import time
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..framework.decisions import Evict
from ..kube import NORMAL, PODGROUPS, WARNING, Client, Connection, EventRecorder, Http, KubeError, Patch, connect
from ..model.cluster import Cluster
from ..model.names import TOO_COSTLY
from ..model.objects import ObjectMeta
from . import statuses
from .leader import LEASES, Leader, leader_of
from .leader import NAME as LEASE_NAME
from .loop import CycleLoop
from .metrics import Metrics
from .options import Options
from .policy_file import InForce, PolicyFile
from .progress import LONGEST, TICK, Expectation, Progress
from .record import RunningRecord, write_cycle
from .server import METRICS, Answer, Endpoint, Query, data, text
from .state_feed import StateFeed
from .status_builder import StatusBuilder
from .status_writer import StatusWriter
from .writer import Writer

if TYPE_CHECKING:
    from ..controllers import Context


class Endpoints:
    """The HTTP endpoints of the process. They only read: they run in the server's thread, apart from the event loop.

    `unlisted` returns why the controllers are not ready, one line per reason.
    """

    def __init__(self, feed: StateFeed, policy: PolicyFile, metrics: Metrics, progress: Progress) -> None:
        self.unlisted: Callable[[], list[str]] = list
        self._feed = feed
        self._policy = policy
        self._metrics = metrics
        self._progress = progress

    def by_path(self) -> Mapping[str, Endpoint]:
        return {
            "/healthz": self.healthz,
            "/readyz": self.readyz,
            "/metrics": self.metrics,
            "/policy": self.policy,
        }

    def healthz(self, _: Query) -> Answer:
        """Return 200 while the process makes progress, else 503 with the reason."""
        trouble = self._progress.trouble
        return text(503, trouble) if trouble else text(200, "ok")

    def readyz(self, _: Query) -> Answer:
        """Return 200 if every watch has listed and none is silent for too long, else 503 with the reasons."""
        unready = [reflector.unready for reflector in self._feed.reflectors]
        waiting = [reason for reason in unready if reason] + self.unlisted()
        return text(503, "\n".join(waiting)) if waiting else text(200, "ok")

    def policy(self, _: Query) -> Answer:
        current = self._policy.current
        fields = {"path": current.path, "sha256": current.sha256, "error": current.error}
        return data(fields | {"refused_sha256": current.refused_sha256})

    def metrics(self, query: Query) -> Answer:
        """Return all metrics, or those named by `name[]`, as Prometheus clients request them."""
        return 200, METRICS, self._metrics.render(query.get("name[]", ()))


log = logging.getLogger(__name__)

COMPONENT = "schedspec"
_IN_FLIGHT = 320
"""Maximum number of requests in flight. It exceeds the summed limits of the fair queues, so that requests wait in those
queues and not here.
"""
_FINISH_WRITES, _FINISH_STATUSES = 10.0, 2.0
"""Seconds that a stopping process waits for its writes: binds and evictions; statuses and events."""
_PROBE_EVERY = LONGEST / 4
"""Seconds without an answer to any write before each probe (`Writer.probe`)."""


class App:
    """The parts of one process. Create it inside a running event loop."""

    def __init__(self, options: Options, policy: PolicyFile) -> None:
        self.options = options
        self.policy = policy
        connection = connect(options.kubeconfig, options.context)
        self.metrics = Metrics()
        self.leader = self._new_leader(connection)
        may_write = self.leader.may_write if self.leader is not None else lambda: True
        self.http = Http(connection, _IN_FLIGHT, agent=f"{COMPONENT}-scheduler", may_write=may_write)
        self.client = Client(self.http, once=True, scope=options.scope)
        self.record = RunningRecord(options.record, options.record_bytes) if options.record is not None else None
        cluster = Cluster(options.scheduler_names, options.node_selector)
        on_input = self.record.add if self.record is not None else None
        self.feed = StateFeed(cluster, self.client, on_input=on_input, grace=options.grace)
        self.writer = Writer(self.client, self.feed.inbox, self.metrics, self._grace_of)
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
        self._writes: Expectation | None = None
        self.progress = self._expected_progress()
        self.endpoints = Endpoints(self.feed, policy, self.metrics, self.progress)
        if options.controllers and not options.leader_elect:  # a standby replica is ready without its controllers
            self.endpoints.unlisted = lambda: ["the controllers have not started"]
        self.stopping = asyncio.Event()
        self._broken = False
        self._tasks: list[asyncio.Task[Any]] = []

    def _policy_in_force(self) -> InForce:
        self.policy.reload_if_changed()
        return self.policy.current

    def _grace_of(self, eviction: Evict) -> int | None:
        task = self.feed.cluster.tasks.get(eviction.task)
        return None if task is None else self.options.grace.of_eviction(task.pod)

    def _new_leader(self, connection: Connection) -> Leader | None:
        return leader_of(self.options, connection, LEASE_NAME)

    def _expected_progress(self) -> Progress:
        """Return the checks that cycles and writes make progress.

        Writes are checked only with leader election, while the API server answers requests for our Lease.
        """
        progress = Progress()
        progress.expect(Expectation("no cycle has ended", lambda: self.cycles.is_due, lambda: self.cycles.decided))
        if (leader := self.leader) is not None:
            self._writes = progress.expect(
                Expectation(
                    "no write in any namespace was answered, although requests for our Lease are,",
                    lambda: bool(self.writer.unfinished) and leader.is_answered and leader.may_write(),
                    lambda: self.http.writes_answered,
                )
            )
        self.metrics.progress(lambda: progress.age)
        return progress

    # ------------------------------------------------------------------------------------------------------- lifecycle

    async def run(self) -> int:
        """Run until a stop is requested (returns 0), or until leadership is lost or a part ends (returns 1)."""
        self._handle_signals()
        self._start(self.feed.run(), "watches")
        self._start(self._check_progress(), "progress")
        if self.options.policy is not None:
            self._start(self.policy.run(), "policy file")
        stopped = asyncio.create_task(self.stopping.wait(), name="stop")
        lead = asyncio.create_task(self._lead(), name="lead")
        try:
            await asyncio.wait({stopped, lead}, return_when=asyncio.FIRST_COMPLETED)
            if lead.done():
                self._end_with(lead)
            await self._finish(deciding=lead)
            return 1 if self._broken else 0
        finally:
            for task in (stopped, lead, *self._tasks):
                task.cancel()
            await asyncio.gather(stopped, lead, *self._tasks, return_exceptions=True)
            self.cycles.close()
            self.feed.terminations.close()
            if self.record is not None:
                self.record.close()
            await self.http.close()
            if self.leader is not None:
                await self.leader.close()

    async def _lead(self) -> None:
        """Decide and write while this replica leads. Returns when leadership ends."""
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
        gc.freeze()  # exclude the listed objects from garbage collection: most of them live long
        async with asyncio.TaskGroup() as group:
            group.create_task(self.cycles.run(), name="cycles")
            self._start_controllers(group)
            if self.leader is not None:
                await self.leader.hold()
                raise LeaseLostError("the lease was lost")

    async def _stand_by(self, leader: Leader) -> None:
        """Wait for the lease.

        Meanwhile the state is kept up to date, so that a new leader starts with a cycle instead of listing all objects.
        """
        elected = asyncio.create_task(leader.elected(), name="election")
        try:
            while not elected.done():
                await self.cycles.apply_inbox()
                await asyncio.wait({elected}, timeout=0.1)
            elected.result()
        finally:
            elected.cancel()

    def _start_controllers(self, group: asyncio.TaskGroup) -> None:
        if not self.options.controllers:
            return
        from ..controllers import run_controllers  # noqa: PLC0415 - loaded only where controllers run

        work = run_controllers(
            self.client,
            self.events,
            self.options.controllers,
            scheduler_names=self.options.scheduler_names,
            queue_command_namespace=self.options.queue_command_namespace,
            node_selector=self.options.node_selector,
            reflectors=self.feed.reflectors,
            on_started=self._on_controllers_started,
        )
        group.create_task(work, name="controllers")

    async def _finish(self, deciding: asyncio.Task[None]) -> None:
        """Stop deciding, finish the writes of earlier decisions, and release the lease.

        If the process makes no progress, release the lease without finishing the writes.
        """
        last_job = self.cycles.trying if self.progress.trouble else ""
        deciding.cancel()
        await asyncio.gather(deciding, return_exceptions=True)
        if last_job:
            await self._try_last_after_restart(last_job)
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
                log.warning("%s not written within %g s", what, seconds)
        if unfinished := self.writer.unfinished:
            log.warning("%d binds and evictions have no verdict; the next leader decides on them", unfinished)
        if self.leader is not None:
            await self.leader.release()

    async def _try_last_after_restart(self, key: str) -> None:
        """Mark the PodGroup of the job during which the process hung, so that the next process tries the job last."""
        job = self.feed.cluster.jobs.get(key)
        if job is None or job.group is None:
            return
        message = f"the scheduler gave up while it tried this job ({self.progress.trouble}); it tries the job last"
        status = statuses.of_podgroup(job, job.phase, message, time.time(), TOO_COSTLY)
        body = {"metadata": {"uid": job.group.metadata.uid}, "status": {"conditions": status["conditions"]}}
        with contextlib.suppress(KubeError, TimeoutError):
            async with asyncio.timeout(_FINISH_STATUSES):
                await self.client.patch(PODGROUPS.bare, job.name, body, job.namespace, kind=Patch.MERGE, sub="status")

    def _start(self, work: Coroutine[Any, Any, Any], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._end_with)
        self._tasks.append(task)

    def _end_with(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled():
            log.error("%s ended unexpectedly: the process ends", task.get_name(), exc_info=task.exception())
            self._broken = True
            self.stopping.set()

    async def _check_progress(self) -> None:
        """Check progress at each `TICK`. Returns when a cycle, a write or the event loop makes no progress."""
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

    def _handle_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stopping.set)
        loop.add_signal_handler(signal.SIGUSR2, self.cycles.between_cycles, self._write_cycle_record)

    def _write_cycle_record(self) -> None:
        """Write the current state and the decisions that follow from it to a separate record."""
        parent = self.options.record or Path.cwd()
        write_cycle(parent, self.cycles.number, time.time(), self.feed.core, self.policy.current)

    # -------------------------------------------------------------------------------------------------------- reporting

    def _on_controllers_started(self, context: Context) -> None:
        self.endpoints.unlisted = context.unready

    def on_policy(self, current: InForce) -> None:
        """Report a policy that was loaded or refused. After a load, start a cycle."""
        # other Kubernetes components, too, report events about themselves on their Lease
        lease = ObjectMeta(name=LEASE_NAME, namespace=self.options.lease_namespace)
        if current.error:
            self.metrics.policy("refused")
            message = f"the previous policy stays in force: {current.error}"
            self.events.event(LEASES, lease, WARNING, "PolicyRefused", message)
        else:
            self.metrics.policy("loaded")
            message = f"{current.path}, sha256 {current.sha256}, is in force"
            self.events.event(LEASES, lease, NORMAL, "PolicyLoaded", message)
            self.cycles.request_cycle()


class LeaseLostError(Exception):
    """The lease is lost: another replica leads, or may lead."""
