"""The plugins, by the name that a policy calls them. Each is a class, one module each (see ``docs/plugins.md``)."""

from __future__ import annotations

from typing import Any

from scheduler.plugins.binpack import Binpack
from scheduler.plugins.capacity import Capacity
from scheduler.plugins.capacity_card import CapacityCard
from scheduler.plugins.conformance import Conformance
from scheduler.plugins.drf import Drf
from scheduler.plugins.gang import Gang
from scheduler.plugins.nodeorder import NodeOrder
from scheduler.plugins.overcommit import Overcommit
from scheduler.plugins.pdb import Pdb
from scheduler.plugins.predicates import Predicates
from scheduler.plugins.priority import Priority
from scheduler.plugins.proportion import Proportion
from scheduler.plugins.sla import Sla

PLUGINS: dict[str, type[Any]] = {
    plugin.name: plugin
    for plugin in (
        Priority,
        Gang,
        Conformance,
        Overcommit,
        Drf,
        Predicates,
        NodeOrder,
        Binpack,
        Capacity,
        CapacityCard,
        Proportion,
        Sla,
        Pdb,
    )
}
