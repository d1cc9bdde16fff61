"""Free memory is returned to the system, garbage is collected when the process is idle, connections read little."""

from __future__ import annotations

import subprocess
import sys

from schedspec.scheduler.live.memory import heap_in_use

_PROGRAM = """
import asyncio, psutil
from schedspec.scheduler.live.memory import keep_trimmed

async def main():
    held = [bytes(2_000) for _ in range(50_000)]
    held = held[::50]  # the remaining objects lie all over the heap
    rss = psutil.Process().memory_info
    before = rss().rss
    task = asyncio.create_task(keep_trimmed(0.01))
    for _ in range(500):
        await asyncio.sleep(0.02)
        if before - rss().rss > 50_000_000:
            return
    raise SystemExit(f"{before} bytes before, {rss().rss} after")

asyncio.run(main())
"""

_TLS = """
import asyncio, ssl
from asyncio import sslproto
from schedspec.scheduler.live.memory import keep_tls_buffers_small

async def main():
    keep_tls_buffers_small()
    loop = asyncio.get_running_loop()
    connection = sslproto.SSLProtocol(loop, asyncio.Protocol(), ssl.create_default_context(), None)
    print(len(connection.get_buffer(-1)))  # the transport gets its read buffer by this call

asyncio.run(main())
"""


_GARBAGE = """
import asyncio, gc, weakref
from schedspec.scheduler.live import memory

class Cycle:
    def __init__(self):
        self.itself = self

periods, used, is_busy = 0, 0.0, True

def cpu_seconds():
    global periods, used
    periods, used = periods + 1, used + is_busy
    return used

async def main():
    global is_busy
    gc.disable()  # the oldest generation is collected only after hours
    memory.time.process_time = cpu_seconds
    kept = weakref.ref(Cycle())
    task = asyncio.create_task(memory.keep_trimmed(0.01))
    while periods < 10:
        await asyncio.sleep(0.01)
    assert kept() is not None, "collected while the process is busy"
    is_busy = False
    while kept() is not None:
        await asyncio.sleep(0.01)

asyncio.run(asyncio.wait_for(main(), 60))
"""


def test_garbage_is_collected_when_the_process_becomes_idle() -> None:
    done = subprocess.run([sys.executable, "-c", _GARBAGE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_tls_connection_reads_at_most_64_kb_at_once() -> None:
    assert subprocess.run([sys.executable, "-c", _TLS], capture_output=True, text=True, check=True).stdout == "65536\n"


def test_free_memory_between_live_objects_is_returned_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_heap_bytes_in_use_follow_the_live_objects() -> None:
    before = heap_in_use()
    kept = [bytes(2_000) for _ in range(5_000)] + [bytes(1_000_000)]
    held = heap_in_use() - before
    assert 11_000_000 < held < 12_000_000
    kept.clear()
    assert heap_in_use() - before < 1_000_000
