"""One cluster for all workers of a run where a cluster is too dear for each to have its own.

Who comes first brings it up and stays its owner; the owner takes it down when the last of the others has left, and the
locks are the kernel's: a worker that was killed holds none. A scenario at a time has the cluster: its `turn`.
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
    """What a session needs to know of a cluster and its scheduler, whoever brought them up."""

    kind: ClusterKind
    simulated: bool
    kubeconfig: str
    context: str
    booted_at: float
    """Monotonic: when its boot began."""
    boot_seconds: float
    namespace_prefix: str
    """How the names of all namespaces of the run begin."""
    scheduler: dict[str, Any] | None
    """What `SchedulerProcess.attach` takes."""


class SharedCluster:
    """One worker's part in a shared cluster. `folder` is common to the workers of one run, and to no other run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._state = folder / "cluster.json"
        self._users: IO[bytes] | None = None
        self.owns = False

    def enter(self, boot: Callable[[], ClusterHandle]) -> ClusterHandle:
        """The cluster: the one that is there, else what `boot` makes."""
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
        """Give it up; its owner returns when all others have."""
        if self._users is None:
            return
        if self.owns:
            with _locked(self._folder / "entering"):
                fcntl.flock(self._users, fcntl.LOCK_EX)
                self._state.unlink(missing_ok=True)  # who comes now brings up its own
        self._users.close()
        self._users = None

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Have the cluster for one scenario."""
        with _locked(self._folder / "turn"):
            yield


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
