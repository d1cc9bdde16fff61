"""Return unused memory to the system, in a thread and without the interpreter's lock."""

from __future__ import annotations

import asyncio
import ctypes

_EVERY = 60.0
"""Seconds."""
_LARGE = 64 * 1024
"""Bytes; glibc's own threshold grows to 32 MB as memory is freed."""
_ARENA_MAX, _MMAP_THRESHOLD = -8, -3
"""`M_ARENA_MAX` and `M_MMAP_THRESHOLD` of <malloc.h>."""


def keep_whole() -> None:
    """Use one heap for all threads, because only one of them runs at a time, and allocate large blocks outside of it.

    Call this before any thread starts.
    """
    if (tune := getattr(ctypes.CDLL(None), "mallopt", None)) is not None:
        tune(_ARENA_MAX, 1)
        tune(_MMAP_THRESHOLD, _LARGE)


async def keep_trimmed(every: float = _EVERY) -> None:
    """Return free memory of the heap to the system, until cancelled.

    Buffers of all sizes come and go between objects that stay, and glibc returns only the end of such a heap: after ten
    minutes of churn it kept 5 MB. Other C libraries have no such call and do not need one.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while trim is not None:
        await asyncio.sleep(every)
        await asyncio.to_thread(trim, 0)
