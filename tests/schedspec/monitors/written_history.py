"""Histories that tests of monitors write by hand, and the monitors' findings in them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from schedspec.api.kinds import Kind, Ref
from schedspec.monitors import Rules, judge
from schedspec.observe.history import Version

GANG = "scheduling.k8s.io/group-name"


class WrittenHistory:
    """A history written by hand: one version for each call, a tenth of a second apart."""

    def __init__(self) -> None:
        self.versions: list[Version] = []
        self.pods: dict[str, dict[str, Any]] = {}
        self._time = 0.0

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Give all versions one time, like the evictions of one decision."""
        self._time = (len(self.versions) + 1) / 10
        yield
        self._time = 0.0

    def show(self, kind: Kind, name: str, change: str = "changed", **body: Any) -> None:
        number = len(self.versions) + 1
        time = self._time or number / 10
        metadata = {"name": name, "uid": f"{name}-uid", **body.pop("metadata", {}), "resourceVersion": str(number)}
        obj = {"metadata": metadata, **body}
        ref = Ref(kind, name, metadata.get("namespace", ""))
        self.versions.append(Version(number, time, time, change, ref, obj))  # type: ignore[arg-type]

    def node(self, name: str, *, rack: str = "", **allocatable: str) -> None:
        labels = {"schedspec.dev/world": "true", **({"schedspec.dev/rack": rack} if rack else {})}
        self.show(Kind.NODE, name, metadata={"labels": labels}, status={"allocatable": {"pods": "110", **allocatable}})

    def queue(self, name: str, **spec: Any) -> None:
        self.show(Kind.QUEUE, name, spec=spec)

    def group(self, name: str, queue: str, min_member: int = 1) -> None:
        self.show(Kind.PODGROUP, name, metadata={"namespace": "ns"}, spec={"queue": queue, "minMember": min_member})

    def bind(
        self,
        name: str,
        group: str,
        node: str,
        cpu: str,
        *,
        uid: str = "",
        requests: dict[str, str] | None = None,
        **annotations: str,
    ) -> None:
        self.pods[name] = {
            "metadata": {"namespace": "ns", "uid": uid or f"{name}-uid", "annotations": {GANG: group, **annotations}},
            "spec": {"nodeName": node, "containers": [{"resources": {"requests": {"cpu": cpu, **(requests or {})}}}]},
            "status": {"phase": "Running"},
        }
        self.show(Kind.POD, name, **self.pods[name])

    def wait(self, name: str, group: str, cpu: str) -> None:
        pod = {
            "metadata": {"namespace": "ns", "uid": f"{name}-uid", "annotations": {GANG: group}},
            "spec": {"containers": [{"resources": {"requests": {"cpu": cpu}}}]},
            "status": {"phase": "Pending"},
        }
        self.show(Kind.POD, name, "added", **pod)

    def evict(self, name: str, message: str = "reclaimed for ns/preemptor", *, is_gone: bool = True) -> None:
        pod = self.pods[name]
        mark = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": message}
        self.show(Kind.POD, name, **{**pod, "status": {"phase": "Running", "conditions": [mark]}})
        if is_gone:
            self.show(Kind.POD, name, "gone", **pod)


POLICY = """
actions: "allocate, reclaim"
tiers:
- plugins:
  - name: gang
  - name: conformance
- plugins:
  - name: capacity
"""


def findings(history: WrittenHistory, policy: str = POLICY) -> list[str]:
    return [finding.monitor for finding in judge(history.versions, Rules(policy))]


def a_cluster() -> WrittenHistory:
    history = WrittenHistory()
    history.node("n1", cpu="4")
    history.queue("guest", deserved={"cpu": "2"})
    history.queue("owner", deserved={"cpu": "2"})
    history.group("batch", "guest")
    history.group("mine", "owner")
    return history
