"""The time of day, as the running event loop has it: a loop in virtual time brings its own."""

from __future__ import annotations

import asyncio
import time


def wall_time() -> float:
    """Seconds since the epoch, by the running event loop's `wall()` if it has one."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return time.time()
    own = getattr(loop, "wall", None)
    return own() if own is not None else time.time()


def steady_time() -> float:
    """Monotonic seconds, by the clock of the running event loop."""
    return asyncio.get_running_loop().time()
