"""kube-scheduler with gang scheduling: PodGroups of scheduling.k8s.io, no queues.

The program is built from the same pinned module as the API server, in the cluster's version of Kubernetes, or in
another version of its minor version (`--scheduler kube-scheduler@v1.36.1`). Its policy is its configuration file
(templates/kube-scheduler/policies/), which kube-scheduler reads only when it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from ..api.capabilities import Capability
from ..clusters import before_boot
from ..clusters.kwok_config import GANG_GATES
from ..clusters.programs import binaries
from ..clusters.programs.pinned import kubernetes_versions, minor_of
from ..clusters.protocol import Settings
from .adapter import KUBERNETES, OF_OTHERS, Adapter, AdapterError, Site, UnsuitableClusterError
from .kube_scheduler_process import KubeSchedulerProcess

_OF_POLICIES = (
    *(Capability.POLICY, Capability.POLICY_REFUSAL, Capability.POLICY_FILES, Capability.ACTIONS),
    Capability.NODE_ORDER,
)
_OF_QUEUES = (
    *(Capability.AMOUNTS, Capability.WEIGHTS, Capability.HIERARCHY, Capability.CARDS, Capability.QUEUE_PRIORITY),
    *(Capability.VALIDATION, Capability.DESERVED, Capability.KUEUE_QUEUES, Capability.PAST_USE),
)
_OF_JOBS = (Capability.JOBS, Capability.JOB_TASKS, Capability.JOB_POLICIES, Capability.COMMANDS)


class KubeScheduler(Adapter):
    """Kubernetes' own gang scheduling, 1.36 (alpha) and 1.37 (beta, off by default)."""

    name: ClassVar[str] = "kube-scheduler"
    has_versions: ClassVar[bool] = True
    templates: ClassVar[str] = "kube-scheduler"
    gang_apis: ClassVar[Sequence[str]] = (KUBERNETES,)
    lacks: ClassVar[Mapping[Capability, str]] = {
        **OF_OTHERS,
        **dict.fromkeys(_OF_POLICIES, "its policy is a configuration file of its own"),
        **dict.fromkeys(_OF_QUEUES, "it has no queues"),
        **dict.fromkeys(_OF_JOBS, "it has no Volcano Jobs"),
        Capability.QUEUES: "its only queue is not an object of the API",
        Capability.PHASES: "its PodGroups have conditions, no phases",
        Capability.PARTITIONS: "a PodGroup has no parts",
        Capability.SHARED_CARDS: "it counts resources by node, not by card",
    }
    known_file: ClassVar[Path | None] = Path(__file__).with_name("kube_scheduler_known.yaml")

    def version(self, site: Site) -> str:
        chosen = {"kubernetes": _minor(site), "version": self.wanted}
        folder, progress = site.scheduler_programs, site.progress
        return binaries.provide((self.name,), folder=folder, progress=progress, **chosen)[self.name].version

    def require_programs(self, settings: Settings, folder: Path | None, progress: Callable[[str], None]) -> None:
        minor = before_boot.kubernetes_minor(settings)
        if not _is_pinned(minor):
            return  # the scenarios are skipped
        if self.wanted and minor_of(self.wanted) != minor:
            raise AdapterError(
                f"kube-scheduler {self.wanted} does not belong to a cluster of Kubernetes {minor}\n"
                f"  do next: name a version {minor}.X, or add --kubernetes-version {minor_of(self.wanted)}"
            )
        option = "--scheduler-binaries"
        chosen = {"kubernetes": minor, "version": self.wanted}
        binaries.require((self.name,), folder=folder, progress=progress, option=option, **chosen)

    def scheduler(self, site: Site) -> KubeSchedulerProcess:
        return KubeSchedulerProcess(site, _minor(site), version=self.wanted)

    def alone(self, site: Site) -> KubeSchedulerProcess:
        return KubeSchedulerProcess(site, _minor(site), gates="", version=self.wanted)

    def definitions(self, site: Site) -> None:
        del site


def _is_pinned(minor: str) -> bool:
    return minor in GANG_GATES and minor in kubernetes_versions()


def _minor(site: Site) -> str:
    """Return the minor version of the cluster's Kubernetes. Raises UnsuitableClusterError."""
    served = minor_of(site.cluster.facts().server_version)
    if not _is_pinned(served):
        raise UnsuitableClusterError(f"no kube-scheduler with gang scheduling is pinned for Kubernetes {served}")
    return served
