"""The plugins, by the name that a policy calls them. Each is a class, one module each (see ``docs/plugins.md``)."""

from __future__ import annotations

from typing import Any

from .binpack import Binpack
from .conformance import Conformance
from .drf import Drf
from .gang import Gang
from .nodeorder import NodeOrder
from .overcommit import Overcommit
from .pdb import Pdb
from .predicates import Predicates
from .priority import Priority
from .queue.capacity import Capacity
from .queue.capacity_card import CapacityCard
from .queue.proportion import Proportion
from .sla import Sla

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
