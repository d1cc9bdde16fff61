"""One cluster's stay on this machine: its name, its record, its guardian, and the lock of one that is reused.

The one rule: whoever enters with `making` leaves either a recorded, running cluster or nothing at all.
"""

from __future__ import annotations

import contextlib
import itertools
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from . import reaper
from .cleanup import destroy
from .paths import new_home
from .protocol import BootError, Settings
from .registry import ClusterRecord, Owner, Registry


class ClusterLifecycle:
    """Not thread-safe; one owner."""

    def __init__(self, kind: str, unique: str, settings: Settings) -> None:
        """`unique` tells this cluster from every other; for a reusable one, from every one that is not its equal."""
        self._kind = kind
        self._settings = settings
        self._registry = Registry()
        self._record: ClusterRecord | None = None
        self._guardian: subprocess.Popen[bytes] | None = None
        self._lock: FileLock | None = None
        self.name = "-".join(filter(None, (kind, unique, settings.suffix)))

    @property
    def keep(self) -> bool:
        """Whether the cluster is to outlive this process."""
        return self._settings.reuse or self._settings.keep

    @property
    def up(self) -> bool:
        return self._record is not None

    @property
    def record(self) -> ClusterRecord:
        """Raises BootError if there is no cluster yet, or none any more."""
        if self._record is None:
            raise BootError("the cluster is not up", self.name, "call up() first")
        return self._record

    def adopt(self, healthy: Callable[[ClusterRecord], bool]) -> bool:
        """Take the first reusable cluster that nobody uses, or its free name. True if it runs."""
        plain = self.name
        for slot in itertools.count(1):
            self.name = plain if slot == 1 else f"{plain}-{slot}"
            lock = self._registry.lock(self.name)
            with contextlib.suppress(Timeout):
                lock.acquire(timeout=0)
                self._lock = lock
                break
        record = self._registry.find(self.name)
        if record is None:
            return False
        if not healthy(record):
            destroy(record, self._registry)
            return False
        self._record = record
        return True

    @contextmanager
    def making(self, kubeconfig: str, context: str, ports: int = 0) -> Iterator[ClusterRecord]:
        """A record with a directory of its own, guarded while the cluster is made inside this block.

        `kubeconfig` is relative to that directory. If the block raises, nothing stays behind.
        """
        self._record = self._recorded(Path(kubeconfig), context, ports)
        try:
            self._guardian = reaper.start(self._record)
            yield self._record
            if self.keep:
                self._record = self._record.kept()
                self._registry.update(self._record)
                self._stop_guardian()
        except BaseException:
            self._leave()  # the name stays ours: whoever enters again makes it there
            raise

    def _recorded(self, kubeconfig: Path, context: str, ports: int) -> ClusterRecord:
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
        """Remove the cluster, or let go of one that is kept. The second call does nothing."""
        try:
            self._leave()
        finally:
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def _leave(self) -> None:
        record, self._record = self._record, None
        try:
            if record is not None and not record.keep:
                destroy(record, self._registry)
        finally:
            self._stop_guardian()

    def _stop_guardian(self) -> None:
        if self._guardian is not None:
            reaper.stop(self._guardian)
            self._guardian = None
