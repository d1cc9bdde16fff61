"""Interface of a cluster. Independent of the kinds of clusters; no I/O.

A cluster is a value with a name, a kubeconfig and two verbs: `up` and `down`. Its users connect to its API server
through the kubeconfig and do not depend on how the cluster is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

ClusterKind = Literal["auto", "embedded", "kind", "existing", "simulated"]
KINDS: tuple[ClusterKind, ...] = ("auto", "embedded", "kind", "existing", "simulated")

SCENARIO = "schedspec.dev/scenario"
"""Label of every object that a run makes. On a scenario's objects its value is the scenario's namespace."""

Progress = Callable[[str], None]
"""Receives one line about the current step, for the waiting user. Called from the thread that called `up`."""
Served = Callable[[], None]


def nobody_waits() -> None:
    """Do nothing: the `served` of a caller that has no work before `up` returns."""


class ClusterError(Exception):
    """A cluster could not be provided.

    Attributes:
        what: One sentence about what is wrong.
        where: Command, file, port or address.
        do_next: Instruction for the user.
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
    """The settings contradict each other or name something that does not exist. The user has to correct them."""


class BinaryError(ClusterError):
    """A program of the cluster could be neither found, downloaded nor built."""


class BootError(ClusterError):
    """The cluster's programs are present, but the cluster did not start in time or at all."""


class PortTakenError(BootError):
    """Another process took a port after it was chosen. The caller may retry with another port."""


class UnsupportedError(ClusterError):
    """This kind of cluster lacks the operation."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a run. With `reuse`, equal settings name the same cluster."""

    kind: ClusterKind = "auto"
    kube_context: str | None = None
    """`existing` only, required: the context in the kubeconfig."""
    kubeconfig: Path | None = None
    """`existing` only: the kubeconfig file; default $KUBECONFIG, then ~/.kube/config."""
    reuse: bool = False
    """Use a running cluster of the same configuration if there is one, and leave it running."""
    joins: bool = True
    """With `reuse`, also use a cluster that another session on this machine has made (`up` does not)."""
    keep: bool = False
    """Leave the cluster running when the run ends."""
    kind_image: str | None = None
    """The node image of a Kind cluster."""
    kind_config: Path | None = None
    """The configuration file of a Kind cluster."""
    binaries: Path | None = None
    """Folder with programs to use; programs that it lacks come from the cache."""
    kubernetes_version: str | None = None
    """`embedded` only: the minor version of Kubernetes, for instance `1.37`; default: the pinned one."""
    gang_api: bool = False
    """Serve the PodGroups of scheduling.k8s.io, if the version has them."""
    suffix: str = ""
    """Distinguishes the clusters of one run: the xdist worker's id, for instance `gw0`."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise SettingsError(
                f"unknown kind of cluster {self.kind!r}", "--cluster", f"name one of: {', '.join(KINDS)}"
            )
        if self.kubernetes_version is not None and self.kind != "embedded":
            raise SettingsError(
                f"a version of Kubernetes ({self.kubernetes_version}) is for an embedded cluster only, and this "
                f"run uses {self.kind!r}",
                "--kubernetes-version",
                "add --cluster embedded; for Kind name a node image (--kind-image)",
            )
        if self.kind == "existing" and not self.kube_context:
            raise SettingsError(
                "an existing cluster needs the name of its context; the current context is never used by default",
                "--kube-context",
                "add --kube-context NAME (`kubectl config get-contexts -o name` lists the names)",
            )
        if self.kind != "existing" and self.kube_context:
            raise SettingsError(
                f"a context ({self.kube_context}) is only used with an existing cluster, and this run uses "
                f"{self.kind!r}",
                "--kube-context",
                "add --cluster existing, or leave --kube-context out",
            )


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """Facts about the cluster for the header of a run."""

    server_version: str
    """Version that the API server reports, for instance `v1.36.3`."""
    made_of: tuple[str, ...] = field(default=())
    """One entry for each part, for instance `etcd 3.6.8 (cache)`, `node image kindest/node:v1.37.0`."""
    boot_seconds: float = 0.0
    """Time from the start of the boot until the API server answers /readyz; 0 if the cluster was running already."""


@runtime_checkable
class Cluster(Protocol):
    """A cluster before or after `up`. Not thread-safe; one owner."""

    @property
    def kind(self) -> ClusterKind:
        """Kind of the cluster; never `auto`."""

    @property
    def name(self) -> str:
        """Unique on this machine."""

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig with administrator's rights. The file exists after `up`."""

    @property
    def context(self) -> str:
        """The context in `kubeconfig`."""

    @property
    def simulated(self) -> bool:
        """True if no node is real: without kubelets and containers, pods follow kind-config/stages/."""

    def up(self, progress: Progress, served: Served = nobody_waits) -> None:
        """Return when the API server answers /readyz, the nodes that belong to the cluster are Ready, and KWOK runs.

        Installs nothing of the harness or the scheduler: the caller applies CRDs. If `up` fails, it removes everything.

        Args:
            progress: Receives a line for each step.
            served: Called during `up`, as soon as the API server answers and the kubeconfig exists.

        Raises:
            ClusterError: the cluster could not be started.
        """

    def down(self) -> None:
        """Remove everything that `up` created; the second call does nothing.

        A kept, reused or existing cluster keeps running.
        """

    def facts(self) -> ClusterFacts:
        """Return facts for the header of the run. Call after `up`."""

    def load_image(self, archive: Path) -> None:
        """Load an image into the nodes, from an archive in the format of `docker save`. Does nothing if `simulated`.

        Raises:
            UnsupportedError: the cluster is an existing one.
        """
