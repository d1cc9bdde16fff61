"""What a cluster is to everybody else. This module knows no kind of cluster and does no I/O.

A cluster is a value with a name, a kubeconfig and two verbs: `up` and `down`. Who holds it talks to its API server
through the kubeconfig and never needs to know what it is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

ClusterKind = Literal["auto", "embedded", "kind", "existing"]
KINDS: tuple[ClusterKind, ...] = ("auto", "embedded", "kind", "existing")

SCENARIO = "schedspec.dev/scenario"
"""The label of everything that a run makes; of a scenario's objects its value is the scenario's namespace."""

Progress = Callable[[str], None]
"""Takes one line for the person who waits: what is going on now. Called from the thread that called `up`."""
Served = Callable[[], None]


def nobody_waits() -> None:
    """For `Cluster.up` where nobody has anything to do before it returns."""


class ClusterError(Exception):
    """A cluster could not be had. Says what went wrong, where, and what to do next.

    `what` is one sentence; `where` names the command, file, port or address; `do_next` is an instruction.
    """

    def __init__(self, what: str, where: str = "", do_next: str = "") -> None:
        super().__init__(what, where, do_next)
        self.what, self.where, self.do_next = what, where, do_next

    def __str__(self) -> str:
        lines = [self.what]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.do_next:
            lines.append(f"  do next: {self.do_next}")
        return "\n".join(lines)


class SettingsError(ClusterError):
    """The settings contradict each other or name what does not exist: the user's to repair."""


class BinaryError(ClusterError):
    """A program that the cluster is made of could be neither found, downloaded nor built."""


class BootError(ClusterError):
    """The cluster's programs are there, and it did not come up (or not in time)."""


class PortTakenError(BootError):
    """Another process took a port between its choice and its use; trying again with another is right."""


class UnsupportedError(ClusterError):
    """This kind of cluster cannot do that."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the user asked for. Equal settings (but for `suffix`) name the same reusable cluster."""

    kind: ClusterKind = "auto"
    kube_context: str | None = None
    """`existing` only, and needed there: the context in the kubeconfig."""
    kubeconfig: Path | None = None
    """`existing` only: the kubeconfig file; default $KUBECONFIG, then ~/.kube/config."""
    reuse: bool = False
    """Take a running cluster of the same configuration, if there is one, and leave it running."""
    keep: bool = False
    """Leave the cluster running when the run ends."""
    kind_image: str | None = None
    """The node image of a Kind cluster."""
    kind_config: Path | None = None
    """The configuration file of a Kind cluster."""
    binaries: Path | None = None
    """A folder with the programs to use; one that is not in it comes from the cache."""
    kubernetes_version: str | None = None
    """`embedded` only: the minor version of Kubernetes, for instance `1.37`; default: the pinned one."""
    gang_api: bool = False
    """The cluster serves the PodGroups of scheduling.k8s.io, where its version has them."""
    suffix: str = ""
    """Sets apart clusters of one run: the xdist worker's id, for instance `gw0`."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SettingsError(
                f"unknown kind of cluster {self.kind!r}", "--cluster", f"name one of: {', '.join(KINDS)}"
            )
        if self.kubernetes_version is not None and self.kind != "embedded":
            raise SettingsError(
                f"a version of Kubernetes ({self.kubernetes_version}) is chosen for an embedded cluster only, and this "
                f"run is to use {self.kind!r}",
                "--kubernetes-version",
                "add --cluster embedded; for Kind name a node image (--kind-image)",
            )
        if self.kind == "existing" and not self.kube_context:
            raise SettingsError(
                "an existing cluster needs the name of its context; the current context is never taken by accident",
                "--kube-context",
                "add --kube-context NAME (`kubectl config get-contexts -o name` lists the names)",
            )
        if self.kind != "existing" and self.kube_context:
            raise SettingsError(
                f"a context ({self.kube_context}) is only used with an existing cluster, and this run is to use "
                f"{self.kind!r}",
                "--kube-context",
                "add --cluster existing, or leave --kube-context out",
            )


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """What the header of a run says about the cluster."""

    server_version: str
    """As the API server says it, for instance `v1.36.3`."""
    made_of: tuple[str, ...] = field(default=())
    """One entry a part, for instance `etcd 3.6.8 (cache)`, `node image kindest/node:v1.37.0`."""
    boot_seconds: float = 0.0
    """From the start of the boot to an API server that answers /readyz; 0 if it was running already."""


@runtime_checkable
class Cluster(Protocol):
    """A live cluster, or one that `up` will make live. Not thread-safe; one owner."""

    @property
    def kind(self) -> ClusterKind:
        """What it is; never `auto`."""

    @property
    def name(self) -> str:
        """Unique on this machine."""

    @property
    def kubeconfig(self) -> Path:
        """The file that reaches it, with administrator's rights. Exists after `up`."""

    @property
    def context(self) -> str:
        """The context in `kubeconfig`."""

    @property
    def simulated(self) -> bool:
        """True if every node is KWOK's: no kubelet, no containers, pods follow kind-config/stages/."""

    def up(self, progress: Progress, served: Served = nobody_waits) -> None:
        """Return when the API server answers /readyz, the nodes that belong to the cluster are Ready, and KWOK runs.

        ``served`` is called within, as soon as the API server answers and the kubeconfig is there.
        Applies nothing of the harness or the scheduler (CRDs are the caller's). On failure nothing stays behind.
        Raises ClusterError.
        """

    def down(self) -> None:
        """Remove what `up` made; the second call does nothing. Leaves a kept, reused or existing cluster alone."""

    def facts(self) -> ClusterFacts:
        """For the header of the run; after `up`."""

    def load_image(self, archive: Path) -> None:
        """Give the nodes an image, from a file as `docker save` writes it. Nothing to do where `simulated`.

        Raises UnsupportedError where there is no way in (an existing cluster).
        """
