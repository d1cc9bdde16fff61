"""Victims: who has to go so that a job can start.

``claim`` says whose tasks an action may ask for, ``units`` what goes together, ``jury`` what the plugins permit,
``order``, ``pricing`` and ``cover`` (or ``reprieve``) which set is the cheapest, ``search`` where the tasks go,
``company`` whom others ask to stay, ``give_back`` who was not needed after all; :func:`make_room` is all of it.
"""

from __future__ import annotations

from .cycle_cache import Attempts
from .preemptor import make_room
from .request import PREEMPT, RECLAIM, Claim

__all__ = ["PREEMPT", "RECLAIM", "Attempts", "Claim", "make_room"]
