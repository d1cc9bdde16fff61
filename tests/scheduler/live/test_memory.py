"""Free memory is returned to the system while the process runs, and connections read into small buffers."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import asyncio, psutil
from scheduler.live.memory import keep_trimmed

async def main():
    held = [bytes(2_000) for _ in range(50_000)]
    held = held[::50]  # what stays lies all over the heap
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
from scheduler.live.memory import keep_tls_buffers_small

async def main():
    keep_tls_buffers_small()
    loop = asyncio.get_running_loop()
    connection = sslproto.SSLProtocol(loop, asyncio.Protocol(), ssl.create_default_context(), None)
    print(len(connection.get_buffer(-1)))  # the transport asks so for where to read to

asyncio.run(main())
"""


def test_a_tls_connection_reads_at_most_64_kb_at_once() -> None:
    assert subprocess.run([sys.executable, "-c", _TLS], capture_output=True, text=True, check=True).stdout == "65536\n"


def test_what_is_free_between_what_stays_is_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
