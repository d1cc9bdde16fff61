"""A cluster in virtual time: no process, no port, no waiting. Our own scheduler and its controllers are part of it.

Only this module of the harness uses `schedspec.virtual`.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .protocol import ClusterFacts, ClusterKind, Progress, Served, Settings, SettingsError, nobody_waits

if TYPE_CHECKING:  # imported when it is made: other kinds of cluster need no scheduler
    from ..virtual.cluster import VirtualCluster as VirtualCluster  # noqa: PLC0414 - for those that use this cluster

Object = dict[str, Any]
WORLD = "schedspec.dev/world"


class SimulatedCluster:
    """A cluster of `schedspec.virtual` behind the interface of all clusters."""

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
            from ..virtual.cluster import VirtualCluster  # noqa: PLC0415

            self._recording = Path(tempfile.mkdtemp(prefix="schedspec-simulated-"))
            self._virtual = VirtualCluster(node_selector={WORLD: "true"}, record=self._recording)
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
