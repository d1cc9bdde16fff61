"""Incidents and small cases: from a state and what happened to the smallest world that shows the same.

1. `case` is the world as typed data, `play` runs it in virtual time, `signature` is what an incident in it is.
2. `of_state` makes a case of a state; `shrink` and `simplify` reduce it; `as_steps` lets sentences make it.
3. `reduce` puts these together.
"""

from .case import Case
from .play import PAUSE, play
from .reduce import IncidentError, Known, Reduced, reduce_case, reduce_incident, reduce_state
from .thens import thens_of

__all__ = [
    "PAUSE",
    "Case",
    "IncidentError",
    "Known",
    "Reduced",
    "play",
    "reduce_case",
    "reduce_incident",
    "reduce_state",
    "thens_of",
]
