"""Keep the memory of the process small and unfragmented: connection buffers, the heap, garbage, and free memory."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import math
import time
from asyncio import sslproto
from typing import Any

_COLLECT = (20_000, 20, 10)
"""Thresholds of the garbage collector. Few of our objects are in reference cycles, and the default of 700 for the young
generation would scan all objects several times in a burst of binds. A closed connection stays in a reference cycle of
asyncio (1.5 KB) until the oldest generation is collected: after 4 million new objects, if a quarter of all are new.
"""
_EVERY = 60.0
"""Seconds between two returns of free memory."""
_IDLE = 0.02
"""Maximum share of a core that an idle process uses. With 2,000 waiting gangs that never fit, the share is 0.005."""
_LARGE = 64 * 1024
"""Bytes of a block that is allocated outside of the heap; glibc's own threshold grows to 32 MB as memory is freed."""
_ARENA_MAX, _MMAP_THRESHOLD = -8, -3
"""`M_ARENA_MAX` and `M_MMAP_THRESHOLD` of <malloc.h>."""


_TLS_READ = 64 * 1024
"""Bytes that a TLS connection reads at once. asyncio's default is 256 KB and has no public setting. A connection keeps
a buffer of this size, and OpenSSL keeps another, which grows to 4/3 of the largest read. After a burst of 2 MB on each
of 23 connections, the process used 36 MB with the default, and uses 27 MB with this value.
"""


def _of_c_library(name: str) -> Any:
    """Return a function of the C library; None if the library lacks the function (most exist only in glibc)."""
    return getattr(ctypes.CDLL(None), name, None)


class _Heap(ctypes.Structure):
    """`struct mallinfo2` of <malloc.h>."""

    _names = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = tuple((name, ctypes.c_size_t) for name in _names)


def heap_in_use() -> float:
    """Return the bytes in use in the C library's heap; NaN if the library is not glibc 2.33 or later.

    This heap holds buffers and objects of more than 512 bytes. Smaller objects are in Python's own allocator.
    """
    figures = _of_c_library("mallinfo2")
    if figures is None:
        return math.nan
    figures.restype = _Heap
    heap = figures()
    return float(heap.uordblks + heap.hblkhd)


def collect_rarely() -> None:
    """Let the garbage collector run less often."""
    gc.set_threshold(*_COLLECT)


def keep_tls_buffers_small() -> None:
    """Reduce the read size of all TLS connections that are opened from now on."""
    sslproto.SSLProtocol.max_size = _TLS_READ


def avoid_fragmentation() -> None:
    """Use one heap for all threads, because only one of them runs at a time, and allocate large blocks outside of it.

    Call this before any thread starts.
    """
    if (tune := _of_c_library("mallopt")) is not None:
        tune(_ARENA_MAX, 1)
        tune(_MMAP_THRESHOLD, _LARGE)


async def keep_trimmed(every: float = _EVERY) -> None:
    """Return free memory of the heap to the system, and collect garbage when the process becomes idle, until cancelled.

    Buffers of all sizes are freed between long-lived objects, and glibc by itself returns only the end of such a heap:
    after ten minutes of churn it kept 5 MB. Other C libraries have no such call and do not need one.

    The oldest generation is collected rarely (`collect_rarely`). A full collection stops the process, for 0.1 s where
    400 thousand objects are scanned. It therefore runs after the first idle period of `every` seconds.
    """
    trim = _of_c_library("malloc_trim")
    collected = False
    while True:
        before = time.process_time()
        await asyncio.sleep(every)
        is_idle = time.process_time() - before < _IDLE * every
        if is_idle and not collected:
            gc.collect()
        collected = is_idle
        if trim is not None:
            await asyncio.to_thread(trim, 0)
