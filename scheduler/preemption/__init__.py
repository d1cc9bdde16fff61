"""Victim selection: which running tasks are evicted so that a waiting job can start.

`preemptor.make_room` runs the whole attempt for one job:

1. `request` defines which tasks are candidates for an action.
2. `units` groups candidates into units that are evicted together; `eligibility` collects the plugins' votes on them.
3. `order`, `cost` and `victim_set` (or `topology_aware`) choose the cheapest set of victims on a node; `node_queue`
   orders the nodes by that cost.
4. `solver` evicts the set and places the tasks; `affinity_guard` keeps victims that a placement needs as neighbours.
5. `reprieve` restores the victims that the placements turn out not to need.
"""

from __future__ import annotations

from .cycle_cache import CycleCache
from .preemptor import make_room
from .request import PREEMPT, RECLAIM, PreemptionRequest

__all__ = ["PREEMPT", "RECLAIM", "CycleCache", "PreemptionRequest", "make_room"]
