"""Measure what recording a large cluster costs: CPU, memory and bytes a day, at a constant rate of changes.

    python -m benchmarks.recorder [SECONDS]

The API server is replaced by one in this process that answers lists and sends watch events as JSON, so that decoding,
recording and compression are measured and the network is not. The CPU of making the events is measured alone, and
subtracted.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import resource
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from schedspec.lab.recorder.watch import Recorder
from schedspec.lab.recorder.writer import VersionWriter
from schedspec.scheduler.inputs import PolicyLoaded
from schedspec.scheduler.kube import Client
from schedspec.scheduler.kube.errors import error_of
from schedspec.scheduler.kube.wire import Answer

NODES, PODS, RATE = 1_000, 20_000, 50.0


def pod(number: int, version: int, phase: str, node: str) -> dict[str, Any]:
    name = f"train-{number // 8}-worker-{number % 8}"
    conditions = [
        {"type": "PodScheduled", "status": "True" if node else "False", "lastTransitionTime": "2026-11-27T02:13:00Z"},
        {"type": "Ready", "status": "True" if phase == "Running" else "False", "message": f"after {version % 977} s"},
    ]
    requests = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}
    env = [{"name": f"VARIABLE_{index}", "value": f"value-{index}-of-{number}"} for index in range(20)]
    container = {"name": "main", "image": "registry/train:1", "env": env, "resources": {"requests": requests}}
    return {
        "metadata": {
            "name": name,
            "namespace": f"team-{number % 20}",
            "uid": str(uuid.UUID(int=random.Random(number).getrandbits(128), version=4)),
            "resourceVersion": str(version),
            "creationTimestamp": "2026-11-27T02:00:00Z",
            "labels": {"app": "train", "job": f"train-{number // 8}", "index": str(number % 8)},
            "annotations": {"scheduling.k8s.io/group-name": f"train-{number // 8}", "note": "x" * 400},
        },
        "spec": {"schedulerName": "volcano", "nodeName": node, "containers": [container], "priority": 100},
        "status": {"phase": phase, "conditions": conditions, "startTime": "2026-11-27T02:13:00Z"},
    }


def node(number: int) -> dict[str, Any]:
    amounts = {"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": "8", "pods": "110"}
    labels = {f"label-{index}": f"value-{index}" for index in range(15)}
    meta = {"name": f"n{number:04}", "uid": f"node-{number}", "resourceVersion": "1", "labels": labels}
    return {"metadata": meta, "status": {"allocatable": amounts, "capacity": amounts}}


class Server:
    """Answers in place of `Http`; the watch of pods has `RATE` events a second."""

    def __init__(self) -> None:
        self.events = 0
        self.cpu = 0.0
        self._random = random.Random(1)

    async def request(self, _method: str, path: str, **_: object) -> Answer:
        split = urlsplit(path)
        plural, query = split.path.rpartition("/")[2], dict(parse_qsl(split.query))
        if split.path.startswith("/apis/") and plural not in ("priorityclasses", "podgroups", "queues"):
            raise error_of(path, 404, b"not found")
        count = {"pods": PODS, "nodes": NODES}.get(plural, 0)
        first, limit = int(query.get("continue") or 0), int(query.get("limit", "500"))
        numbers = range(first, min(first + limit, count))
        made = [pod(it, 1, "Running", f"n{it % NODES:04}") if plural == "pods" else node(it) for it in numbers]
        more = {"continue": str(first + limit)} if first + limit < count else {}
        await asyncio.sleep(0)
        return Answer(200, {}, json.dumps({"metadata": {"resourceVersion": "1", **more}, "items": made}).encode())

    @contextlib.asynccontextmanager
    async def stream(self, path: str, **_: object) -> AsyncIterator[AsyncIterator[bytes]]:
        yield self._events() if "/pods?" in path else self._nothing()

    async def _events(self) -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(1 / RATE)
            began = time.process_time()
            self.events += 1
            number = self._random.randrange(PODS)
            phase = self._random.choice(["Pending", "Running", "Running", "Succeeded"])
            where = f"n{self._random.randrange(NODES):04}" if phase != "Pending" else ""
            line = json.dumps({"type": "MODIFIED", "object": pod(number, self.events + 1, phase, where)}).encode()
            self.cpu += time.process_time() - began
            yield line + b"\n"

    async def _nothing(self) -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""


async def measure(seconds: float, folder: Path) -> None:
    server, writer = Server(), VersionWriter(folder, 1e9, 10 << 30, time.time)
    recorder = Recorder(Client(server), writer, time.time, policy=PolicyLoaded("", ""))  # type: ignore[arg-type]
    task = asyncio.create_task(recorder.run())
    began = time.process_time()
    await recorder.begun.wait()
    checkpoint, listed = writer.bytes, time.process_time() - began
    await asyncio.sleep(5.0)
    events, size, cpu, own, at = server.events, writer.bytes, time.process_time(), server.cpu, time.monotonic()
    await asyncio.sleep(seconds)
    took = time.monotonic() - at
    used = time.process_time() - cpu - (server.cpu - own)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    recorder.close()
    count = server.events - events
    each = (writer.bytes - size) / count
    a_day = each * RATE * 86400 + 24 * checkpoint
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{NODES} nodes, {PODS} pods: listed in {listed:.1f} CPU s, a checkpoint of {checkpoint / 1e6:.1f} MB")
    print(
        f"{count / took:.0f} changes a second: {100 * used / took * RATE * took / count:.1f} % of a core at {RATE:.0f}"
    )
    print(f"{each:.0f} bytes a change, {a_day / 1e9:.2f} GB a day with a checkpoint an hour; peak {peak:.0f} MB")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        asyncio.run(measure(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0, Path(place)))
