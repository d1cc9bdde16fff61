"""Share one cluster between all workers of a run, where one for each worker would be too expensive.

The first worker starts the cluster and owns it. The owner stops the cluster after the last other worker has left. The
kernel releases the file locks of a killed worker. One scenario at a time uses the cluster (`turn`).
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from ..clusters.protocol import ClusterKind


class ClusterHandle(msgspec.Struct, frozen=True):
    """How a session reaches a cluster and its scheduler, whichever worker started them."""

    kind: ClusterKind
    simulated: bool
    kubeconfig: str
    context: str
    booted_at: float
    """Monotonic time of the start of its boot."""
    boot_seconds: float
    namespace_prefix: str
    """Prefix of all namespaces of the run."""
    scheduler: dict[str, Any] | None
    """Argument of `SchedulerProcess.attach`."""


class SharedCluster:
    """One worker's part in a shared cluster. The workers of one run share `folder` with no other run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._state = folder / "cluster.json"
        self._users: IO[bytes] | None = None
        self.owns = False

    def enter(self, boot: Callable[[], ClusterHandle]) -> ClusterHandle:
        """Return the running cluster, or the one that `boot` starts."""
        self._folder.mkdir(parents=True, exist_ok=True)
        with _locked(self._folder / "entering"):
            self._users = (self._folder / "users").open("ab")
            fcntl.flock(self._users, fcntl.LOCK_SH)
            if self._state.exists():
                return msgspec.json.decode(self._state.read_bytes(), type=ClusterHandle)
            try:
                handle = boot()
            except BaseException:
                self._users.close()
                self._users = None
                raise
            self.owns = True
            self._state.write_bytes(msgspec.json.encode(handle))
            return handle

    def leave(self) -> None:
        """Leave the cluster. The owner's call returns after all other workers have left."""
        if self._users is None:
            return
        if self.owns:
            with _locked(self._folder / "entering"):
                fcntl.flock(self._users, fcntl.LOCK_EX)
                self._state.unlink(missing_ok=True)  # a later worker starts a cluster of its own
        self._users.close()
        self._users = None

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Lock the cluster for one scenario."""
        with _locked(self._folder / "turn"):
            yield


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
