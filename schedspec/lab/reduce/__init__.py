"""Reduce an incident in a cluster's state to the smallest case that shows the same incident.

1. `case` describes a small world as typed data, `play` runs it in virtual time, `signature` identifies an incident.
2. `of_state` makes a case from a state; `shrink` and `simplify` reduce it.
3. `reduce` combines these parts, and `incident` finds the states from which an incident follows.
4. `of_recording` and `of_record` read incidents from recordings and records; `foreign` expresses the state of Kueue or
   kube-scheduler in the terms of scenarios; `acted` reduces what no decision of the model repeats.
5. `feature` and `written` write cases in the sentences of features; `confirm` runs what was written in the simulated
   cluster, `live` each candidate on a cluster with another scheduler.
"""

from .case import Case
from .feature import thens_of
from .incident import reduce_incident
from .of_recording import is_recording
from .play import NOT_PLAYED, PAUSE, play
from .reduce import IncidentError, Reduced, ReductionInput, reduce_case, reduce_state
