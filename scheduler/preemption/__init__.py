"""Victims: who has to go so that a job can start.

``request`` says whose tasks an action may ask for, ``units`` what goes together, ``eligibility`` what the plugins
permit, ``order``, ``cost`` and ``victim_set`` (or ``topology_aware``) which set is the cheapest, ``node_queue`` which
node comes next, ``solver`` where the tasks go, ``affinity_guard`` whom others ask to stay, ``reprieve`` who was not
needed after all; :func:`make_room` in ``preemptor`` is all of it.
"""

from __future__ import annotations

from .cycle_cache import CycleCache
from .preemptor import make_room
from .request import PREEMPT, RECLAIM, PreemptionRequest

__all__ = ["PREEMPT", "RECLAIM", "CycleCache", "PreemptionRequest", "make_room"]
