"""The controllers as a process of their own: ``python -m scheduler controllers``.

The one rule: nothing of it is shared with the process that schedules, so that no work for a Job delays a cycle. What
they have in common is in the API server.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Mapping

from ..controllers import Context, run_controllers
from ..kube import Client, EventRecorder, Http, connect
from .controller_metrics import ControllerMetrics
from .leader import leader_of
from .options import Options
from .server import METRICS, Answer, Page, Query, text

log = logging.getLogger(__name__)

NAME = "schedspec-controllers"
"""Of the lease, and in what the API server logs."""
_BEAT = 0.5
_HANGS_AFTER = 30.0
"""Seconds."""


class ControllersApp:
    """Everything that the process has. Made inside of a running event loop."""

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
        """Live until told to stop (0), deposed or broken (1)."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        stopped = asyncio.create_task(self._stopping.wait(), name="stop")
        work = asyncio.create_task(self._work(), name="controllers")
        try:
            await asyncio.wait({stopped, work}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                log.error("the controllers ended, and so does this process", exc_info=work.exception())
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
        """Beat from the start, and control from when this replica leads until it no longer does."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._keep_beating(), name="heartbeat")
            if self._leader is not None:
                await self._leader.elected()
            group.create_task(self._events.run(), name="events")
            group.create_task(self._control(), name="control")
            if self._leader is not None:
                await self._leader.hold()
                raise RuntimeError("the lease was lost: another replica controls, or may")

    async def _control(self) -> None:
        options = self._options
        await run_controllers(
            self._client,
            self._events,
            options.controllers,
            scheduler_names=options.scheduler_names,
            queue_command_namespace=options.queue_command_namespace,
            node_selector=options.node_selector,
            tell=self._hear_of,
        )

    def _hear_of(self, context: Context) -> None:
        self._context = context

    async def _keep_beating(self) -> None:
        while True:
            self._beat = time.monotonic()
            await asyncio.sleep(_BEAT)

    @property
    def _silent(self) -> float:
        """For how long the event loop has not been heard of, beyond what lies between two beats."""
        return max(time.monotonic() - self._beat - _BEAT, 0.0)

    # ----------------------------------------------------------------------------------------------------------- pages

    def pages(self) -> Mapping[str, Page]:
        """By path; asked from the server's thread."""
        return {"/healthz": self._healthz, "/readyz": self._readyz, "/metrics": self._render}

    def _healthz(self, _: Query) -> Answer:
        silent = self._silent
        return text(200, "ok") if silent < _HANGS_AFTER else text(503, f"the event loop hangs for {silent:.0f} s")

    def _render(self, query: Query) -> Answer:
        """All metrics, or those named by ``name[]``."""
        return 200, METRICS, self._metrics.render(query.get("name[]", ()))

    def _readyz(self, _: Query) -> Answer:
        """200 once everything is listed; a stand-by is ready too."""
        if self._context is None:
            return text(200, "stand-by") if self._leader is not None else text(503, "the controllers have not begun")
        waiting = self._context.unlisted()
        return text(503, "\n".join(waiting)) if waiting else text(200, "ok")
