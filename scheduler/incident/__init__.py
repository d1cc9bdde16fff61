"""Reduce an incident in a cluster's state to the smallest case that shows the same incident.

1. `case` describes a small world as typed data, `play` runs it in virtual time, `signature` identifies an incident.
2. `of_state` makes a case from a state; `shrink` and `simplify` reduce it; `as_steps` replaces running work by steps.
3. `reduce` combines these parts.
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
