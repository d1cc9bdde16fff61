"""Measure how busy the machine is, to scale the time limits of tests.

A process of its own works for a fixed CPU time, over and over, with rests. If the work takes twice its CPU time, the
machine is twice as busy.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_WORK = """
import sys, time
while True:
    began, cpu = time.monotonic(), time.process_time()
    while time.process_time() < cpu + 0.03:
        pass
    print((time.monotonic() - began) / (time.process_time() - cpu), flush=True)
    time.sleep(0.15)
"""


@asynccontextmanager
async def busy() -> AsyncIterator[list[float]]:
    """How many times its CPU time a piece of work takes, again and again while the context lasts; at least once."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", _WORK, stdout=asyncio.subprocess.PIPE)
    output, times = process.stdout, list[float]()
    assert output is not None

    async def measure() -> None:
        while line := await output.readline():
            times.append(float(line))

    measuring = asyncio.create_task(measure())
    try:
        yield times
        while not times:
            await asyncio.sleep(0.01)
    finally:
        process.kill()
        await process.wait()
        measuring.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await measuring
