"""Clusters of a run. `provide` returns the one that the settings describe and imports only the class that it needs.

A `Cluster` (`protocol`) is `embedded`, `kind`, `existing` or `simulated`. `programs` and `images` provide what a
cluster is made of. `lifecycle`, `registry`, `reaper` and `cleanup` leave none behind, even if a run is killed.
"""

from __future__ import annotations

from dataclasses import replace

from .protocol import Cluster, ClusterError, ClusterFacts, ClusterKind, Progress, Settings


def choose(settings: Settings) -> ClusterKind:
    """Return `kind` if a Docker engine answers and a node image is present or can be pulled, else `embedded`."""
    from .kind.cluster import can_run  # noqa: PLC0415 - connects to Docker

    return "kind" if can_run(replace(settings, kind="kind")) else "embedded"


def provide(settings: Settings) -> Cluster:
    """Return the cluster that the settings describe, before `up`.

    Raises:
        ClusterError: the settings cannot be met.
    """
    settings = resolve(settings)
    kind = settings.kind
    if kind == "embedded":
        from .embedded import EmbeddedCluster  # noqa: PLC0415

        return EmbeddedCluster(settings)
    if kind == "simulated":
        from .simulated import SimulatedCluster  # noqa: PLC0415

        return SimulatedCluster(settings)
    if kind == "kind":
        from .kind.cluster import KindCluster  # noqa: PLC0415

        return KindCluster(settings)
    from .existing import ExistingCluster  # noqa: PLC0415

    return ExistingCluster(settings)


def resolve(settings: Settings) -> Settings:
    """Return the settings with a kind instead of `auto`.

    `auto` is kind if a Docker engine answers and a node image is present or can be pulled, else embedded.
    """
    if settings.kind != "auto":
        return settings

    return replace(settings, kind=choose(settings))


def require_programs(settings: Settings, progress: Progress) -> None:
    """Check that the cluster's programs are present or can be built. Without Go, download the missing ones.

    Args:
        settings: Resolved settings.
        progress: Receives a line of progress.

    Raises:
        ClusterError: programs are missing; the text names all of them.
    """
    from .programs import binaries, pinned  # noqa: PLC0415

    names = {"embedded": pinned.EMBEDDED, "kind": pinned.KIND}.get(settings.kind, ())
    binaries.require(
        names,
        folder=settings.binaries,
        progress=progress,
        option="--binaries",
        kubernetes=settings.kubernetes_version,
    )


def missing_programs(settings: Settings) -> list[str]:
    """Return the names of the programs of an embedded cluster that would have to be downloaded or built.

    Raises:
        ClusterError: the folder of programs is not a folder.
    """
    from .programs import binaries, pinned  # noqa: PLC0415

    names = pinned.EMBEDDED if settings.kind == "embedded" else ()
    return binaries.missing(names, folder=settings.binaries, kubernetes=settings.kubernetes_version)
