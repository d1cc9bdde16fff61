"""Shared implementation of clusters that this process creates: working directory, programs, name.

A subclass creates its cluster inside `self._lifecycle.making(...)` and nowhere else, so that a failed or killed
creation is cleaned up.
"""

from __future__ import annotations

from pathlib import Path

from .lifecycle import ClusterLifecycle
from .programs.binaries import Binary
from .protocol import ClusterKind, Settings


class MadeCluster:
    """The part of a `Cluster` that does not depend on how the cluster is created."""

    kind: ClusterKind

    def __init__(self, settings: Settings, unique: str) -> None:
        """Prepare a cluster; `ClusterLifecycle` documents `unique`."""
        self._settings = settings
        self._lifecycle = ClusterLifecycle(self.kind, unique, settings)
        self._binaries: dict[str, Binary] = {}
        self._boot_seconds = 0.0

    @property
    def name(self) -> str:
        return self._lifecycle.name

    @property
    def kubeconfig(self) -> Path:
        return self._lifecycle.record.kubeconfig

    @property
    def context(self) -> str:
        return self._lifecycle.record.context

    def down(self) -> None:
        self._lifecycle.end()
