"""The clocks of the process; an event loop in virtual time has clocks of its own."""

from __future__ import annotations

import asyncio
import time


def wall_time() -> float:
    """Return seconds since the epoch, from the running event loop's `wall()` if it has one."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return time.time()
    own = getattr(loop, "wall", None)
    return own() if own is not None else time.time()


def steady_time() -> float:
    """Return monotonic seconds, from the clock of the running event loop."""
    return asyncio.get_running_loop().time()
