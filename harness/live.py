"""What a session of tests shares: one cluster with its CRDs, its watches, and the scheduler under test."""

from __future__ import annotations

import contextlib
import itertools
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from harness import crds, sweep, timeouts
from harness.client import Api
from harness.clusters import Cluster, provide
from harness.errors import HarnessError
from harness.expect import Expect, Guard
from harness.history import History
from harness.kinds import Kind
from harness.options import Options
from harness.render import Templates
from harness.scheduler_process import SchedulerProcess
from harness.watching import Recorder, Watches
from harness.world import World

ROOT = Path(__file__).resolve().parent.parent
TEMPLATES = ROOT / "templates"
IMAGE = "schedspec.local/worker:1"


class LiveSession:
    """One worker's ground: `open` brings it up, `close` takes it down. A run without scenarios never makes one."""

    def __init__(self, options: Options, worker: str, tell: Callable[[str], None]) -> None:
        self.options = options
        self.folder = options.out / "logs" / worker if worker else options.out / "logs"
        self.policy = (options.policy or TEMPLATES / "policies/default.yaml").read_text("utf-8")
        """What is in force where a scenario names no policy."""
        self.cluster: Cluster = provide(replace(options.settings, suffix=worker))
        self.scheduler: SchedulerProcess | None = None
        self.recorder = Recorder()
        self.boot_seconds = 0.0
        self.first_running: float | None = None
        """Seconds from the start of the boot until a pod was first seen Running."""
        self._worker, self._tell = worker, tell
        self._api: Api | None = None
        self._watches: Watches | None = None
        self._booted_at = 0.0
        self._numbers = itertools.count(1)
        self._closing = contextlib.ExitStack()

    @property
    def api(self) -> Api:
        """The cluster's API server. Raises HarnessError before `open`."""
        if self._api is None:
            raise HarnessError("the session is not open")
        return self._api

    def open(self) -> None:
        """Bring everything up. On failure nothing stays. Raises ClusterError, HarnessError."""
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        self._closing.callback(self.cluster.down)
        self.cluster.up(self._tell)
        self.boot_seconds = self.cluster.facts().boot_seconds
        self._booted_at = time.monotonic() - self.boot_seconds
        self._api = Api(self.cluster.kubeconfig, self.cluster.context)
        self._closing.callback(self._api.close)
        crds.install(self._api, ROOT / "scheduler/crds", overwrite=self.cluster.kind != "existing")
        left = sweep.sweep(self._api)
        self._watches = Watches(self._api, self.recorder)
        self._closing.callback(self._watches.stop)
        self._watches.start(timeouts.READY)
        if left:
            Expect(self.recorder.history).eventually(sweep.swept, within=timeouts.NAMESPACES)
        if self.options.scheduler == "python":
            self.scheduler = SchedulerProcess(
                self.folder, self.cluster.kubeconfig, self.cluster.context, scale=self.options.timeout_scale
            )
            self._closing.callback(self.scheduler.stop)
            self.scheduler.start(self.policy)

    def close(self) -> None:
        """Take everything down, in the reverse order. The second call does nothing."""
        self._closing.close()

    @contextlib.contextmanager
    def scenario(self, name: str) -> Iterator[World]:
        """One scenario's world, open; taken away at the end. Raises DirtyClusterError, SchedulerDiedError."""
        if self._watches is None:
            raise HarnessError("the session is not open")
        guards: list[Guard] = [self._watches.check]
        if self.scheduler is not None:
            self.scheduler.check()
            self.scheduler.use_policy(self.policy)
            guards.append(self.scheduler.check)
        history = self.recorder.begin(self._namespace(name))
        expect = Expect(history, self.options.timeout_scale, guards)
        common = {
            "scheduler_name": "schedspec",
            "image": IMAGE,
            "namespace": history.namespace,
            "simulated": self.cluster.simulated,
        }
        world = World(self.api, history, expect, Templates(TEMPLATES, common), self.scheduler)
        try:
            world.open()
            yield world
        finally:
            self._note_first_running(history)
            # A dead scheduler must not keep the objects from being taken away, nor be told twice.
            quiet = Expect(history, self.options.timeout_scale, [self._watches.check])
            world.close(quiet)

    def _namespace(self, name: str) -> str:
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:32].strip("-") or "scenario"
        worker = f"-{self._worker}" if self._worker else ""
        return f"spec-{slug}{worker}-{next(self._numbers)}"

    def _note_first_running(self, history: History) -> None:
        if self.first_running is None:
            running = (
                version.at
                for version in history.versions(Kind.POD)
                if version.object.get("status", {}).get("phase") == "Running"
            )
            first = next(running, None)
            self.first_running = first - self._booted_at if first is not None else None
