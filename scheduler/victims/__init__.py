"""Victims: who has to go so that a job can start.

``claim`` says whose tasks an action may ask for, ``units`` what goes together, ``jury`` what the plugins permit,
``order``, ``pricing`` and ``cover`` (or ``reprieve``) which set is the cheapest, ``search`` where the tasks go,
``company`` whom others ask to stay, ``give_back`` who was not needed after all; :func:`make_room` is all of it.
"""

from __future__ import annotations

from scheduler.victims.attempts import Attempts
from scheduler.victims.claim import PREEMPT, RECLAIM, Claim
from scheduler.victims.make_room import make_room

__all__ = ["PREEMPT", "RECLAIM", "Attempts", "Claim", "make_room"]
