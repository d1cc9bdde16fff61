"""Run one world on a twin: etcd, API server and KWOK with the objects of a state, and the real scheduler.

The world has settled when the scheduler has decided nothing for as long as its adapter says.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ...api import crds
from ...api.client import Api
from ...api.kinds import Kind
from ...clusters.embedded import EmbeddedCluster
from ...clusters.protocol import Settings
from ...observe.history import History
from ...observe.watcher import HistoryWriter, Watches
from ...schedulers.adapter import Adapter, AdapterError, Site
from ...virtual.state import State
from ..plan.answer import PlannedWorld
from .decisions import Decisions, Work
from .etcd import Etcd
from .objects import objects_of
from .owners import Owners

_WATCHED = (Kind.POD, Kind.PODGROUP, Kind.WORKLOAD)
_LISTED_SECONDS = 60.0
_PAUSE = 0.1
_UNTOLD = 5
"""Times as long as usual a scheduler has to be silent if there is work of which it has shown nothing."""


@dataclass(frozen=True, slots=True)
class Twin:
    """The scheduler of a twin, and how its worlds run."""

    adapter: Adapter
    programs: Path | None
    """The user's folder with the scheduler's programs, if any."""
    progress: Callable[[str], None]
    settle: float = 120.0
    """Seconds after which a world that has not settled is cut."""
    grace: float = 1.0
    """Seconds that a victim takes to end."""
    stopped: threading.Event = field(default_factory=threading.Event)
    """Set by the caller to end all worlds."""

    @property
    def asks_kueue(self) -> bool:
        """Whether the scheduler decides by Workloads."""
        return self.adapter.marks.unit_evicted is not None


@dataclass(frozen=True, slots=True)
class World:
    """What one world has."""

    state: State
    policy: str
    """The scheduler's own configuration."""
    work: Work
    """Names of the state's work."""
    resource: str
    """The resource in which amounts are counted."""
    ours: Collection[str] = ()
    """Names of the scheduler in the state's pods; empty: every pod of a PodGroup is its."""


def run_world(twin: Twin, world: World) -> tuple[PlannedWorld, str]:
    """Run one world until it settles. Takes seconds, and the memory of a control plane.

    Returns:
        What the scheduler decided, and its version.

    Raises:
        HarnessError, ClusterError: the world could not be made, or the scheduler ended.
    """
    decisions = Decisions(world.work, world.resource, twin.adapter.scheduler_name, by_workload=twin.asks_kueue)
    with tempfile.TemporaryDirectory() as folder, booted(twin, Path(folder)) as (site, cluster):
        etcd = Etcd(cluster.etcd, site.api)
        definitions = twin.adapter.definitions(site)
        if definitions is not None:
            crds.install(site.api, definitions)
        shift = time.time() - world.state.taken
        objects = objects_of(
            world.state,
            twin.adapter.scheduler_name,
            shift,
            twin.grace,
            world.ours,
            serves_kueue=twin.asks_kueue,
        )
        number = etcd.load(objects)
        version = twin.adapter.version(site)
        who = f"{twin.adapter} {version}".strip()
        twin.progress(f"{cluster.name}: {number} objects, {who} decides")
        with _watched(twin, site.api) as history:
            scheduler = twin.adapter.alone(site)
            if scheduler is None:
                raise AdapterError(f"{twin.adapter} has no program that a twin could run")
            owners = Owners(site.api, etcd, twin.grace, decisions.deleted)
            try:
                scheduler.start(world.policy)
                problem = _settle(twin, history, decisions, owners, scheduler.check)
            finally:
                scheduler.stop()
                etcd.close()
    return decisions.result({}, problem), version


@contextmanager
def booted(twin: Twin, folder: Path) -> Iterator[tuple[Site, EmbeddedCluster]]:
    """Boot an embedded cluster without controllers, and remove it at the end."""
    cluster = EmbeddedCluster(Settings(kind="embedded"), with_controllers=False)
    cluster.up(twin.progress)
    try:
        api = Api(cluster.kubeconfig, cluster.context)
        try:
            yield (
                Site(
                    folder, api, cluster.kubeconfig, cluster.context, cluster, None, twin.programs, 1.0, twin.progress
                ),
                cluster,
            )
        finally:
            api.close()
    finally:
        cluster.down()


@contextmanager
def _watched(twin: Twin, api: Api) -> Iterator[History]:
    writer = HistoryWriter(twin.adapter.marks)
    watches = Watches(api, writer, _WATCHED)
    try:
        watches.start(_LISTED_SECONDS)
        yield writer.begin("")
        watches.check()
    finally:
        watches.stop()


def _settle(twin: Twin, history: History, decisions: Decisions, owners: Owners, check: Callable[[], None]) -> str:
    """Feed versions until the scheduler has been silent for long enough. Return why the world did not settle."""
    began = last = time.monotonic()
    seen = 0
    while True:
        for version in history.since(seen):
            seen = version.seq
            owners.feed(version)
            if decisions.feed(version):
                last = time.monotonic()
        if twin.stopped.is_set():
            return "it was stopped"
        owners.act()
        check()
        now = time.monotonic()
        if owners.are_busy:
            last = now
        usual, publishes = twin.adapter.settles_after, not twin.adapter.silent_for
        if now - last >= usual and now - last >= usual * (_UNTOLD if publishes and not decisions.all_told else 1):
            return ""
        if now - began >= twin.settle:
            return f"the scheduler still decided after {twin.settle:g} s"
        history.wait(seen, _PAUSE)
