"""The plugins. Each plugin is a class in a module of its own; importing the module registers it (`docs/plugins.md`)."""

from __future__ import annotations

from ..framework.plugin import PLUGINS
from . import (
    binpack,
    cdp,
    conformance,
    deviceshare,
    drf,
    gang,
    network_topology,
    nodegroup,
    nodeorder,
    overcommit,
    pdb,
    predicates,
    priority,
    resourcequota,
    sla,
)
from .queue import capacity, capacity_card, proportion
