"""Measure how busy the machine is, to scale the time limits of tests.

A separate process repeats a piece of work of a fixed CPU time, with pauses. A measurement is the wall-clock time of the
work divided by its CPU time: 1 on an idle machine, 2 if the process gets half a core.
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
    """Yield a list that receives measurements while the context lasts; it has at least one in the end."""
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
