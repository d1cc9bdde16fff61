"""Memory that nobody uses goes back to the system.

The one rule: it costs the event loop nothing: a thread does it, without the interpreter's lock.
"""

from __future__ import annotations

import asyncio
import ctypes

_EVERY = 60.0
"""Seconds."""
_LARGE = 64 * 1024
"""Bytes; glibc's own bound grows to 32 MB with what is freed."""
_ARENA_MAX, _MMAP_THRESHOLD = -8, -3
"""``M_ARENA_MAX`` and ``M_MMAP_THRESHOLD`` of <malloc.h>."""


def keep_whole() -> None:
    """Have one heap for all threads, as only one of them runs at a time, and none of what is large on it. To be called
    before there are threads.
    """
    if (tune := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        tune(_ARENA_MAX, 1)
        tune(_MMAP_THRESHOLD, _LARGE)


async def keep_trimmed(every: float = _EVERY) -> None:
    """Until cancelled. Buffers of all sizes come and go between objects that stay, and of such a heap glibc gives back
    its end only: 5 MB in ten minutes of churn were free and kept. Other C libraries have no such call, and no need.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while trim is not None:
        await asyncio.sleep(every)
        await asyncio.to_thread(trim, 0)
