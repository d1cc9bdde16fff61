"""The production: an embedded cluster with its controllers, nodes that KWOK plays, and the real scheduler.

The jobs are run by their real controllers, which a twin does not have. Decisions are read from the versions that the
cluster shows, by the reader that a twin uses, so that both sides are counted alike.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from schedspec.api import crds
from schedspec.api.client import Api
from schedspec.api.kinds import Kind
from schedspec.clusters import Settings
from schedspec.clusters.embedded import EmbeddedCluster
from schedspec.lab.plan.answer import PlannedWorld
from schedspec.lab.plan.make import resource_of
from schedspec.lab.twin.choose import work_of
from schedspec.lab.twin.decisions import Decisions
from schedspec.observe import view
from schedspec.observe.watcher import HistoryWriter, Watches
from schedspec.scheduler.inputs import PolicyLoaded
from schedspec.schedulers import Adapter, Scheduler, Site, find
from schedspec.virtual.state import State, read_state
from schedspec.virtual.state.dump import take_state, write_state
from tests.support.live.api_objects import client_of
from tests.support.teams import SPACE, Change, Object, Team, named, node

_WATCHED = (Kind.POD, Kind.PODGROUP, Kind.WORKLOAD)
_SILENCES = 2
"""Times as long as in a twin until the cluster has settled: its controllers decide as well."""
_SETTLES_WITHIN = 60.0
_LISTED = 60.0
_PAUSE = 0.2
_MANAGER = "fidelity"


class ProductionCluster:
    """One cluster whose queues and jobs change. Not thread-safe."""

    def __init__(self, team: Team, adapter: Adapter, site: Site, writer: HistoryWriter, scheduler: Scheduler) -> None:
        self._team, self._adapter, self._site = team, adapter, site
        self._writer, self._scheduler = writer, scheduler
        self.scheduler = team.scheduler

    def apply(self, change: Change) -> None:
        for obj in change.objects:
            self.put(obj)
        if change.policy:
            self._scheduler.use_policy(change.policy)

    def put(self, obj: Object) -> None:
        self._site.api.apply(obj, _MANAGER)

    def end(self, job: Object) -> None:
        """Delete a job with its pods."""
        resource = self._site.api.resource(job["apiVersion"], job["kind"])
        self._site.api.delete(resource.path(job["metadata"]["name"], SPACE))

    def dump(self, file: Path) -> State:
        """Write the state to a file, and return it as `plan` reads it."""
        policy = PolicyLoaded("the production", self._team.policy) if self._team.scheduler != "kueue" else None

        async def take() -> State:
            async with client_of(self._site.kubeconfig) as client:
                return await take_state(client, "the production", (), policy)

        write_state(asyncio.run(take()), file)
        return read_state(file, with_kueue=True)

    def settle(self, state: State | None = None, act: Callable[[], None] = lambda: None) -> PlannedWorld:
        """Act, wait until the cluster has settled, and return what the scheduler decided since.

        Args:
            state: The state before, which names the queues of the work; None if nobody reads the decisions.
            act: What is done to the cluster.
        """
        state = state or State("none", time.time())
        by_workload = self._adapter.marks.unit_evicted is not None
        work = work_of(state)
        jobs = dict(work.jobs)
        work.jobs = jobs
        decisions = Decisions(work, resource_of(state), self._adapter.scheduler_name, by_workload=by_workload)
        history, seen = self._writer.begin(""), 0
        for version in history.since(0):
            seen = version.seq
            decisions.feed(version)
        act()
        began = last = time.monotonic()
        while True:
            for version in history.since(seen):
                seen = version.seq
                if version.ref.kind == Kind.POD and (group := view.group_of(version.object)):
                    jobs.setdefault(f"{version.ref.namespace}/{version.ref.name}", f"{version.ref.namespace}/{group}")
                if decisions.feed(version) or version.change != "changed" or version.ref.kind == Kind.WORKLOAD:
                    last = time.monotonic()  # any other version is a reason that Volcano writes in every session
            self._scheduler.check()
            now = time.monotonic()
            live = history.now()
            if any(map(_changes, live.all(Kind.POD))) or any(map(_ends, live.all(Kind.WORKLOAD))):
                last = now
            if now - last >= _SILENCES * self._adapter.settles_after:
                return decisions.result({}, "")
            if now - began >= _SETTLES_WITHIN:
                return decisions.result({}, f"the production had not settled after {_SETTLES_WITHIN:g} s")
            history.wait(seen, _PAUSE)


def _changes(pod: Object) -> bool:
    """Whether a pod starts or ends."""
    return view.is_leaving(pod) or (bool(pod["spec"].get("nodeName")) and view.phase(pod) == "Pending")


def _ends(workload: Object) -> bool:
    """Whether a Workload is evicted and its pods have not ended yet."""
    return all(view.condition(workload, name).get("status") == "True" for name in ("Evicted", "QuotaReserved"))


@contextmanager
def running(team: Team, folder: Path, progress: Callable[[str], None]) -> Iterator[ProductionCluster]:
    """Start a cluster with the team's nodes and queues and its scheduler; end all of it afterwards."""
    adapter = find(team.scheduler)
    cluster = EmbeddedCluster(Settings(kind="embedded"))
    cluster.up(progress)
    try:
        api = Api(cluster.kubeconfig, cluster.context)
        site = Site(folder, api, cluster.kubeconfig, cluster.context, cluster, None, None, 3.0, progress)
        definitions = adapter.definitions(site)
        assert definitions is not None
        crds.install(api, definitions)
        for obj in (named("v1", "Namespace", SPACE), *map(node, range(team.nodes))):
            api.apply(obj, _MANAGER)
        scheduler = adapter.scheduler(site)
        assert scheduler is not None
        writer = HistoryWriter(adapter.marks)
        watches = Watches(api, writer, _WATCHED)
        try:
            watches.start(_LISTED)
            scheduler.start(team.policy)
            made = ProductionCluster(team, adapter, site, writer, scheduler)
            for obj in team.setup():
                made.put(obj)
            yield made
            watches.check()
        finally:
            scheduler.stop()
            watches.stop()
            api.close()
    finally:
        cluster.down()
