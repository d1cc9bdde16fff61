"""Run one process, the scheduler or the controllers, from its options to its exit status."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Coroutine, Iterator, Mapping

from .app import App
from .memory import avoid_fragmentation, collect_rarely, keep_tls_buffers_small, keep_trimmed
from .options import Options
from .policy_file import PolicyFile
from .server import Endpoint, Server

_SWITCH = 0.0005
"""Seconds that the deciding thread may delay the event loop after each system call. With Python's 5 ms, the writes of a
large reclaim would stall while the next cycle decides.
"""


async def control(options: Options) -> int:
    """Run the controllers alone until they end, and return the exit status. Raises the error that prevents a start."""
    from .controllers_app import ControllersApp  # noqa: PLC0415 - loaded only where controllers run

    _set_up_interpreter()
    app = ControllersApp(options)
    with _listening(options, app.endpoints()), _beside(keep_trimmed()):
        return await app.run()


async def serve(options: Options) -> int:
    """Run one scheduler process until it ends, and return its exit status. Raises the error that prevents a start."""
    _set_up_interpreter()
    policy = PolicyFile(options.policy)
    app = App(options, policy)
    policy.on_change = app.on_policy
    app.metrics.policy("loaded")
    with _listening(options, app.endpoints.by_path()), _beside(keep_trimmed()):
        status = await app.run()
        if app.progress.trouble:  # a deciding thread that never ends would keep the interpreter alive
            logging.shutdown()
            os._exit(status)
        return status


def _set_up_interpreter() -> None:
    collect_rarely()
    sys.setswitchinterval(_SWITCH)
    avoid_fragmentation()
    keep_tls_buffers_small()


@contextlib.contextmanager
def _beside(work: Coroutine[None, None, None]) -> Iterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()


@contextlib.contextmanager
def _listening(options: Options, endpoints: Mapping[str, Endpoint]) -> Iterator[None]:
    """Serve HTTP, and print the address."""
    server = Server(*options.listen, endpoints)
    sys.stdout.write(f"listening on {server.address}\n")
    sys.stdout.flush()
    server.start()
    try:
        yield
    finally:
        server.close()
