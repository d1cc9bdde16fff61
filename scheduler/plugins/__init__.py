"""The plugins. Each is a class, one module each (see ``docs/plugins.md``); importing its module registers it."""

from __future__ import annotations

from ..framework.plugin import PLUGINS
from . import binpack, conformance, drf, gang, nodeorder, overcommit, pdb, predicates, priority, sla
from .queue import capacity, capacity_card, proportion

__all__ = [
    "PLUGINS",
    "binpack",
    "capacity",
    "capacity_card",
    "conformance",
    "drf",
    "gang",
    "nodeorder",
    "overcommit",
    "pdb",
    "predicates",
    "priority",
    "proportion",
    "sla",
]
