"""Memory that nobody uses goes back to the system.

The one rule: it costs the event loop nothing: a thread does it, without the interpreter's lock.
"""

from __future__ import annotations

import asyncio
import ctypes

_EVERY = 60.0
"""Seconds."""


async def keep_trimmed(every: float = _EVERY) -> None:
    """Until cancelled. Buffers of all sizes come and go between objects that stay, and of such a heap glibc gives back
    its end only: 5 MB in ten minutes of churn were free and kept. Other C libraries have no such call, and no need.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    while trim is not None:
        await asyncio.sleep(every)
        await asyncio.to_thread(trim, 0)
