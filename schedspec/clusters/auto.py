"""Resolve `--cluster auto`: kind where a Kind cluster can start at once, else embedded. Builds and pulls nothing."""

from __future__ import annotations

from dataclasses import replace

from .protocol import ClusterKind, Settings


def choose(settings: Settings) -> ClusterKind:
    """Return `kind` if a Docker engine answers and a node image is present or can be pulled, else `embedded`."""
    from .kind.cluster import can_run  # noqa: PLC0415 - connects to Docker

    return "kind" if can_run(replace(settings, kind="kind")) else "embedded"
