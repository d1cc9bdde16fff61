"""A session of tests: one cluster with its CRDs, its watches, and the scheduler under test."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import psutil
from msgspec import structs

from ..api import clock, crds, timeouts
from ..api.client import Api, Object
from ..api.errors import HarnessError
from ..api.kinds import SERVED, Kind
from ..api.names import Names
from ..clusters import Cluster, ClusterFacts, provide
from ..clusters.protocol import SCENARIO
from ..clusters.simulated import SimulatedCluster
from ..observe.expect import Expect, Guard
from ..observe.history import History
from ..observe.virtual import VirtualApi, VirtualClock, VirtualWatches
from ..observe.watcher import HistoryWriter, Watches
from ..options import Options
from ..schedulers import KUBERNETES, Scheduler, Site, UnsuitableClusterError, from_images, in_cluster
from ..schedulers.renamed import RenamedScheduler
from . import cleanup, preflight
from .lease import RunLease
from .ownership import Ownership
from .shared_cluster import ClusterHandle, SharedCluster
from .templates import Templates
from .world import World

IMAGE = "schedspec.local/worker:1"
_PREFIX = "spec-"


def _own_logs(logs: Path, worker: str) -> Path:
    """Return a folder for logs and policy files of this run alone.

    Concurrent runs in one checkout do not collide: the folder's name is the pid of the run (of xdist's controller).
    Folders of runs that ended are removed.
    """
    for old in logs.glob("*"):
        if old.name.isdigit() and not psutil.pid_exists(int(old.name)):
            shutil.rmtree(old, ignore_errors=True)
    return logs / str(os.getppid() if worker else os.getpid())


def template_folders(options: Options) -> list[Path]:
    """Return the folders of templates. Before each folder comes its subfolder for the scheduler under test."""
    special = options.adapter.template_folders()
    return [part for folder in options.templates for part in (*(folder / name for name in special), folder)]


class LiveSession:
    """One worker's cluster with its scheduler, between `open` and `close`.

    A run without scenarios never opens a session.

    Args:
        worker: Id of the xdist worker, or empty.
        run: Id of the run, the same for all of its workers.
    """

    def __init__(self, options: Options, worker: str, run: str, progress: Callable[[str], None]) -> None:
        self.options = options
        own = Templates(template_folders(options), {}, options.policies)
        self.policy = options.policy.read_text("utf-8") if options.policy else own.policy("default")
        """The policy of scenarios that name no policy."""
        self.policy_name = options.policy.stem if options.policy else "default"
        shared = options.settings.kind == "existing"
        # On a shared cluster, the prefix of our namespaces is unique.
        prefix = f"{_PREFIX}{secrets.token_hex(3)}-" if shared else _PREFIX
        self.ownership = Ownership(shared, prefix, options.adopt_nodes)
        self.names = Names()
        """Real names of the run's cluster-wide objects."""
        self.history_writer = HistoryWriter(options.adapter.marks, self._covers, options.adapter.unmarked_eviction)
        self.first_running: float | None = None
        """Seconds from the start of the boot until a pod was first seen Running."""
        settings = replace(options.settings, gang_api=options.adapter.gang_api == KUBERNETES)
        self.cluster: Cluster = provide(replace(settings, suffix=worker))
        self._sharing: SharedCluster | None = None
        if worker and self.cluster.kind not in ("embedded", "simulated"):
            self.cluster = provide(settings)
            self._sharing = SharedCluster(options.out / ".shared" / run)
        self.folder = _own_logs(options.out / "logs", worker) / ("" if self._sharing else worker)
        self._worker, self._progress = worker, progress
        self._numbers = itertools.count(1)
        self._closing = contextlib.ExitStack()
        self._handle: ClusterHandle | None = None
        self._api: Api | None = None
        self._watches: Watches | VirtualWatches | None = None
        self._newest_crd = 0.0
        self.scheduler: Scheduler | None = None
        self._lease: RunLease | None = None
        self.claims: Callable[[], Iterable[preflight.Claim]] = tuple
        """Returns the names that the run's scenarios will use; needed on a shared cluster."""

    def _covers(self, kind: Kind, obj: Object) -> bool:
        if not self.ownership.covers(kind, obj):
            return False
        meta = obj["metadata"]  # a foreign priority class is hidden if one of ours has its name in the history
        return SCENARIO in (meta.get("labels") or {}) or not self.names.is_renamed(kind, meta["name"])

    @property
    def api(self) -> Api:
        """The cluster's API server.

        Raises:
            HarnessError: the session is not open.
        """
        if self._api is None:
            raise HarnessError("the session is not open")
        return self._api

    @property
    def handle(self) -> ClusterHandle:
        """How to reach the cluster.

        Raises:
            HarnessError: the session is not open.
        """
        if self._handle is None:
            raise HarnessError("the session is not open")
        return self._handle

    @functools.cached_property
    def scheduler_version(self) -> str:
        """Version of the scheduler, cached.

        Raises:
            HarnessError: the session is not open.
        """
        return self.options.adapter.version(self.site)

    @functools.cached_property
    def facts(self) -> ClusterFacts:
        """Facts that the cluster reports, cached."""
        return self.cluster.facts()

    @property
    def owns(self) -> bool:
        """False if another worker started the cluster."""
        return self._sharing is None or self._sharing.owns

    def open(self) -> None:
        """Start the cluster, the scheduler and the watches. If one of them fails, stop everything.

        Raises:
            ClusterError: the cluster could not be started.
            HarnessError: the scheduler or its API could not be started.
        """
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stop everything in reverse order. The second call does nothing."""
        self._closing.close()

    def _open(self) -> None:
        if self._sharing is not None:
            self._handle = self._sharing.enter(self._boot)
            self._closing.callback(self._sharing.leave)
            self.ownership = replace(self.ownership, namespace_prefix=self._handle.namespace_prefix)
        else:
            self._handle = self._boot()
        if self._api is None:
            self._connect(Path(self._handle.kubeconfig), self._handle.context)
        if self.scheduler is None and self._handle.scheduler is not None:
            self.scheduler = self._new_scheduler()
            if self.scheduler is not None:
                self.scheduler.attach(self._handle.scheduler)
        self._watches = self._new_watches()
        self._closing.callback(self._watches.stop)
        self._watches.start(timeouts.READY)
        Expect(self.history_writer.history).eventually(cleanup.nothing_foreign, within=timeouts.EMPTY)

    def _new_watches(self) -> Watches | VirtualWatches:
        if isinstance(self.cluster, SimulatedCluster):
            return VirtualWatches(self.cluster.virtual, self.history_writer)
        return Watches(self.api, self.history_writer)

    def _boot(self) -> ClusterHandle:
        """Start the cluster, its CRDs and the scheduler."""
        self._closing.callback(self.cluster.down)
        self.cluster.up(self._progress, self._begin)
        seconds = self.cluster.facts().boot_seconds
        handle = ClusterHandle(
            kind=self.cluster.kind,
            simulated=self.cluster.simulated,
            kubeconfig=str(self.cluster.kubeconfig),
            context=self.cluster.context,
            booted_at=clock.monotonic() - seconds,
            boot_seconds=seconds,
            namespace_prefix=self.ownership.namespace_prefix,
            scheduler=None,
        )
        settings = self.options.settings
        if not self.ownership.shared:
            cleanup.sweep(self.api)
            if settings.keep or settings.reuse:
                self._closing.callback(cleanup.require_gone, self.api)
        if self.cluster.kind == "kind":
            in_cluster.remove(self.api)  # left by a killed run
            from_images.remove(self.api)
        if self.scheduler is not None:
            self.scheduler.start(self.policy)
        crds.wait_for_creation(self._newest_crd)
        if self.scheduler is None:
            return handle
        return structs.replace(handle, scheduler=self.scheduler.handle())

    def _begin(self) -> None:
        """Start the scheduler and install its CRDs as soon as the API server answers: neither needs nodes."""
        self._connect(self.cluster.kubeconfig, self.cluster.context)
        adapter = self.options.adapter
        if adapter.gang_api == KUBERNETES and not self._gang_api_version:
            raise UnsuitableClusterError(
                "the cluster serves no PodGroups of scheduling.k8s.io (the feature gate GenericWorkload)"
            )
        definitions = adapter.definitions(self.site)
        if self.ownership.shared:
            self._claim(definitions)
        self.scheduler = self._new_scheduler()
        if self.scheduler is not None:
            self._closing.callback(self.scheduler.stop)
            self.scheduler.launch(self.policy)
        if definitions is not None:
            self._newest_crd = crds.install(self.api, definitions, SCENARIO if self.ownership.shared else "")

    def _new_scheduler(self) -> Scheduler | None:
        scheduler = self.options.adapter.scheduler(self.site)
        if scheduler is None or not self.ownership.shared:
            return scheduler
        return RenamedScheduler(scheduler, self.names)

    def _claim(self, definitions: Path | None) -> None:
        """Prepare a shared cluster for this run and remove the remains of killed runs.

        Raises:
            HarnessError: the cluster is in use or not suitable.
        """
        adapter = self.options.adapter
        self._progress(f"{self.cluster.context}: checking its objects and our rights")
        preflight.check(self.api, self.ownership, adapter.starts(self.site), sees_all=adapter.sees_all)
        self._lease = RunLease(self.api, self.cluster.context)
        self._lease.acquire()
        self._closing.callback(self._lease.release)
        if definitions is not None:
            self._closing.callback(self._remove_definitions, definitions)
        self._closing.callback(cleanup.require_gone, self.api)
        cleanup.sweep(self.api)

    def _remove_definitions(self, folder: Path) -> None:
        for kept in crds.remove(self.api, folder, SCENARIO):
            self._progress(f"{self.cluster.context}: kept the definition {kept}")

    def _connect(self, kubeconfig: Path, context: str) -> None:
        if isinstance(self.cluster, SimulatedCluster):
            self._api = VirtualApi(self.cluster.virtual)
            clock.use(VirtualClock(self.cluster.virtual))
            self._closing.callback(clock.use, clock.REAL)
        else:
            if self.ownership.shared:
                self.names = Names.of_run(self.ownership.namespace_prefix.removeprefix(_PREFIX).rstrip("-"))
            self._api = Api(kubeconfig, context, names=self.names)
            self._rename()
        self._closing.callback(self._api.close)

    def _rename(self) -> None:
        """Find real names for the scenarios' objects whose names foreign objects have."""
        if not self.ownership.shared:
            return
        for ref in preflight.taken(self.api, self.ownership, self.claims()):
            self.names.rename(ref)
        if self.owns and (renamed := self.names.renamed()):
            real = ", ".join(f"{ref} is {self.names.real(ref.kind, ref.name)}" for ref in renamed)
            self._progress(f"{self.cluster.context}: other users have objects of these names; in this run {real}")

    @functools.cached_property
    def _gang_api_version(self) -> str:
        """Return the version of scheduling.k8s.io that serves PodGroups; empty if none does."""
        for kind in (Kind.GANG, Kind.GANG_ALPHA):
            if self.api.raw("GET", SERVED[kind].path(), query={"limit": "1"}).status == 200:
                return SERVED[kind].api_version.rpartition("/")[2]
        return ""

    def described(self) -> dict[str, str]:
        """Return the versions of the scheduler and of Kubernetes, and the kind of cluster, for reports."""
        return {"version": self._version, "kubernetes": self._kubernetes, "cluster": self.cluster.kind}

    @functools.cached_property
    def _version(self) -> str:
        return self.options.adapter.version(self.site)

    @functools.cached_property
    def _kubernetes(self) -> str:
        if isinstance(self.cluster, SimulatedCluster):  # virtual time decided, not a version of Kubernetes
            return ""
        return str(self.api.call("GET", "/version")["gitVersion"])

    @property
    def site(self) -> Site:
        """Where the scheduler runs.

        Raises:
            HarnessError: the session is not open.
        """
        return Site(
            folder=self.folder,
            api=self.api,
            kubeconfig=self.cluster.kubeconfig if self._handle is None else Path(self._handle.kubeconfig),
            context=self.cluster.context if self._handle is None else self._handle.context,
            cluster=self.cluster,
            namespace_prefix=self.ownership.namespace_prefix if self.ownership.shared else "",
            programs=self.options.settings.binaries,
            scheduler_programs=self.options.scheduler_binaries,
            scale=self.options.timeout_scale,
            progress=self._progress,
        )

    @contextlib.contextmanager
    def scenario(self, name: str) -> Iterator[World]:
        """Open one scenario's world and clean it up at the end.

        Raises:
            DirtyClusterError: objects remain.
            SchedulerDiedError: the scheduler died.
        """
        with (
            self._sharing.turn() if self._sharing is not None else contextlib.nullcontext(),
            self._scenario(name) as world,
        ):
            yield world

    @contextlib.contextmanager
    def _scenario(self, name: str) -> Iterator[World]:
        if self._watches is None:
            raise HarnessError("the session is not open")
        guards: list[Guard] = [self._watches.check]
        if self._lease is not None:
            guards.append(self._lease.check)
        if self.scheduler is not None:
            self.scheduler.use_policy(self.policy)  # may restart the scheduler
            self.scheduler.check()
            guards.append(self.scheduler.check)
        history = self.history_writer.begin(self._namespace(name))
        adapter = self.options.adapter
        expect = Expect(history, self.options.timeout_scale, guards, adapter.silent_for)
        common = {
            "scheduler_name": adapter.scheduler_name,
            "image": IMAGE,
            "namespace": history.namespace,
            "simulated": self.handle.simulated,
            "gang_api_version": self._gang_api_version,
            "configuration": self.options.adapter.configuration,
        }
        templates = Templates(template_folders(self.options), common, self.options.policies)
        world = World(
            self.api, history, expect, templates, self.scheduler, ownership=self.ownership, companions=self._companions
        )
        try:
            world.open()
            yield world
        finally:
            self._note_first_running(history)
            # A dead scheduler must not prevent the clean-up, nor be reported twice.
            quiet = Expect(history, max(1.0, self.options.timeout_scale), [self._watches.check])
            world.close(quiet)

    def _companions(self, queues: Sequence[Object], own_nodes: Sequence[Object], policy: str) -> Sequence[Object]:
        adapter, text = self.options.adapter, policy or self.policy
        adapter.configure(queues, own_nodes, text)
        return adapter.companions(queues, own_nodes, text)

    def _namespace(self, name: str) -> str:
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:32].strip("-") or "scenario"
        worker = f"-{self._worker}" if self._worker else ""
        return f"{self.ownership.namespace_prefix}{slug}{worker}-{next(self._numbers)}"

    def _note_first_running(self, history: History) -> None:
        if self.first_running is None:
            running = (
                version.at
                for version in history.versions(Kind.POD)
                if version.object.get("status", {}).get("phase") == "Running"
            )
            first = next(running, None)
            self.first_running = first - self.handle.booted_at if first is not None else None
