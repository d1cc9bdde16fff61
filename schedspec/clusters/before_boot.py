"""Facts about a run's cluster before it boots: whether it already runs, and its version of Kubernetes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from .existing import only_context, server_version, source
from .programs.pinned import kubernetes_versions, minor_of
from .protocol import Settings
from .registry import Registry


class Access(NamedTuple):
    """How to reach a cluster."""

    kubeconfig: Path
    context: str


def running(settings: Settings) -> Access | None:
    """Return how to reach the run's cluster if it runs already: an existing one, or one that is kept and reused.

    Args:
        settings: Resolved settings.

    Raises:
        SettingsError: the kubeconfig cannot be read, or has no such context.
    """
    if settings.kind == "existing":
        path = source(settings.kubeconfig)
        only_context(path, settings.kube_context or "")
        return Access(path, settings.kube_context or "")
    if settings.kind != "kind" or not settings.reuse:
        return None
    from .kind.cluster import KindCluster  # noqa: PLC0415 - only where a Kind cluster is meant

    record = Registry().find(KindCluster(settings).name)
    return Access(record.kubeconfig, record.context) if record is not None else None


def kubernetes_minor(settings: Settings) -> str:
    """Return the minor version of Kubernetes that the run's cluster will have; empty if only the boot shows it.

    Args:
        settings: Resolved settings.

    Raises:
        ClusterError: the running cluster does not answer.
    """
    if settings.kind == "embedded":
        return settings.kubernetes_version or next(iter(kubernetes_versions()))
    if (access := running(settings)) is not None:
        return minor_of(server_version(*access))
    if settings.kind != "kind":
        return ""
    from .docker import Docker  # noqa: PLC0415
    from .images import node_image  # noqa: PLC0415

    image = node_image.require(settings, Docker())
    return minor_of(image.reference.partition("@")[0].rpartition(":")[2])
