"""Which cluster `auto` is: kind where it can run at once, else embedded. Builds nothing and pulls nothing."""

from __future__ import annotations

from dataclasses import replace

from .protocol import ClusterKind, Settings


def choose(settings: Settings) -> ClusterKind:
    """`kind` if a Docker engine answers and a node image is there or can be pulled; else `embedded`."""
    from .kind.cluster import can_run  # noqa: PLC0415 - asks Docker, only here

    return "kind" if can_run(replace(settings, kind="kind")) else "embedded"
