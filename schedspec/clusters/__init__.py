"""A live cluster as a value. `provide` chooses the class; nothing heavier than that is imported before it is needed."""

from __future__ import annotations

from .protocol import Cluster, ClusterError, ClusterFacts, Progress, Settings

__all__ = ["Cluster", "ClusterError", "ClusterFacts", "Progress", "Settings", "provide"]


def provide(settings: Settings) -> Cluster:
    """The cluster that the settings ask for, not yet up.

    `auto` is kind where a Docker engine answers and a node image is there or can be pulled, else embedded.
    Raises ClusterError where the settings cannot be met.
    """
    kind = settings.kind
    if kind == "auto":
        from .auto import choose  # noqa: PLC0415 - asks Docker

        kind = choose(settings)
    if kind == "embedded":
        from .embedded import EmbeddedCluster  # noqa: PLC0415

        return EmbeddedCluster(settings)
    if kind == "kind":
        from .kind.cluster import KindCluster  # noqa: PLC0415

        return KindCluster(settings)
    from .existing import ExistingCluster  # noqa: PLC0415

    return ExistingCluster(settings)
