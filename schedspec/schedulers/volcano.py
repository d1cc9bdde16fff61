"""Adapter for Volcano's scheduler and controller-manager.

The programs come from the first of these places: a folder that the user names (`--scheduler-binaries`: `vc-scheduler`,
`vc-controller-manager`, and the definitions in `crds/`); a Volcano that is installed in the cluster, whose ConfigMap is
then the policy; a build from the pinned module `kind-config/tools/volcano` or, for another version
(`--scheduler volcano@v1.13.0`), from the module as published; the release images. In pods (`--scheduler-in-cluster`)
they run from images: those of `--scheduler-image`, or images built from these programs.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from ..api.capabilities import Capability
from ..clusters.programs.definitions import definitions
from ..clusters.protocol import BinaryError, Settings
from . import hyper_nodes
from .adapter import OF_KUEUE, AdapterError, Objects, Scheduler, Site, sha256
from .deployed import DeployedProgram, DeploymentSite, tag_of
from .from_images import FromImages, ImageProgram, Images, made
from .installable import InstallableAdapter
from .programs_folder import CRDS
from .volcano_processes import NAMESPACES, NODES, SERVED, VolcanoProcesses, require_open, require_running

PLACE: Final = DeploymentSite(
    "volcano-system", "volcano-scheduler", "volcano-scheduler-configmap", "volcano-scheduler.conf"
)
_CONFIG: Final = "/volcano"
PARTS: Final = (
    ImageProgram(
        "vc-scheduler",
        PLACE.deployment,
        "/vc-scheduler",
        ("--leader-elect=false", f"--scheduler-conf={_CONFIG}/{PLACE.key}", f"--node-selector={NODES}", *SERVED),
        {_CONFIG: {"configMap": {"name": PLACE.config}}},
    ),
    ImageProgram(
        "vc-controller-manager",
        "volcano-controllers",
        "/vc-controller-manager",
        ("--leader-elect=false", "--kube-api-qps=1000", "--kube-api-burst=2000"),
    ),
)


class DeployedVolcano(Scheduler):
    """A Volcano that runs in the cluster, reached through the API server only. Its ConfigMap holds the policy.

    Without `images`, Volcano is installed. The policy of an installed Volcano is restored at the end; a Volcano
    that the run deployed is removed. Volcano schedules on every node that its own `--node-selector` allows. On a
    cluster that has other nodes than those of scenarios, the selector must be `schedspec.dev/world:true`.
    """

    def __init__(self, site: Site, images: Images | None = None) -> None:
        self._api = site.api
        self._images = None if images is None else FromImages(site, PLACE, PARTS, images)
        self._deployed = DeployedProgram(site.api, PLACE, "Volcano's scheduler", site.scale)
        self._before: str | None = None
        self._applied = False
        self._sha256 = ""

    def start(self, policy: str) -> None:
        """Deploy Volcano with this policy; if it is installed, save the policy in force and replace it."""
        if self._images is None:
            self._before = self._deployed.configuration()
            self.use_policy(policy)
            return
        self._applied = True
        self._images.apply(policy, *(made("v1", "Namespace", name) for name in NAMESPACES))
        self._deployed.wait(self._require_ready)
        self._sha256 = sha256(policy)

    def stop(self) -> None:
        """Restore the original policy, or remove what the run deployed. The second call does nothing."""
        before, self._before = self._before, None
        if before is not None:
            self._deployed.configure(before)
        if self._applied and self._images is not None:
            self._applied = False
            self._images.remove()

    def handle(self) -> dict[str, Any]:
        return {"sha256": self._sha256}

    def attach(self, handle: dict[str, Any]) -> None:
        self._sha256 = handle["sha256"]

    def check(self) -> None:
        self._deployed.check()

    def use_policy(self, text: str) -> str:
        """Put a policy into force by restarting the scheduler."""
        wanted = sha256(text)
        if wanted != self._sha256:
            self._deployed.configure(text)
            self._sha256 = ""
            self._deployed.wait(self._require_ready)
            self._sha256 = wanted
        return wanted

    def _require_ready(self) -> None:
        """Check that a Volcano which the run deployed has ended its first session, according to its log.

        Raises:
            PolicyRefusedError: Volcano rejected the policy.
            NotReadyError: it does not schedule yet.
        """
        if self._images is not None:
            require_running("\n".join(self._deployed.last_lines()))
            require_open(self._api)

    def last_lines(self, count: int) -> Sequence[str]:
        return self._deployed.last_lines(count)


PROGRAMS = ("vc-scheduler", "vc-controller-manager")
_CHART = "installer/helm/chart/volcano"
DEFINITIONS = (f"{_CHART}/crd/bases/*.yaml", f"{_CHART}/charts/jobflow/crd/bases/*.yaml")

_CONTROLLERS = "volcano.sh/volcano/pkg/controllers"
WATCHED = {
    "commands.bus.volcano.sh": "",
    "cronjobs.batch.volcano.sh": f"{_CONTROLLERS}/cronjob",
    "hypernodes.topology.volcano.sh": f"{_CONTROLLERS}/hypernode",
    "jobflows.flow.volcano.sh": f"{_CONTROLLERS}/jobflow",
    "jobs.batch.volcano.sh": "",
    "jobtemplates.flow.volcano.sh": f"{_CONTROLLERS}/jobtemplate",
    "numatopologies.nodeinfo.volcano.sh": "",
    "podgroups.scheduling.volcano.sh": "",
    "queues.scheduling.volcano.sh": "",
}
"""Definitions without which the programs of Volcano wait → the package of the versions that watch the kind."""


class Volcano(InstallableAdapter):
    """Volcano with its own definitions and controllers; ours are not installed."""

    name: ClassVar[str] = "volcano"
    programs: ClassVar[Sequence[str]] = PROGRAMS
    has_versions: ClassVar[bool] = True
    watched: ClassVar[Mapping[str, str]] = WATCHED
    place: ClassVar[DeploymentSite] = PLACE
    templates: ClassVar[str] = "volcano"
    runs: ClassVar[int] = 3
    silent_for: ClassVar[float] = 3.0
    settles_after: ClassVar[float] = 5.0
    sees_all: bool = True
    lacks: ClassVar[Mapping[Capability, str]] = {
        Capability.POLICY_REFUSAL: "it continues with its previous policy and logs a line",
        Capability.CARDS: "the plugin capacity-card is in no release",
        Capability.VALIDATION: "its webhooks are not installed",
        Capability.PYTORCHJOBS: "no training operator is installed",
        Capability.REASONS: "its reasons have other texts",
        **OF_KUEUE,
        Capability.DESERVED: "it does not write status.deserved",
    }
    known_file: ClassVar[Path | None] = Path(__file__).with_name("volcano_known.yaml")

    def version(self, site: Site) -> str:
        named = self.installed(site) or (tag_of(self.images[0]) if self.images else "")
        return named or _version_of(self.found_programs(site)) or self.first.version

    def require_programs(self, settings: Settings, folder: Path | None, progress: Callable[[str], None]) -> None:
        if folder is None and not self.is_provided(settings, folder):
            super().require_programs(settings, folder, progress)

    def scheduler(self, site: Site) -> Scheduler:
        if self.installed(site):
            self.scheduler_name = "volcano"
            return DeployedVolcano(site)
        programs = {} if self.images else self.found_programs(site)
        if not self.in_pods:
            return VolcanoProcesses(site, programs)
        self.scheduler_name = "volcano"
        return DeployedVolcano(site, Images(self.version(site), self.images, programs))

    def alone(self, site: Site) -> VolcanoProcesses:
        return VolcanoProcesses(site, self.found_programs(site), with_controllers=False)

    def starts(self, site: Site) -> str:
        return "" if self.installed(site) else self.scheduler_name

    def companions(self, queues: Objects, nodes: Objects, policy: str) -> Objects:
        del queues, policy
        return hyper_nodes.of_nodes(nodes)

    def definitions(self, site: Site) -> Path | None:
        if self.installed(site):
            return None
        if site.scheduler_programs is not None:
            return site.scheduler_programs / CRDS
        try:
            return definitions(self.first, DEFINITIONS)
        except BinaryError as problem:
            if self.first.module is not None:  # ours are those of the pinned version
                return super().definitions(site)
            raise AdapterError(
                f"Volcano's definitions: {problem}; or put them into crds/ of a folder, beside the programs"
            ) from problem

    def judging_definitions(self, programs: Path | None) -> Path | None:
        if programs is not None:
            return programs / CRDS
        with contextlib.suppress(BinaryError):
            return definitions(self.first, DEFINITIONS, downloads=False)
        return None

    def found_programs(self, site: Site) -> dict[str, Path]:
        folder = site.scheduler_programs
        return super().found_programs(site) if folder is None else {name: folder / name for name in PROGRAMS}


def version_in(output: str) -> str:
    """Return the version or commit from the output of `vc-scheduler --version`; empty if the build has none."""
    found: dict[str, str] = dict(re.findall(r"^(Version|Git SHA): (?!Not provided)(\S+)", output, re.MULTILINE))
    return found.get("Version") or found.get("Git SHA", "")


def _version_of(programs: Mapping[str, Path]) -> str:
    command: list[str | Path] = [programs[PROGRAMS[0]], "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    return version_in(answer.stdout)
