"""Set up the scenario of a fault test: nodes, queues, gangs and schedulers; record the history of its pods."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from schedspec.scheduler.controllers.runtime.objects import JOBS
from schedspec.scheduler.kube import EVENTS, NAMESPACES, NODES, PODGROUPS, PODS, QUEUES, Client, Conflict, NotFound
from schedspec.scheduler.kube.resource import Resource
from schedspec.scheduler.live.leader import LEASES
from schedspec.scheduler.live.leader import NAME as LEASE
from tests.support.live.api_objects import apply_crds, client_of, each, gangs, queue, settled_node
from tests.support.live.history import History, watching
from tests.support.live.later_gang import report_on_a_later_gang
from tests.support.live.monitored import monitored
from tests.support.live.proxy import Proxy, between
from tests.support.live.scheduler_process import Scheduler

NAMESPACE = "faults"
LATER = "later"
"""Namespace of the gangs of `report_on_a_later_gang`. No history and no monitor watches this namespace."""
RECLAIM = """\
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""


class TargetCluster:
    """A cluster for one test at a time. `nodes`: node name → allocatable amounts."""

    def __init__(self, kubeconfig: Path, context: str, components: list[subprocess.Popen[bytes]]) -> None:
        self.kubeconfig = kubeconfig
        self._context = context
        self.nodes: dict[str, dict[str, str]] = {}
        self.client: Client
        self.history: History
        self.proxy: Proxy
        self.through: Path
        self._schedulers: list[Scheduler] = []
        self._queue = "default"
        self._later = 0
        self.components = components

    @asynccontextmanager
    async def scenario(
        self,
        nodes: int = 3,
        cpu: str = "4",
        queues: list[dict[str, Any]] | None = None,
    ) -> AsyncIterator[None]:
        """Set up the scenario. Afterwards check the history, kill the schedulers and empty the cluster."""
        with tempfile.TemporaryDirectory() as folder:
            async with client_of(self.kubeconfig) as client, between(self.kubeconfig, Path(folder)) as (proxy, through):
                self.client, self.proxy, self.through = client, proxy, through
                await apply_crds(client)
                await self._clear()
                with contextlib.suppress(Conflict):
                    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
                for wanted in queues if queues is not None else [queue("default")]:
                    await client.create(QUEUES, wanted)
                    self._queue = wanted["metadata"]["name"]
                for i in range(nodes):
                    await self.add_node(f"node-{i}", cpu)
                async with (
                    watching(client, NAMESPACE) as history,
                    monitored(self.kubeconfig, self._context, NAMESPACE) as monitors,
                ):
                    self.history = history
                    try:
                        yield
                        history.check(self.nodes)
                        await history.until(
                            lambda: monitors.have_seen(history.pods.values()),
                            "the monitors have seen the latest version of every pod",
                        )
                        monitors.check(RECLAIM)
                    except Exception as error:
                        for number, scheduler in enumerate(self._schedulers, 1):
                            error.add_note(f"log of scheduler {number} ends with:\n{scheduler.log.read_text()[-3000:]}")
                        raise
                    finally:
                        for scheduler in self._schedulers:
                            scheduler.kill()
                        self._schedulers.clear()
                await self._clear()

    async def add_node(self, name: str, cpu: str = "4") -> None:
        self.nodes[name] = await settled_node(self.client, name, cpu)

    async def gang(self, name: str, size: int, queue_name: str = "default", cpu: str = "1") -> None:
        await gangs(self.client, name, 1, size, queue_name, cpu=cpu, namespace=NAMESPACE)

    def start(self, *more: str, policy: str = RECLAIM, controllers: str = "none") -> Scheduler:
        """Start a scheduler that reaches the cluster through the proxy."""
        return self._start(self.through, *more, policy=policy, controllers=controllers)

    @asynccontextmanager
    async def second_proxy(
        self, *, only_controllers: bool = False
    ) -> AsyncIterator[tuple[Proxy, Callable[..., Scheduler]]]:
        """Start another proxy; yield it, and the function that starts a second replica or the controllers behind it."""
        with tempfile.TemporaryDirectory() as folder:
            async with between(self.kubeconfig, Path(folder)) as (proxy, through):
                yield proxy, partial(self._start, through, only_controllers=only_controllers)

    def _start(
        self,
        kubeconfig: Path,
        *more: str,
        policy: str = RECLAIM,
        controllers: str = "none",
        only_controllers: bool = False,
    ) -> Scheduler:
        options = ("--node-selector", "schedspec.dev/world=true", *more)
        scheduler = Scheduler(kubeconfig, policy, *options, controllers=controllers, only_controllers=only_controllers)
        self._schedulers.append(scheduler)
        return scheduler

    async def delete_pod(self, name: str) -> None:
        await self.client.delete(PODS, name, NAMESPACE, grace=0)

    def stopped(self, scheduler: Scheduler) -> None:
        """Record that the test itself has stopped the scheduler."""
        self._schedulers.remove(scheduler)

    async def ready(self, scheduler: Scheduler) -> None:
        """Wait until every watch of a scheduler has listed."""
        await asyncio.to_thread(scheduler.wait_ready)

    async def bound(self, count: int) -> None:
        """Wait until exactly `count` pods have a node."""
        await self.history.until(lambda: len(self.history.bound()) == count, f"{count} pods have a node")

    @property
    def certificates(self) -> str:
        """Return a file in the folder of the cluster: its CA certificate, or the kubeconfig."""
        config = yaml.safe_load(self.kubeconfig.read_text())
        return str(config["clusters"][0]["cluster"].get("certificate-authority") or self.kubeconfig)

    def ends_with_the_cluster(self, process: subprocess.Popen[bytes]) -> None:
        """Record a component that a test restarted, so that it is killed after the cluster has ended."""
        self.components.append(process)

    async def assert_settled(self) -> None:
        """Assert that the scheduler has settled: it binds and evicts nothing until two reports later.

        Each report is on a gang that is newer than everything else, and is written after the binds and evictions of its
        cycle. The second report also covers the cycle that the first writes caused.
        """
        before = (self.history.bound(), set(self.history.evicting))
        for _ in range(2):
            await self._report_on_a_later_gang()
        assert (self.history.bound(), set(self.history.evicting)) == before

    async def _report_on_a_later_gang(self) -> None:
        self._later += 1
        with contextlib.suppress(Conflict):
            await self.client.create(NAMESPACES, {"metadata": {"name": LATER}})
        await report_on_a_later_gang(self.client, f"later-{self._later}", self._queue, LATER)

    async def _clear(self) -> None:
        self.nodes.clear()
        with contextlib.suppress(NotFound):
            await self.client.delete(LEASES, LEASE, "default")
        for namespace in (NAMESPACE, "default"):
            await self.client.http.request("DELETE", EVENTS.path(namespace))
        for resource, grace in ((JOBS, None), (PODS, 0), (PODGROUPS, None), (NODES, None), (QUEUES, None)):
            await self._remove_all(resource, grace)

    async def _remove_all(self, resource: Resource[Any], grace: int | None) -> None:
        async def remove(item: Any) -> None:
            with contextlib.suppress(NotFound, Conflict):
                await self.client.delete(resource, item.metadata.name, item.metadata.namespace, grace=grace)

        for _ in range(100):
            listing = await self.client.list(resource)
            left = [*listing.items, *listing.malformed]
            if not left:
                return
            await each(left, remove)
            await asyncio.sleep(0.05)
        raise AssertionError(f"{resource.id} cannot be cleared")
