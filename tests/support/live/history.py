"""Record the history of a cluster's pods, and check invariants on every version, not only at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from schedspec.scheduler.kube import PODS, Absent, Change, Client, Present, Reflector
from schedspec.scheduler.model import resources
from schedspec.scheduler.model.demand import requests_of
from schedspec.scheduler.model.objects import Pod
from tests.support.fake_server import SAFETY_NET


class History:
    """Every version of every pod, in order; `pods` is the current state."""

    def __init__(self) -> None:
        self.pods: dict[str, Pod] = {}
        self.changes: list[tuple[str, Pod | None]] = []
        self.evicting: set[str] = set()
        """uids of pods that were evicted by the scheduler."""

    def record(self, change: Change[Pod]) -> None:
        match change:
            case Present():
                pod = change.object
                self.pods[pod.metadata.key] = pod
                self.changes.append((pod.metadata.key, pod))
                if any(c.type == "DisruptionTarget" for c in pod.status.conditions or ()):
                    self.evicting.add(pod.metadata.uid)
            case Absent():
                self.pods.pop(change.key, None)
                self.changes.append((change.key, None))

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds. On timeout, fail with the state of the pods."""
        try:
            async with asyncio.timeout(SAFETY_NET):
                while not condition():
                    await asyncio.sleep(0.01)
        except TimeoutError:
            seen = ", ".join(
                f"{key} {pod.status.phase} on {pod.spec.node_name or '-'}" for key, pod in self.pods.items()
            )
            raise AssertionError(f"not within {SAFETY_NET:g} s: {what}; pods: {seen or 'none'}") from None

    def bound(self, gang: str = "") -> list[str]:
        """Return the keys of the pods that have a node; with `gang`, only of that gang."""
        return sorted(key for key, pod in self.pods.items() if pod.spec.node_name and gang in ("", gang_of(pod)))

    def forget(self, gang_prefix: str) -> None:
        """Exclude these gangs from the check at the end: a pod that names another Job's group may be bound alone."""
        for key in [key for key, pod in self.pods.items() if pod.metadata.name.startswith(gang_prefix)]:
            del self.pods[key]

    def gangs(self) -> dict[str, list[Pod]]:
        found: dict[str, list[Pod]] = {}
        for pod in self.pods.values():
            found.setdefault(gang_of(pod), []).append(pod)
        return found

    # ------------------------------------------------------------------------------------------------------ invariants

    def check(self, nodes: dict[str, dict[str, str]]) -> None:
        """Check that no pod moved, no node was ever overcommitted, and no gang is bound in part at the end."""
        places: dict[str, str] = {}
        now: dict[str, Pod] = {}
        for key, pod in self.changes:
            if pod is None:
                now.pop(key, None)
                continue
            now[key] = pod
            if pod.spec.node_name:
                place = places.setdefault(pod.metadata.uid, pod.spec.node_name)
                assert place == pod.spec.node_name, f"{key} moved from {place} to {pod.spec.node_name}"
                _check_node(pod.spec.node_name, now, nodes)
        for gang, pods in self.gangs().items():
            bound = [pod.metadata.name for pod in pods if pod.spec.node_name]
            assert len(bound) in (0, len(pods)), (
                f"gang {gang} is bound in part at the end: {len(bound)} of {len(pods)} have a node"
            )


def _check_node(name: str, now: dict[str, Pod], nodes: dict[str, dict[str, str]]) -> None:
    if name not in nodes:
        return
    on_node = [p for p in now.values() if p.spec.node_name == name and p.status.phase in ("Pending", "Running")]
    used = resources.total_of(requests_of(pod)[0] for pod in on_node)
    over = resources.exceeding(used, resources.parse(nodes[name]), used)
    assert not over, f"node {name} was overcommitted in {', '.join(over)} by {[p.metadata.name for p in on_node]}"


def gang_of(pod: Pod) -> str:
    return (pod.metadata.annotations or {}).get("scheduling.k8s.io/group-name", "")


@asynccontextmanager
async def watching(client: Client, namespace: str) -> AsyncIterator[History]:
    """Record the history of a namespace's pods until the context ends."""
    history = History()
    reflector = Reflector(client, PODS, history.record, namespace=namespace)
    task = asyncio.create_task(reflector.run())
    await reflector.synced.wait()
    try:
        yield history
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
