"""A virtual cluster whose scheduler is the test itself, and a recorder beside it that can be killed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from schedspec.lab.recorder.watch import Recorder
from schedspec.lab.recorder.writer import VersionWriter
from schedspec.scheduler.inputs import PolicyLoaded
from schedspec.scheduler.kube import Client
from schedspec.virtual.cluster import VirtualCluster
from schedspec.virtual.cluster.virtual_cluster import VirtualHttp

POLICY = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]
"""
SPACE = "team"
Object = dict[str, Any]


def kill(writer: VersionWriter) -> None:
    """End a writer as SIGKILL does: its file stays as the last flush left it."""
    raw, file = writer._raw, writer._file
    if raw is not None and file is not None:
        size = writer._path.stat().st_size
        with suppress(ValueError):
            file.close()
        raw.close()
        with writer._path.open("r+b") as left:
            left.truncate(size)
    writer._raw = writer._file = None
    writer._lock.release()


class RecordedCluster:
    """A cluster, and the recorder that follows it. Binds and evictions are those of the test, or of our scheduler."""

    def __init__(
        self, folder: Path, *, scheduler: str = "volcano", keep: float = 7 * 86400.0, most: int = 1 << 30
    ) -> None:
        self.cluster = VirtualCluster()
        self.cluster.use_policy(POLICY)
        self.folder, self.scheduler, self._keep, self._most = folder, scheduler, keep, most
        self.recorder: Recorder | None = None
        self._writer: VersionWriter | None = None
        self._task: asyncio.Task[None] | None = None
        self.make("/api/v1/namespaces", SPACE)

    @property
    def now(self) -> float:
        return self.cluster.wall()

    def advance(self, seconds: float) -> None:
        self.cluster.advance(seconds)
        if self._task is not None and self._task.done():
            self._task.result()

    # ------------------------------------------------------------------------------------------------------- recorder

    def record(self, **options: Any) -> Recorder:
        """Start the recorder, and return when it has written its first checkpoint."""
        recorder = self.start(**options)
        self.advance(2.0)
        assert recorder.begun.is_set()
        return recorder

    def start(self, **options: Any) -> Recorder:
        """Start the recorder."""
        self._writer = VersionWriter(self.folder, self._keep, self._most, self.cluster.wall)

        async def made() -> Recorder:
            http = VirtualHttp(self.cluster._server)
            client = Client(http)  # type: ignore[arg-type]
            options.setdefault("policy", PolicyLoaded("policy", POLICY))
            return Recorder(client, self._writer, self.cluster.wall, **options)  # type: ignore[arg-type]

        self.recorder = recorder = self.cluster._loop.run_until_complete(made())
        self._task = self.cluster._loop.create_task(recorder.run())
        return recorder

    def stop(self) -> None:
        """End the recorder as SIGTERM does."""
        recorder = self._cancel()
        if recorder is not None:
            recorder.close()

    def kill(self) -> None:
        """End the recorder without its knowledge: the files stay as the last flush left them."""
        if self._cancel() is not None and self._writer is not None:
            kill(self._writer)

    def _cancel(self) -> Recorder | None:
        task, recorder = self._task, self.recorder
        self._task = self.recorder = None
        if task is not None:
            task.cancel()
            self.cluster._loop.run_until_complete(asyncio.gather(task, return_exceptions=True))
        return recorder

    def close(self) -> None:
        self.stop()
        self.cluster.close()

    # --------------------------------------------------------------------------------------------------------- objects

    def call(self, method: str, path: str, body: Object, kind: str = "application/json") -> Object:
        status, answer = self.cluster.request(method, path, json.dumps(body).encode(), kind)
        assert status < 300, answer
        found: Object = json.loads(answer)
        return found

    def make(self, path: str, name: str, **body: Any) -> Object:
        meta = {"name": name, **body.pop("metadata", {})}
        return self.call("POST", path, {"metadata": meta, **body})

    def node(self, name: str, cpu: int) -> None:
        has = {"cpu": str(cpu), "memory": "64Gi", "pods": "1000"}
        self.make("/api/v1/nodes", name, status={"allocatable": has, "capacity": has})

    def queue(self, name: str, **spec: Any) -> None:
        self.make("/apis/scheduling.volcano.sh/v1beta1/queues", name, spec={"weight": 1, **spec})

    def group(self, name: str, queue: str, minimum: int = 1) -> None:
        path = f"/apis/scheduling.volcano.sh/v1beta1/namespaces/{SPACE}/podgroups"
        self.make(path, name, spec={"queue": queue, "minMember": minimum})

    def pod(self, name: str, group: str, cpu: int, **spec: Any) -> None:
        container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": str(cpu)}}, **spec}
        annotations = {"scheduling.k8s.io/group-name": group}
        body = {"schedulerName": self.scheduler, "containers": [container], "terminationGracePeriodSeconds": 1}
        self.make(f"/api/v1/namespaces/{SPACE}/pods", name, metadata={"annotations": annotations}, spec=body)

    def bind(self, name: str, node: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        self.call("POST", f"{self._pod(name)}/binding", {"metadata": {"name": name}, "target": target})

    def evict(self, name: str, message: str) -> None:
        """Mark a pod as a victim and delete it, as schedulers do."""
        mark = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": message}
        body = {"status": {"conditions": [mark]}}
        self.call("PATCH", f"{self._pod(name)}/status", body, "application/strategic-merge-patch+json")
        self.call("DELETE", self._pod(name), {"gracePeriodSeconds": 1})

    def runs(self, name: str, group: str, node: str, cpu: int) -> None:
        """Create a pod and bind it at once."""
        self.pod(name, group, cpu)
        self.advance(0.1)
        self.bind(name, node)
        self.advance(1.0)

    def _pod(self, name: str) -> str:
        return f"/api/v1/namespaces/{SPACE}/pods/{name}"


@contextmanager
def recorded(folder: Path, **options: Any) -> Iterator[RecordedCluster]:
    """Yield a cluster with a node of 8 cpu and two queues of 4 each, whose recorder has begun."""
    cluster = RecordedCluster(folder, **options)
    try:
        cluster.node("n1", 8)
        for name in ("online", "batch"):
            cluster.queue(name, deserved={"cpu": "4"}, reclaimable=True)
        cluster.advance(1.0)
        cluster.record()
        yield cluster
    finally:
        cluster.close()


Story = Callable[[RecordedCluster], None]
