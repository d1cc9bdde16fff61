"""What a session of tests shares: one cluster with its CRDs, its watches, and the scheduler under test."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
from msgspec import structs

from ..api import crds, timeouts
from ..api.client import Api, Object
from ..api.errors import HarnessError
from ..api.kinds import SERVED, Kind
from ..clusters import Cluster, ClusterFacts, provide
from ..clusters.protocol import SCENARIO
from ..observe.expect import Expect, Guard
from ..observe.history import History
from ..observe.watcher import HistoryWriter, Watches
from ..options import Options
from ..schedulers import KUBERNETES, Scheduler, Site, UnsuitableClusterError, deployment
from . import cleanup, preflight, sweep
from .lease import RunLease
from .ownership import Ownership
from .shared_cluster import ClusterHandle, SharedCluster
from .templates import Templates
from .world import World

IMAGE = "schedspec.local/worker:1"


def _own_logs(logs: Path, worker: str) -> Path:
    """A folder of this run alone, for logs and policy files: two runs at once in one checkout do not meet.

    It bears the pid of the run (that of xdist's controller); what runs left that are over is taken away.
    """
    for old in logs.glob("*"):
        if old.name.isdigit() and not psutil.pid_exists(int(old.name)):
            shutil.rmtree(old, ignore_errors=True)
    return logs / str(os.getppid() if worker else os.getpid())


def template_folders(options: Options) -> list[Path]:
    """Where templates are: of each folder first what is for the scheduler under test alone."""
    special = options.adapter.template_folders()
    return [part for folder in options.templates for part in (*(folder / name for name in special), folder)]


class LiveSession:
    """One worker's cluster with the scheduler on it: `open` brings it up, `close` takes it down. A run without
    scenarios never makes one.

    `worker` is the id of an xdist worker, or empty; `run` is the same for all workers of a run.
    """

    def __init__(self, options: Options, worker: str, run: str, tell: Callable[[str], None]) -> None:
        self.options = options
        own = Templates(template_folders(options), {}, options.policies)
        self.policy = options.policy.read_text("utf-8") if options.policy else own.policy("default")
        """What is in force where a scenario names no policy."""
        shared = options.settings.kind == "existing"
        # Whoever else has namespaces there: none of theirs begins like ours.
        prefix = f"spec-{secrets.token_hex(3)}-" if shared else "spec-"
        self.ownership = Ownership(shared, prefix, options.adopt_nodes)
        self.recorder = HistoryWriter(options.adapter.marks, self._covers)
        self.first_running: float | None = None
        """Seconds from the start of the boot until a pod was first seen Running."""
        settings = replace(options.settings, gang_api=options.adapter.gang_api == KUBERNETES)
        self.cluster: Cluster = provide(replace(settings, suffix=worker))
        self._sharing: SharedCluster | None = None
        if worker and self.cluster.kind != "embedded":
            self.cluster = provide(settings)
            self._sharing = SharedCluster(options.out / ".shared" / run)
        self.folder = _own_logs(options.out / "logs", worker) / ("" if self._sharing else worker)
        self._worker, self._tell = worker, tell
        self._numbers = itertools.count(1)
        self._closing = contextlib.ExitStack()
        self._handle: ClusterHandle | None = None
        self._api: Api | None = None
        self._watches: Watches | None = None
        self._youngest = 0.0
        self.scheduler: Scheduler | None = None
        self._lease: RunLease | None = None
        self.claims: Callable[[], Iterable[preflight.Claim]] = tuple
        """What the scenarios of the run are going to make; asked for on a cluster of others."""

    def _covers(self, kind: Kind, obj: Object) -> bool:
        return self.ownership.covers(kind, obj)

    @property
    def api(self) -> Api:
        """The cluster's API server. Raises HarnessError before `open`."""
        if self._api is None:
            raise HarnessError("the session is not open")
        return self._api

    @property
    def handle(self) -> ClusterHandle:
        """How its cluster is reached. Raises HarnessError before `open`."""
        if self._handle is None:
            raise HarnessError("the session is not open")
        return self._handle

    @functools.cached_property
    def scheduler_version(self) -> str:
        """Of the scheduler; it is asked once. Raises HarnessError before `open`."""
        return self.options.adapter.version(self.site)

    @functools.cached_property
    def facts(self) -> ClusterFacts:
        """What the cluster says about itself; it is asked once."""
        return self.cluster.facts()

    @property
    def owns(self) -> bool:
        """True unless another worker has brought the cluster up."""
        return self._sharing is None or self._sharing.owns

    def open(self) -> None:
        """Bring everything up. On failure nothing stays. Raises ClusterError, HarnessError."""
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Take everything down, in the reverse order. The second call does nothing."""
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
            self.scheduler = self.options.adapter.scheduler(self.site)
            if self.scheduler is not None:
                self.scheduler.attach(self._handle.scheduler)
        self._watches = Watches(self.api, self.recorder)
        self._closing.callback(self._watches.stop)
        self._watches.start(timeouts.READY)
        Expect(self.recorder.history).eventually(cleanup.nothing_foreign, within=timeouts.EMPTY)

    def _boot(self) -> ClusterHandle:
        """Bring up the cluster, its CRDs and the scheduler."""
        self._closing.callback(self.cluster.down)
        self.cluster.up(self._tell, self._begin)
        seconds = self.cluster.facts().boot_seconds
        handle = ClusterHandle(
            kind=self.cluster.kind,
            simulated=self.cluster.simulated,
            kubeconfig=str(self.cluster.kubeconfig),
            context=self.cluster.context,
            booted_at=time.monotonic() - seconds,
            boot_seconds=seconds,
            namespace_prefix=self.ownership.namespace_prefix,
            scheduler=None,
        )
        settings = self.options.settings
        if not self.ownership.shared:
            sweep.sweep(self.api)
            if settings.keep or settings.reuse:
                self._closing.callback(sweep.require_gone, self.api)
        if self.cluster.kind == "kind":
            deployment.remove(self.api)  # of a run that was killed
        if self.scheduler is not None:
            self.scheduler.start(self.policy)
        crds.grow_up(self._youngest)
        if self.scheduler is None:
            return handle
        return structs.replace(handle, scheduler=self.scheduler.handle())

    def _begin(self) -> None:
        """What need not wait until nodes take pods: the scheduler's start, and its API."""
        self._connect(self.cluster.kubeconfig, self.cluster.context)
        adapter = self.options.adapter
        if adapter.gang_api == KUBERNETES and not self._gang_api_version:
            raise UnsuitableClusterError(
                "the cluster serves no PodGroups of scheduling.k8s.io (the feature gate GenericWorkload)"
            )
        definitions = adapter.definitions(self.site)
        if self.ownership.shared:
            self._claim(definitions)
        self.scheduler = adapter.scheduler(self.site)
        if self.scheduler is not None:
            self._closing.callback(self.scheduler.stop)
            self.scheduler.launch(self.policy)
        if definitions is not None:
            self._youngest = crds.install(self.api, definitions, SCENARIO if self.ownership.shared else "")

    def _claim(self, definitions: Path | None) -> None:
        """Make a cluster of others ours for this run, once it is known that nothing of theirs stands in the way; what a
        killed run has left is taken away. Raises HarnessError.
        """
        adapter = self.options.adapter
        self._tell(f"{self.cluster.context}: asking what is there, and what is permitted")
        starts, claims = adapter.starts(self.site), self.claims()
        preflight.check(self.api, self.ownership, starts, sees_all=adapter.sees_all, claims=claims)
        self._lease = RunLease(self.api, self.cluster.context)
        self._lease.acquire()
        self._closing.callback(self._lease.release)
        if definitions is not None:
            self._closing.callback(self._remove_definitions, definitions)
        self._closing.callback(sweep.require_gone, self.api)
        sweep.sweep(self.api)

    def _remove_definitions(self, folder: Path) -> None:
        for kept in crds.remove(self.api, folder, SCENARIO):
            self._tell(f"{self.cluster.context}: kept the definition {kept}")

    def _connect(self, kubeconfig: Path, context: str) -> None:
        self._api = Api(kubeconfig, context)
        self._closing.callback(self._api.close)

    @functools.cached_property
    def _gang_api_version(self) -> str:
        """The version of scheduling.k8s.io that has PodGroups here; empty where none has."""
        for kind in (Kind.GANG, Kind.GANG_ALPHA):
            if self.api.raw("GET", SERVED[kind].path(), query={"limit": "1"}).status == 200:
                return SERVED[kind].api_version.rpartition("/")[2]
        return ""

    def described(self) -> dict[str, str]:
        """Which scheduler, which Kubernetes and which kind of cluster this is, for reports."""
        return {"version": self._version, "kubernetes": self._kubernetes, "cluster": self.cluster.kind}

    @functools.cached_property
    def _version(self) -> str:
        return self.options.adapter.version(self.site)

    @functools.cached_property
    def _kubernetes(self) -> str:
        return str(self.api.call("GET", "/version")["gitVersion"])

    @property
    def site(self) -> Site:
        """Where the scheduler runs. Raises HarnessError before `open`."""
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
            tell=self._tell,
        )

    @contextlib.contextmanager
    def scenario(self, name: str) -> Iterator[World]:
        """One scenario's world, open; taken away at the end. Raises DirtyClusterError, SchedulerDiedError."""
        with (
            self._sharing.turn() if self._sharing is not None else contextlib.nullcontext(),
            self._scenario(name) as it,
        ):
            yield it

    @contextlib.contextmanager
    def _scenario(self, name: str) -> Iterator[World]:
        if self._watches is None:
            raise HarnessError("the session is not open")
        guards: list[Guard] = [self._watches.check]
        if self._lease is not None:
            guards.append(self._lease.check)
        if self.scheduler is not None:
            self.scheduler.check()
            self.scheduler.use_policy(self.policy)
            guards.append(self.scheduler.check)
        history = self.recorder.begin(self._namespace(name))
        adapter = self.options.adapter
        expect = Expect(history, self.options.timeout_scale, guards, adapter.silent_for)
        common = {
            "scheduler_name": adapter.scheduler_name,
            "image": IMAGE,
            "namespace": history.namespace,
            "simulated": self.handle.simulated,
            "gang_api_version": self._gang_api_version,
        }
        templates = Templates(template_folders(self.options), common, self.options.policies)
        world = World(self.api, history, expect, templates, self.scheduler, ownership=self.ownership)
        try:
            world.open()
            yield world
        finally:
            self._note_first_running(history)
            # A dead scheduler must not keep the objects from being taken away, nor be told twice.
            quiet = Expect(history, max(1.0, self.options.timeout_scale), [self._watches.check])
            world.close(quiet)

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
