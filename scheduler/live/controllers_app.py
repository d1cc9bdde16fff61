"""Run the controllers in a process of their own: `python -m scheduler controllers`.

The process shares only the API server with the scheduling process, so controllers cannot delay a cycle.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..controllers import Context, run_controllers
from ..kube import Client, EventRecorder, Http, connect
from .leader import leader_of
from .options import Options
from .server import METRICS, Answer, Endpoint, Query, text


class ControllerMetrics(Collector):
    """The metrics of one process.

    `context` returns None until this replica runs the controllers. `silent` returns the delay of the event loop's next
    heartbeat in seconds.
    """

    def __init__(
        self, http: Http, events: EventRecorder, context: Callable[[], Context | None], silent: Callable[[], float]
    ) -> None:
        self._http, self._events, self._context, self._silent = http, events, context, silent
        self._registry = CollectorRegistry(auto_describe=True)
        self._registry.register(self)

    def render(self, names: Collection[str] = ()) -> bytes:
        """Return the text of a scrape; with `names` (of samples), only the metrics with these samples."""
        return generate_latest(self._registry.restricted_registry(names) if names else self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of one scrape."""
        context = self._context()
        waiting = GaugeMetricFamily(
            "schedspec_controller_waiting_objects", "Objects that wait for reconciliation", labels=["name"]
        )
        failures = CounterMetricFamily(
            "schedspec_controller_failures", "Failed reconciliations; each is retried", labels=["name"]
        )
        for name, queue in sorted(context.queues.items()) if context is not None else ():
            waiting.add_metric([name], len(queue))
            failures.add_metric([name], queue.failures)
        yield waiting
        yield failures
        for name, help_, value in (
            ("schedspec_leader", "1 if this replica runs the controllers", float(context is not None)),
            ("schedspec_progress_age_seconds", "Delay of the event loop's next heartbeat", self._silent()),
            (
                "schedspec_throttled_requests",
                "Requests that the API server answered with 429",
                float(self._http.throttled),
            ),
            ("schedspec_dropped_events", "Events that were dropped", float(self._events.dropped)),
        ):
            yield GaugeMetricFamily(name, help_, value)


log = logging.getLogger(__name__)

NAME = "schedspec-controllers"
"""Name of the lease, and User-Agent in the logs of the API server."""
_BEAT = 0.5
"""Seconds between two heartbeats of the event loop."""
_HANGS_AFTER = 30.0
"""Seconds without a heartbeat after which `/healthz` fails."""


class ControllersApp:
    """The parts of the process. Create it inside a running event loop."""

    def __init__(self, options: Options) -> None:
        self._options = options
        connection = connect(options.kubeconfig, options.context)
        self._leader = leader_of(options, connection, NAME)
        may_write = self._leader.may_write if self._leader is not None else lambda: True
        self._http = Http(connection, agent=NAME, may_write=may_write)
        self._client = Client(self._http, once=True, scope=options.scope)
        self._events = EventRecorder(self._client, options.scheduler_names[0])
        self._stopping = asyncio.Event()
        self._context: Context | None = None
        self._beat = time.monotonic()
        self._metrics = ControllerMetrics(self._http, self._events, lambda: self._context, lambda: self._silent)

    async def run(self) -> int:
        """Run until a stop is requested (returns 0), or until leadership is lost or a part ends (returns 1)."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        stopped = asyncio.create_task(self._stopping.wait(), name="stop")
        work = asyncio.create_task(self._work(), name="controllers")
        try:
            await asyncio.wait({stopped, work}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                log.error("the controllers ended unexpectedly: the process ends", exc_info=work.exception())
                return 1
            return 0
        finally:
            for task in (stopped, work):
                task.cancel()
            await asyncio.gather(stopped, work, return_exceptions=True)
            if self._leader is not None:
                await self._leader.release()
                await self._leader.close()
            await self._http.close()

    async def _work(self) -> None:
        """Run the heartbeat from the start, and the controllers while this replica leads."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._beat_regularly(), name="heartbeat")
            if self._leader is not None:
                await self._leader.elected()
            group.create_task(self._events.run(), name="events")
            group.create_task(self._control(), name="control")
            if self._leader is not None:
                await self._leader.hold()
                raise RuntimeError("the lease was lost: another replica may run the controllers")

    async def _control(self) -> None:
        options = self._options
        await run_controllers(
            self._client,
            self._events,
            options.controllers,
            scheduler_names=options.scheduler_names,
            queue_command_namespace=options.queue_command_namespace,
            node_selector=options.node_selector,
            on_started=self._on_controllers_started,
        )

    def _on_controllers_started(self, context: Context) -> None:
        self._context = context

    async def _beat_regularly(self) -> None:
        while True:
            self._beat = time.monotonic()
            await asyncio.sleep(_BEAT)

    @property
    def _silent(self) -> float:
        """Return the seconds by which the event loop's next heartbeat is late."""
        return max(time.monotonic() - self._beat - _BEAT, 0.0)

    # ------------------------------------------------------------------------------------------------------- endpoints

    def endpoints(self) -> Mapping[str, Endpoint]:
        """Return the endpoints by path. The server calls them in its own thread."""
        return {"/healthz": self._healthz, "/readyz": self._readyz, "/metrics": self._render}

    def _healthz(self, _: Query) -> Answer:
        silent = self._silent
        return text(200, "ok") if silent < _HANGS_AFTER else text(503, f"the event loop hangs for {silent:.0f} s")

    def _render(self, query: Query) -> Answer:
        """Return all metrics, or those named by `name[]`."""
        return 200, METRICS, self._metrics.render(query.get("name[]", ()))

    def _readyz(self, _: Query) -> Answer:
        """Return 200 once all kinds are listed; a standby replica is ready as well."""
        if self._context is None:
            return text(200, "stand-by") if self._leader is not None else text(503, "the controllers have not started")
        waiting = self._context.unready()
        return text(503, "\n".join(waiting)) if waiting else text(200, "ok")
