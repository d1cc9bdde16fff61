"""Run our own scheduler, or another one with the command line of `python -m scheduler` (`--scheduler COMMAND`).

Our own scheduler runs as a process beside the cluster, or in pods of a Kind cluster as deploy/ installs it.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from .. import distribution
from ..api.errors import PolicyRefusedError
from ..clusters.simulated import SimulatedCluster
from . import hyper_nodes
from .adapter import KUBERNETES, VOLCANO, Adapter, AdapterError, Objects, Scheduler, Site
from .in_cluster import SchedulerInCluster
from .process import SchedulerProcess, cut_recording

if TYPE_CHECKING:
    from ..clusters.simulated import VirtualCluster


class VirtualScheduler(Scheduler):
    """A scheduler in virtual time. It ends with its cluster, and no other process can reach it."""

    def __init__(self, virtual: VirtualCluster, recording: Path) -> None:
        self._virtual, self._recording = virtual, recording
        self._policy = ""

    def launch(self, policy: str) -> None:
        self.use_policy(policy)

    def start(self, policy: str) -> None:
        """Put the policy into force, and let the scheduler list all objects (one second of virtual time)."""
        self.use_policy(policy)
        self._virtual.advance(1.0)

    def use_policy(self, text: str) -> str:
        """Put a policy into force; return its sha256, or "" if it is in force already. Raises PolicyRefusedError."""
        if text == self._policy:
            return ""
        try:
            found = self._virtual.use_policy(text)
        except ValueError as refused:
            raise PolicyRefusedError(f"the scheduler refused the policy: {refused}", str(refused)) from None
        self._policy = text
        return found

    def keep_recording(self, since: float, to: Path) -> bool:
        return cut_recording(self._recording, since, to)


class Own(Adapter):
    """The scheduler of this checkout."""

    name: ClassVar[str] = "schedspec"
    names_preemptors: ClassVar[bool] = True
    gang_apis: ClassVar[Sequence[str]] = (VOLCANO, KUBERNETES)
    disruption_modes_in: ClassVar[Sequence[str]] = (VOLCANO, KUBERNETES)
    command: Sequence[str] = distribution.scheduler_command()

    def __str__(self) -> str:
        return f"{self.name} in the cluster" if self.in_pods else self.name

    def version(self, site: Site) -> str:
        del site
        known = distribution.version()
        return f"v{known}" if known else ""

    def companions(self, queues: Objects, nodes: Objects, policy: str) -> Objects:
        del queues, policy
        return hyper_nodes.of_nodes(nodes)

    def definitions(self, site: Site) -> Path | None:
        """Return the folder of the CRDs; None for a simulated cluster, which serves them from the start."""
        return None if isinstance(site.cluster, SimulatedCluster) else super().definitions(site)

    def run_in_pods(self, images: Sequence[str]) -> None:
        if images:
            raise AdapterError("gets its image from this checkout, not from --scheduler-image")
        self.in_pods = True

    def scheduler(self, site: Site) -> SchedulerProcess | SchedulerInCluster | VirtualScheduler:
        if isinstance(site.cluster, SimulatedCluster):
            return VirtualScheduler(site.cluster.virtual, site.cluster.recording)
        if self.in_pods:
            return SchedulerInCluster(
                site.folder,
                site.api,
                site.kubeconfig,
                load=site.cluster.load_image,
                programs=site.programs,
                progress=site.progress,
                scale=site.scale,
            )
        return SchedulerProcess(
            self.command,
            site.folder,
            site.kubeconfig,
            site.context,
            scale=site.scale,
            namespace_prefix=site.namespace_prefix,
        )


class Command(Own):
    """A scheduler that a command starts, with the contract of `python -m scheduler run` (docs/architecture.md)."""

    name: ClassVar[str] = "command"
    run_in_pods = Adapter.run_in_pods

    def __init__(self, text: str) -> None:
        """Parse a command line. Raises AdapterError: `text` is not a command that can be run."""
        super().__init__()
        try:
            self.command = shlex.split(text)
        except ValueError as problem:
            raise AdapterError(f"{text!r} cannot be read as a command: {problem}") from None
        if not self.command or shutil.which(self.command[0]) is None:
            raise AdapterError(f"{text!r} is neither a scheduler nor a program that can be run")

    def __str__(self) -> str:
        return f"by {shlex.join(self.command)}"

    def version(self, site: Site) -> str:
        del site
        return ""
