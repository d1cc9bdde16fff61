"""Adapters of schedulers of other projects: as programs, as images, or installed in the cluster already.

1. A scheduler that the user has installed in the cluster is used as it is.
2. `--scheduler-in-cluster` and `--scheduler-image` run it in pods of a Kind cluster, from images.
3. Else its programs run as processes beside the cluster.

Programs that the user names (`--scheduler-binaries`) take precedence over an installation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from ..api.client import Api
from ..clusters import before_boot
from ..clusters.images import program_image
from ..clusters.programs.definitions import definitions
from ..clusters.programs.pinned import Program
from ..clusters.protocol import BinaryError, Settings
from . import deployed, programs_folder
from .adapter import Adapter, AdapterError, Site


def definitions_of(folder: Path | None, first: Program, sources: Sequence[str], scheduler: str) -> Path:
    """Return the folder of a scheduler's definitions: the user's, or one with those of its source.

    Raises:
        AdapterError: the definitions are not available.
    """
    if folder is not None and (folder / programs_folder.CRDS).is_dir():
        return folder / programs_folder.CRDS
    try:
        return definitions(first, sources)
    except BinaryError as problem:
        text = f"{scheduler}'s definitions: {problem}; or put them into crds/ of that folder"
        raise AdapterError(text) from problem


class InstallableAdapter(Adapter):
    """Base class: where the scheduler runs, and which images it is made of."""

    place: ClassVar[deployed.DeploymentSite]
    runs_beside: ClassVar[bool] = True
    """Whether the user's programs can run beside an installation."""

    def __init__(self, wanted: str = "", configuration: str = "") -> None:
        super().__init__(wanted, configuration)
        self.images: Sequence[str] = ()
        self.is_installed = False
        """Whether the run uses the scheduler that the user has installed in its cluster; known after `is_provided`."""

    def __str__(self) -> str:
        images = f" from {', '.join(self.images)}" if self.images else ""
        return f"{self.chosen_name} in the cluster{images}" if self.in_pods else self.chosen_name

    def run_in_pods(self, images: Sequence[str]) -> None:
        if images and len(images) != len(self.programs):
            raise AdapterError(
                f"has {len(self.programs)} images, in this order: {', '.join(self.programs)}; "
                f"--scheduler-image names {len(images)}"
            )
        self.in_pods, self.images = True, images

    def missing_parts(self, folder: Path) -> list[str]:
        return programs_folder.missing(folder, () if self.images else self.programs, self._watched_in(folder))

    def _watched_in(self, folder: Path) -> Mapping[str, str]:
        """Return the definitions that the folder must have; a folder for images may have none."""
        return {} if self.images and not (folder / programs_folder.CRDS).is_dir() else self.watched

    def installed(self, site: Site) -> str:
        """Return the version of the scheduler that the user has installed; empty if the run starts one itself."""
        own = self.in_pods or site.scheduler_programs is not None
        return "" if own else deployed.installed(site.api, self.place)

    def is_provided(self, settings: Settings, folder: Path | None) -> bool:
        """Whether the run needs no programs: the scheduler is installed, or the user names its images.

        Raises:
            AdapterError: the installed scheduler cannot be used, or nothing can run beside it.
            DockerError: an image is missing.
        """
        for image in self.images:
            program_image.require(image)
        access = before_boot.running(settings)
        if access is None:
            return bool(self.images)
        api = Api(*access)
        try:
            version = deployed.installed(api, self.place)
            if version and (self.in_pods or (folder is not None and not self.runs_beside)):
                raise AdapterError(
                    f"{self.name} {version} is installed in this cluster, and a second one would run beside it\n"
                    f"  where: context {access.context}\n"
                    "  do next: leave out --scheduler-in-cluster, --scheduler-image and --scheduler-binaries to use "
                    "the installed one, or name another cluster"
                )
            self.is_installed = bool(version) and folder is None
            if self.is_installed:
                self.require_usable(api, version)
            return self.is_installed or bool(self.images)
        finally:
            api.close()

    def require_usable(self, api: Api, version: str) -> None:
        """Check that scenarios can run with the installed scheduler.

        Raises:
            AdapterError: they cannot; with what the installation lacks.
        """
