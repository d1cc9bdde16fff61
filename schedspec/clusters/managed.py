"""What the clusters that we make have in common: where they stay, what they are made with, what they are called.

The one rule: a subclass makes the cluster inside `self._stay.making(...)`, and nothing outside of it.
"""

from __future__ import annotations

from pathlib import Path

from .lifecycle import ClusterLifecycle
from .programs.binaries import Binary
from .protocol import ClusterKind, Settings


class MadeCluster:
    """Half of a `Cluster`: the half that does not depend on how it is made."""

    kind: ClusterKind

    def __init__(self, settings: Settings, unique: str) -> None:
        """`unique`: see Stay."""
        self._settings = settings
        self._stay = ClusterLifecycle(self.kind, unique, settings)
        self._binaries: dict[str, Binary] = {}
        self._boot_seconds = 0.0

    @property
    def name(self) -> str:
        return self._stay.name

    @property
    def kubeconfig(self) -> Path:
        return self._stay.record.kubeconfig

    @property
    def context(self) -> str:
        return self._stay.record.context

    def down(self) -> None:
        self._stay.end()
