"""Volcano: its scheduler and its controller-manager.

Where they come from, in this order: a folder that the user names (`--scheduler-binaries`: `vc-scheduler`,
`vc-controller-manager`, and its definitions in `crds/`); a Volcano that runs in the cluster already, whose ConfigMap is
then the policy; its official images, where a Docker engine has them or reaches them.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from ..api.capabilities import Capability
from ..clusters.docker import Docker, DockerError
from ..clusters.paths import cache_root
from .adapter import Adapter, AdapterError, Scheduler, Site
from .volcano_deployed import DEPLOYMENT, DeployedVolcano
from .volcano_processes import VolcanoProcesses

PROGRAMS = ("vc-scheduler", "vc-controller-manager")
IMAGES = "docker.io/volcanosh"
RELEASE = "v1.15.1"
"""Of the images, where none is at hand otherwise."""


class Volcano(Adapter):
    """Its own definitions and controllers; ours stay out."""

    name: ClassVar[str] = "volcano"
    templates: ClassVar[str] = "volcano"
    runs: ClassVar[int] = 3
    silent_for: ClassVar[float] = 3.0
    sees_all: ClassVar[bool] = True
    lacks: ClassVar[Mapping[Capability, str]] = {
        Capability.POLICY_REFUSAL: "it goes on with the policy that it had, with a line in its log",
        Capability.CARDS: "the plugin capacity-card is in no release",
        Capability.VALIDATION: "its webhooks are not installed",
        Capability.PYTORCHJOBS: "no training operator is installed",
        Capability.REASONS: "its words are its own",
        Capability.DESERVED: "it does not write status.deserved",
    }
    known_file: ClassVar[Path | None] = Path(__file__).with_name("volcano_known.yaml")

    def version(self, site: Site) -> str:
        deployed = _deployed(site)
        if deployed:
            return deployed
        program = _programs(site) / PROGRAMS[0]
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=10).stdout
        return version_in(said) or RELEASE

    def scheduler(self, site: Site) -> Scheduler:
        if _deployed(site):
            self.scheduler_name = "volcano"
            return DeployedVolcano(site)
        return VolcanoProcesses(site, _programs(site))

    def starts(self, site: Site) -> str:
        return "" if _deployed(site) else self.scheduler_name

    def definitions(self, site: Site) -> Path | None:
        if _deployed(site):
            return None
        own = site.scheduler_programs / "crds" if site.scheduler_programs else None
        return own if own is not None and own.is_dir() else super().definitions(site)


def version_in(said: str) -> str:
    """The version, or the commit, that `vc-scheduler --version` names; empty where it was built without."""
    found: dict[str, str] = dict(re.findall(r"^(Version|Git SHA): (?!Not provided)(\S+)", said, re.MULTILINE))
    return found.get("Version") or found.get("Git SHA", "")


def _deployed(site: Site) -> str:
    """The version of a Volcano that runs in the cluster; empty if none does, or if the user names programs."""
    if site.scheduler_programs is not None:
        return ""
    answer = site.api.raw("GET", DEPLOYMENT)
    if answer.status != 200:
        return ""
    image = answer.json()["spec"]["template"]["spec"]["containers"][0]["image"]
    return str(image).rpartition(":")[2]


def _programs(site: Site) -> Path:
    """The folder with both programs. Raises AdapterError, which says how to get them."""
    if site.scheduler_programs is not None:
        missing = [name for name in PROGRAMS if not os.access(site.scheduler_programs / name, os.X_OK)]
        if missing:
            raise AdapterError(f"{site.scheduler_programs} (--scheduler-binaries) has no {', '.join(missing)}")
        return site.scheduler_programs
    folder = cache_root() / "volcano" / RELEASE
    try:
        for name in PROGRAMS:
            if not (folder / name).exists():
                _extract(Docker(), f"{IMAGES}/{name}:{RELEASE}", name, folder, site)
    except DockerError as problem:
        raise AdapterError(
            f"Volcano's programs are not at hand: {problem.what}\n"
            "  do next: --scheduler-binaries FOLDER with vc-scheduler, vc-controller-manager and its definitions in\n"
            "    crds/; or install Volcano in the cluster; or start a Docker engine that reaches its images"
        ) from problem
    return folder


def _extract(docker: Docker, image: str, name: str, folder: Path, site: Site) -> None:
    """Copy a program out of its image. Raises DockerError."""
    docker.require()
    if not docker.has_image(image):
        docker.pull(image, site.tell)
    folder.mkdir(parents=True, exist_ok=True)
    container = docker.call("create", image).split()[-1]
    try:
        draft = folder / f".{name}"
        docker.call("cp", f"{container}:/{name}", draft)
        draft.replace(folder / name)
    finally:
        docker.call("rm", container)
