"""Our own scheduler, and every other that takes the command line of `python -m scheduler` (`--scheduler COMMAND`)."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import ClassVar

from .. import distribution
from .adapter import KUBERNETES, VOLCANO, Adapter, AdapterError, Site
from .in_cluster import SchedulerInCluster
from .process import SchedulerProcess


class Own(Adapter):
    """The scheduler of this checkout, as a process beside the cluster."""

    name: ClassVar[str] = "schedspec"
    names_preemptors: ClassVar[bool] = True
    gang_apis: ClassVar[Sequence[str]] = (VOLCANO, KUBERNETES)
    command: Sequence[str] = distribution.scheduler_command()
    """How it is called, without its arguments."""

    def version(self, site: Site) -> str:
        del site
        try:
            return f"v{version_of('schedspec')}"
        except PackageNotFoundError:  # a checkout that nobody has installed
            return ""

    def scheduler(self, site: Site) -> SchedulerProcess | SchedulerInCluster:
        return SchedulerProcess(
            self.command,
            site.folder,
            site.kubeconfig,
            site.context,
            scale=site.scale,
            namespace_prefix=site.namespace_prefix,
        )


class InCluster(Own):
    """The scheduler of this checkout as deploy/ has it: in pods of a Kind cluster."""

    def __str__(self) -> str:
        return f"{self.name} in the cluster"

    def scheduler(self, site: Site) -> SchedulerInCluster:
        if site.cluster.kind != "kind":
            raise AdapterError(
                f"the scheduler cannot run in a cluster of kind {site.cluster.kind}: no image can be brought into it\n"
                "  do next: add --cluster kind, which says what it misses here, or leave --scheduler-in-cluster out"
            )
        return SchedulerInCluster(
            site.folder,
            site.api,
            site.kubeconfig,
            load=site.cluster.load_image,
            programs=site.programs,
            tell=site.tell,
            scale=site.scale,
        )


class Command(Own):
    """A scheduler by its command line. It keeps the contract of `python -m scheduler run` (docs/architecture.md)."""

    name: ClassVar[str] = "command"

    def __init__(self, text: str) -> None:
        """Raises AdapterError if `text` is not a command that can be run."""
        super().__init__()
        try:
            self.command = shlex.split(text)
        except ValueError as problem:
            raise AdapterError(f"{text!r} cannot be read as a command: {problem}") from None
        if not self.command or shutil.which(self.command[0]) is None:
            raise AdapterError(f"{text!r} names no scheduler, and no program that can be run")

    def __str__(self) -> str:
        return f"by {shlex.join(self.command)}"

    def version(self, site: Site) -> str:
        del site
        return ""
