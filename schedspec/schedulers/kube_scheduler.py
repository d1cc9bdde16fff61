"""kube-scheduler with gang scheduling: PodGroups of scheduling.k8s.io, no queues.

It is built from the same pinned module as the API server, in the version of Kubernetes that the cluster has. Its policy
is its configuration file (templates/kube-scheduler/policies/), which it reads when it starts and at no other time.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ..api import timeouts
from ..api.capabilities import Capability
from ..api.errors import PolicyRefusedError, SchedulerDiedError
from ..clusters.kwok_config import GANG_GATES
from ..clusters.programs import binaries
from ..clusters.programs.pinned import kubernetes_versions, minor_of
from .adapter import KUBERNETES, Adapter, Site, UnsuitableClusterError
from .daemon import Daemon
from .readiness import NotYetError, patiently

_REFUSED = re.compile(r'"command failed" err="(.*)"$|^E\S*.*?\] "(.*)"$', re.MULTILINE)


class KubeScheduler(Adapter):
    """Gang scheduling of Kubernetes itself, 1.36 (alpha) and 1.37 (beta, off by default)."""

    name: ClassVar[str] = "kube-scheduler"
    templates: ClassVar[str] = "kube-scheduler"
    gang_apis: ClassVar[Sequence[str]] = (KUBERNETES,)
    lacks: ClassVar[Mapping[Capability, str]] = {
        Capability.POLICY: "its policy is a configuration file of its own",
        Capability.POLICY_REFUSAL: "its policy is a configuration file of its own",
        Capability.QUEUES: "it has one queue, which is no object",
        Capability.AMOUNTS: "it has no queues",
        Capability.WEIGHTS: "it has no queues",
        Capability.HIERARCHY: "it has no queues",
        Capability.CARDS: "it has no queues",
        Capability.VALIDATION: "it has no queues",
        Capability.JOBS: "it has no Volcano Jobs",
        Capability.JOB_POLICIES: "it has no Volcano Jobs",
        Capability.COMMANDS: "it has no Volcano Jobs",
        Capability.PYTORCHJOBS: "no training operator is installed",
        Capability.PHASES: "its PodGroups have conditions, no phases",
        Capability.REASONS: "its words are its own",
        Capability.DESERVED: "it has no queues",
    }
    monitors_off: ClassVar[Mapping[str, str]] = {
        "needless-eviction": "it takes a gang as a whole where the gang says so, and this monitor asks the policy"
    }
    known_file: ClassVar[Path | None] = Path(__file__).with_name("kube_scheduler_known.yaml")

    def version(self, site: Site) -> str:
        return binaries.provide(
            (self.name,), folder=site.scheduler_programs, progress=site.tell, kubernetes=_minor(site)
        )[self.name].version

    def scheduler(self, site: Site) -> KubeSchedulerProcess:
        return KubeSchedulerProcess(site, _minor(site))

    def definitions(self, site: Site) -> None:
        del site


class KubeSchedulerProcess:
    """kube-scheduler beside the cluster. A new policy is a new process."""

    def __init__(self, site: Site, minor: str) -> None:
        self._site, self._minor = site, minor
        self._daemon = Daemon("kube-scheduler", site.folder / "scheduler.log")
        self._file = site.folder / "policy.yaml"
        self._sha256 = ""

    def launch(self, policy: str) -> None:
        """Let it begin."""
        it = self._site
        program = binaries.provide(
            ("kube-scheduler",), folder=it.scheduler_programs, progress=it.tell, kubernetes=self._minor
        )["kube-scheduler"].path
        self._file.parent.mkdir(parents=True, exist_ok=True)
        connection = f"clientConnection: {{kubeconfig: {it.kubeconfig}, qps: 1000, burst: 2000}}"
        self._file.write_text(f"{policy.rstrip()}\n{connection}\n", "utf-8")
        gates = GANG_GATES[self._minor].feature_gates
        switches = ["--secure-port", "0", "--feature-gates", gates, "--v", "3"]
        self._daemon.launch([program, "--config", self._file, *switches])
        self._sha256 = hashlib.sha256(policy.encode()).hexdigest()

    def start(self, policy: str) -> None:
        """Return when its caches are filled."""
        if not self._daemon.launched:
            self.launch(policy)
        try:
            for attempt in patiently(timeouts.READY * max(self._site.scale, 1.0), 0.02):
                with attempt:
                    self._daemon.check()
                    if "Handlers synced" not in self._daemon.text():
                        raise NotYetError(f"kube-scheduler has not filled its caches\n{self._daemon.last_words()}")
        except SchedulerDiedError as problem:
            said = _REFUSED.findall(self._daemon.text())
            if said:
                words = "".join(said[-1])
                raise PolicyRefusedError(f"kube-scheduler refused its configuration:\n  {words}", words) from problem
            raise

    def stop(self) -> None:
        """End it."""
        self._daemon.stop()

    def handle(self) -> dict[str, Any]:
        return {"pid": self._daemon.pid, "sha256": self._sha256}

    def attach(self, handle: dict[str, Any]) -> None:
        self._daemon.adopt(handle["pid"])
        self._sha256 = handle["sha256"]

    def check(self) -> None:
        """Raise SchedulerDiedError unless it runs."""
        self._daemon.check()

    def use_policy(self, text: str) -> str:
        """Start it anew, unless the policy is the one that it has."""
        wanted = hashlib.sha256(text.encode()).hexdigest()
        if wanted != self._sha256:
            self.stop()
            self.start(text)
        return wanted

    def keep_recording(self, since: float, to: Path) -> bool:  # noqa: ARG002 - it keeps none
        return False

    def last_lines(self, count: int) -> Sequence[str]:
        return self._daemon.last_lines(count)


def _minor(site: Site) -> str:
    """The minor version of the cluster's Kubernetes. Raises UnsuitableClusterError where none of ours fits."""
    served = minor_of(site.cluster.facts().server_version)
    if served not in GANG_GATES or served not in kubernetes_versions():
        raise UnsuitableClusterError(f"no kube-scheduler with gang scheduling is pinned for Kubernetes {served}")
    return served
