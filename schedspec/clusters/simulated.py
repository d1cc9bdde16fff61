"""A cluster in virtual time: no process, no port, no waiting. Our own scheduler and its controllers are part of it.

Only this module uses `scheduler.simulation`, through the protocol below.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, cast

from .. import distribution
from .protocol import ClusterFacts, ClusterKind, Progress, Served, Settings, SettingsError, nobody_waits

Object = dict[str, Any]
WORLD = "schedspec.dev/world"


class VirtualCluster(Protocol):
    """A cluster of `scheduler.simulation.cluster`: an API server, and time that passes only when advanced."""

    def request(self, method: str, target: str, body: bytes = b"", content_type: str = "") -> tuple[int, bytes]:
        """Send a request to the API server; return status and body of its answer."""

    def watch(self, watcher: Callable[[str, str, Object], None]) -> None:
        """Call `watcher` with each object and each change: `v1/pods`; ADDED, MODIFIED or DELETED; the object."""

    def now(self) -> float:
        """Return the virtual seconds since the cluster was made."""

    def wall(self) -> float:
        """Return the virtual time, in seconds since 1970."""

    def advance(self, seconds: float, *, until_change: bool = False) -> None:
        """Let virtual time pass, at most until an object changes if `until_change`."""

    def use_policy(self, text: str) -> str:
        """Apply a policy and return its sha256. Raises ValueError if the scheduler rejects it."""

    def close(self) -> None:
        """Stop the cluster."""


class SimulatedCluster:
    """A cluster of `scheduler.simulation` behind the interface of all clusters."""

    kind: ClusterKind = "simulated"
    simulated = True
    name = "simulated"
    context = "simulated"
    kubeconfig = Path("simulated")

    def __init__(self, settings: Settings) -> None:
        if settings.reuse or settings.keep:
            what = "a simulated cluster ends with its run: it cannot be kept or reused"
            raise SettingsError(what, "--reuse-cluster, --keep-cluster", "leave these options out")
        self._virtual: VirtualCluster | None = None
        self._recording: Path | None = None

    @property
    def virtual(self) -> VirtualCluster:
        """Return the virtual cluster, after `up`."""
        assert self._virtual is not None
        return self._virtual

    @property
    def recording(self) -> Path:
        """Return the folder in which the scheduler records its cycles, after `up`."""
        assert self._recording is not None
        return self._recording

    def up(self, progress: Progress, served: Served = nobody_waits) -> None:
        """Create the virtual cluster."""
        if self._virtual is None:
            progress("simulated: in virtual time, without a process")
            simulation = distribution.load("schedspec.virtual.cluster")
            self._recording = Path(tempfile.mkdtemp(prefix="schedspec-simulated-"))
            virtual = simulation.VirtualCluster(node_selector={WORLD: "true"}, record=self._recording)
            self._virtual = cast("VirtualCluster", virtual)
            served()

    def down(self) -> None:
        """Stop the virtual cluster. The second call does nothing."""
        if self._virtual is not None:
            self._virtual.close()
            self._virtual = None
            shutil.rmtree(self.recording, ignore_errors=True)

    def facts(self) -> ClusterFacts:
        """Return facts for the header of the run."""
        return ClusterFacts("", ("virtual time",), 0.0)

    def load_image(self, archive: Path) -> None:
        """Do nothing: no node runs containers."""
