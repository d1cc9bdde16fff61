"""Adapter for Kueue, with kube-scheduler for the placement of what Kueue admits.

The program comes from the first of these places: a folder that the user names (`--scheduler-binaries`: `kueue` and the
definitions in `crds/`); an unchanged Kueue that is installed in the cluster; a build from the pinned module
`kind-config/tools/kueue` or, for another version (`--scheduler kueue@v0.17.0`), from the module as published; the
release image. In pods (`--scheduler-in-cluster`) it runs from an image: that of `--scheduler-image`, or one built from
this program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import yaml

from ... import distribution
from ...api.capabilities import Capability
from ...api.client import Api
from ...api.errors import PolicyRefusedError, SchedulerDiedError
from ...api.marks import Mark, Marks
from ...clusters import before_boot
from ...clusters.programs import binaries
from ...clusters.programs.pinned import kubernetes_versions, minor_of
from ...clusters.protocol import Settings
from .. import programs_folder
from ..adapter import OF_OTHERS, Objects, Scheduler, Site, UnsuitableClusterError, sha256
from ..deployed import DeploymentSite, tag_of
from ..from_images import Images
from ..installable import InstallableAdapter, definitions_of
from ..kube_scheduler_process import KubeSchedulerProcess, default_policy
from . import deployed, quota
from .processes import SECRET_NAME, KueueProcess, KueueProgram
from .quota import KueuePolicy

_REFUSED: Final = re.compile(r'"Unable to (?:load|validate) the configuration","error":"((?:[^"\\]|\\.)*)"')


class KueueScheduler(Scheduler):
    """Kueue admits work, and kube-scheduler places what is admitted.

    kube-scheduler is a process beside the cluster, wherever Kueue runs: it uses only the nodes of scenarios.
    """

    def __init__(
        self,
        manager: KueueProgram,
        placement: KubeSchedulerProcess,
        placement_policy: str,
        read: Callable[[str], KueuePolicy],
    ) -> None:
        self._manager, self._placement, self._placement_policy = manager, placement, placement_policy
        self._read = read
        self._sha256 = ""

    def start(self, policy: str) -> None:
        """Return when Kueue and kube-scheduler have filled their caches."""
        self._manager.prepare()
        self._placement.launch(self._placement_policy)
        self.use_policy(policy)
        self._placement.start(self._placement_policy)

    def stop(self) -> None:
        self._manager.stop()
        self._placement.stop()
        self._sha256 = ""

    def handle(self) -> dict[str, Any]:
        own = {"manager": self._manager.handle(), "sha256": self._sha256}
        return {**own, "placement": self._placement.handle()}

    def attach(self, handle: dict[str, Any]) -> None:
        self._sha256 = handle["sha256"]
        self._manager.attach(handle["manager"])
        self._placement.attach(handle["placement"])

    def check(self) -> None:
        self._manager.check()
        self._placement.check()

    def use_policy(self, text: str) -> str:
        """Restart Kueue if the policy has another configuration. The settings of queues are applied with the queues."""
        wanted = sha256(text)
        if wanted != self._sha256:
            try:
                self._manager.configure(self._read(text))
            except SchedulerDiedError as problem:
                refused = _REFUSED.search(str(problem))
                if refused is None:
                    raise
                text = f"Kueue refused its configuration:\n  {refused[1]}"
                raise PolicyRefusedError(text, refused[1]) from problem
            self._sha256 = wanted
        return wanted

    def last_lines(self, count: int) -> Sequence[str]:
        return self._manager.last_lines(count)


PROGRAM = "kueue"
DEFINITIONS = ("config/components/crd/bases/*.yaml",)
WATCHED = (
    *("admissionchecks", "clusterqueues", "cohorts", "localqueues", "multikueueclusters", "multikueueconfigs"),
    *("provisioningrequestconfigs", "resourceflavors", "topologies", "workloadpriorityclasses", "workloads"),
)
_CONVERTED = ("clusterqueues", "cohorts", "localqueues", "multikueueclusters", "workloads")
"""Kinds whose definitions must name a conversion webhook: Kueue's certificate manager expects that."""


class Kueue(InstallableAdapter):
    """Kueue with its own definitions. Queues of the scenario's tables become ClusterQueues, LocalQueues and Cohorts."""

    name: ClassVar[str] = "kueue"
    programs: ClassVar[Sequence[str]] = (PROGRAM,)
    has_versions: ClassVar[bool] = True
    watched: ClassVar[Mapping[str, str]] = {f"{kind}.kueue.x-k8s.io": "" for kind in WATCHED}
    place: ClassVar[DeploymentSite] = deployed.PLACE
    runs_beside: ClassVar[bool] = False
    templates: ClassVar[str] = "kueue"
    sees_all: bool = True
    lacks: ClassVar[Mapping[Capability, str]] = {
        **OF_OTHERS,
        Capability.POLICY_FILES: "its policy is a configuration and preemption settings of its own",
        Capability.ACTIONS: "its cycle has no steps that a policy could leave out",
        Capability.CARDS: "this adapter makes one flavor, not one for each model of card",
        Capability.QUEUE_PRIORITY: "a ClusterQueue has no priority",
        Capability.PROTECTION: "nothing exempts a ClusterQueue or a Workload from preemption",
        Capability.VALIDATION: "its webhooks are not installed",
        Capability.JOB_TASKS: "a Job has pods of one kind",
        Capability.JOB_POLICIES: "a Job has no policies on events",
        Capability.PHASES: "Workloads have conditions, no phases",
        Capability.DESERVED: "the status of a ClusterQueue has no deserved amounts",
        Capability.SPARE_PODS: "a Workload is admitted and evicted as a whole",
        Capability.GROWTH: "an admitted Workload does not grow",
        Capability.PARTITIONS: "this adapter divides no podset into slices",
        Capability.SHARED_CARDS: "it counts resources by node, not by card",
        Capability.CLASS_SETTINGS: "a WorkloadPriorityClass has a value only",
        Capability.NODE_ORDER: "kube-scheduler places its pods, by its own configuration",
        Capability.DISRUPTION_MODE: "a Workload is always evicted as a whole",
    }
    monitors_off: ClassVar[Mapping[str, str]] = {
        "needless-eviction": "a Workload is evicted as a whole, by quota; needless-workload-eviction judges it",
        "disproportionate-eviction": "a Workload is evicted as a whole; the monitor counts pods",
    }
    marks: ClassVar[Marks] = Marks(
        evicted=(Mark("TerminationTarget", "True"),),
        waits=(Mark("QuotaReserved", "False"), Mark("PodScheduled", "False", "Unschedulable")),
        unit_evicted=Mark("Evicted", "True", "Preempted"),
    )
    known_file: ClassVar[Path | None] = Path(__file__).with_name("known.yaml")

    def version(self, site: Site) -> str:
        named = self.installed(site) or (tag_of(self.images[0]) if self.images else "")
        return named or super().version(site)

    def require_programs(self, settings: Settings, folder: Path | None, progress: Callable[[str], None]) -> None:
        minor = before_boot.kubernetes_minor(settings)
        if not self.is_provided(settings, folder):
            super().require_programs(settings, folder, progress)
        if not self.is_installed:
            self.source(folder)
        if minor in kubernetes_versions():  # else `scheduler` raises the error
            option = "--scheduler-binaries"
            binaries.require(("kube-scheduler",), folder=folder, progress=progress, option=option, kubernetes=minor)

    def _watched_in(self, folder: Path) -> Mapping[str, str]:
        return self.watched if (folder / programs_folder.CRDS).is_dir() else {}  # else those of the pinned version

    def require_usable(self, api: Api, version: str) -> None:
        deployed.require_usable(api, version)

    def scheduler(self, site: Site) -> KueueScheduler:
        minor = minor_of(site.cluster.facts().server_version)
        if minor not in kubernetes_versions():
            raise UnsuitableClusterError(f"no kube-scheduler, which places what Kueue admits, is pinned for {minor}")
        scheduler = KubeSchedulerProcess(site, minor, gates="")
        return KueueScheduler(self._manager(site), scheduler, default_policy(), self.read)

    def _manager(self, site: Site) -> KueueProgram:
        if version := self.installed(site):
            return deployed.InstalledKueue(site, version)
        if self.images:
            return deployed.KueueInPods(site, Images(self.version(site), self.images))
        folder = site.scheduler_programs
        found = binaries.provide((PROGRAM,), folder=folder, progress=site.progress, version=self.wanted)[PROGRAM]
        if self.in_pods:
            return deployed.KueueInPods(site, Images(found.version, programs={PROGRAM: found.path}))
        return KueueProcess(site, found)

    def companions(self, queues: Objects, nodes: Objects, policy: str) -> Objects:
        return quota.of_scenario(queues, nodes, self.read(policy))

    def read(self, policy: str) -> KueuePolicy:
        """Return a policy within the configuration of this run. Raises PolicyRefusedError."""
        found = quota.read(policy)
        if not self.configuration:
            return found
        file = self.configurations_folder() / f"{self.configuration}.yaml"
        return found.within(quota.read(file.read_text("utf-8")))

    def definitions(self, site: Site) -> Path:
        """Return a folder with Kueue's definitions and that of the Queue, which stores a scenario's table.

        The definitions of an installed Kueue are not changed.
        """
        folder = site.folder / "definitions"
        folder.mkdir(parents=True, exist_ok=True)
        self.sees_all = not self.installed(site)  # an installed Kueue runs with its operator's settings
        for source in sorted(self.source(site.scheduler_programs).glob("*.yaml")) if self.sees_all else ():
            found = yaml.safe_load(source.read_text("utf-8"))
            (folder / source.name).write_text(yaml.safe_dump(converted(found)), "utf-8")
        for source in sorted((distribution.folder("scheduler") / "crds").glob("*queue*.yaml")):
            (folder / f"schedspec-{source.name}").write_bytes(source.read_bytes())
        return folder

    def source(self, folder: Path | None) -> Path:
        """Return the folder of Kueue's definitions: the user's, or the pinned version's. Raises AdapterError."""
        return definitions_of(folder, self.first, DEFINITIONS, "Kueue")


def converted(definition: dict[str, Any]) -> dict[str, Any]:
    """Return a definition as Kueue's certificate manager expects it. Only the stored version is used."""
    if definition["spec"]["names"]["plural"] in _CONVERTED:
        client = {"url": f"https://127.0.0.1/convert/{SECRET_NAME}"}
        webhook = {"clientConfig": client, "conversionReviewVersions": ["v1"]}
        definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
    return definition
