"""One scheduler process, from its options to its exit status.

The one rule: what is set for the whole interpreter is set here.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import sys
from collections.abc import Coroutine, Iterator, Mapping

from .app import App
from .memory import keep_trimmed, keep_whole
from .options import Options
from .policy_file import PolicyFile
from .server import Page, Server

_COLLECT = (20_000, 20, 50)
"""Little of ours is ever in a cycle of references; the default would look at everything several times in a burst of
binds.
"""
_SWITCH = 0.0005
"""Seconds for which the thread that decides may keep the event loop waiting after each of its system calls. With
Python's 5 ms the writes of a large reclaim would stand still while the next cycle decides.
"""


async def control(options: Options) -> int:
    """Run the controllers alone until they end; returns the exit status. Raises what makes a start impossible."""
    from .controllers_app import ControllersApp  # noqa: PLC0415 - not loaded where none runs

    _set_up()
    app = ControllersApp(options)
    with _listening(options, app.pages()), _beside(keep_trimmed()):
        return await app.run()


async def serve(options: Options) -> int:
    """Run one scheduler process until it ends; returns its exit status. Raises what makes a start impossible."""
    _set_up()
    policy = PolicyFile(options.policy)
    app = App(options, policy)
    policy.on_change = app.on_policy
    app.metrics.policy("loaded")
    with _listening(options, app.pages.by_path()), _beside(keep_trimmed()):
        status = await app.run()
        if app.progress.trouble:  # a thread that decides without an end would keep the interpreter from ending
            logging.shutdown()
            os._exit(status)
        return status


def _set_up() -> None:
    gc.set_threshold(*_COLLECT)
    sys.setswitchinterval(_SWITCH)
    keep_whole()


@contextlib.contextmanager
def _beside(work: Coroutine[None, None, None]) -> Iterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()


@contextlib.contextmanager
def _listening(options: Options, pages: Mapping[str, Page]) -> Iterator[None]:
    """Answer over HTTP, and say where."""
    server = Server(*options.listen, pages)
    sys.stdout.write(f"listening on {server.address}\n")
    sys.stdout.flush()
    server.start()
    try:
        yield
    finally:
        server.close()
