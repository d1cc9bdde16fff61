"""Lifecycle of one cluster on this machine: its name, its record, its reaper, and the lock of a reused one.

The one rule: a caller that enters `making` leaves either a recorded, running cluster or nothing at all.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from . import reaper
from .cleanup import destroy
from .paths import new_home
from .programs.binaries import Binary
from .protocol import BootError, ClusterKind, Settings
from .registry import ClusterRecord, Owner, Registry


class ClusterLifecycle:
    """Lifecycle of one cluster. Not thread-safe; one owner."""

    def __init__(self, kind: str, unique: str, settings: Settings) -> None:
        """Prepare a cluster.

        Args:
            kind: `embedded` or `kind`.
            unique: Part of the name. Random; for a reusable cluster, a digest of everything that it is made of.
            settings: Settings of the run.
        """
        self._kind = kind
        self._settings = settings
        self._registry = Registry()
        self._record: ClusterRecord | None = None
        self._reaper: subprocess.Popen[bytes] | None = None
        self._lock: FileLock | None = None
        self.name = "-".join(filter(None, (kind, unique, settings.suffix)))

    @property
    def keep(self) -> bool:
        """Whether the cluster outlives this process."""
        return self._settings.reuse or self._settings.keep

    @property
    def up(self) -> bool:
        return self._record is not None

    @property
    def record(self) -> ClusterRecord:
        """Record of the running cluster.

        Raises:
            BootError: the cluster is not up.
        """
        if self._record is None:
            raise BootError("the cluster is not up", self.name, "call up() first")
        return self._record

    def adopt(self, healthy: Callable[[ClusterRecord], bool]) -> bool:
        """Lock the first name of this reusable cluster that is free. Return True if that cluster runs.

        A name is free if no process uses it and, without `Settings.joins`, if its cluster is of no other session.
        Clusters of this session come first.
        """
        for name in self._names(self.name):
            lock = self._registry.lock(name)
            with contextlib.suppress(Timeout):
                lock.acquire(timeout=0)
                record = self._registry.find(name)
                if record is None or self._settings.joins or not record.of_another_session:
                    self.name, self._lock = name, lock
                    break
                lock.release()
        if record is None:
            return False
        if not healthy(record):
            destroy(record, self._registry)
            return False
        if not record.session.alive:
            record = replace(record, session=Owner.session())
            self._registry.update(record)
        self._record = record
        return True

    def _names(self, plain: str) -> Iterator[str]:
        pattern = re.compile(rf"{re.escape(plain)}(-\d+)?")
        known = [record for record in self._registry.records() if pattern.fullmatch(record.name)]
        yield from (record.name for record in known if record.session == Owner.session())
        yield plain
        yield from (f"{plain}-{slot}" for slot in itertools.count(2))

    @contextmanager
    def making(self, kubeconfig: str, context: str, ports: int = 0) -> Iterator[ClusterRecord]:
        """Record a cluster that is created inside this block. It has a directory of its own and a reaper.

        If the block raises, the cluster is removed.

        Args:
            kubeconfig: Path relative to that directory.
            context: Context in the kubeconfig.
            ports: How many ports to reserve.
        """
        self._record = self._add_record(Path(kubeconfig), context, ports)
        try:
            self._reaper = reaper.start(self._record)
            yield self._record
            if self.keep:
                self._record = self._record.kept()
                self._registry.update(self._record)
                self._stop_reaper()
        except BaseException:
            self._release()  # the name stays locked: the next attempt creates the cluster under the same name
            raise

    def _add_record(self, kubeconfig: Path, context: str, ports: int) -> ClusterRecord:
        home = new_home(self.name)
        record = ClusterRecord(
            name=self.name,
            kind=self._kind,
            owner=Owner.me(),
            keep=False,
            home=home,
            kubeconfig=home / kubeconfig,
            context=context,
        )
        try:
            return self._registry.add(record, ports=ports)
        except BaseException:
            home.rmdir()
            raise

    def end(self) -> None:
        """Remove the cluster, or release one that is kept. The second call does nothing."""
        try:
            self._release()
        finally:
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def _release(self) -> None:
        record, self._record = self._record, None
        try:
            if record is not None and not record.keep:
                destroy(record, self._registry)
        finally:
            self._stop_reaper()

    def _stop_reaper(self) -> None:
        if self._reaper is not None:
            reaper.stop(self._reaper)
            self._reaper = None


class MadeCluster:
    """The part of a `Cluster` of this process that does not depend on how the cluster is created.

    A subclass creates its cluster inside `self._lifecycle.making(...)` and nowhere else, so that a failed or killed
    creation is cleaned up.
    """

    kind: ClusterKind

    def __init__(self, settings: Settings, unique: str) -> None:
        """Prepare a cluster; `ClusterLifecycle` documents `unique`."""
        self._settings = settings
        self._lifecycle = ClusterLifecycle(self.kind, unique, settings)
        self._binaries: dict[str, Binary] = {}
        self._boot_seconds = 0.0

    @property
    def name(self) -> str:
        return self._lifecycle.name

    @property
    def kubeconfig(self) -> Path:
        return self._lifecycle.record.kubeconfig

    @property
    def context(self) -> str:
        return self._lifecycle.record.context

    def down(self) -> None:
        self._lifecycle.end()
