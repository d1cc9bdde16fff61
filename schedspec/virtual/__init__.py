"""Run the scheduler in virtual time: months of load in minutes, with the decisions of the live scheduler.

1. An `Agenda` holds the virtual clock and all future events.
2. A `Simulation` plays a cluster: it reads a stream of timed inputs (`load`), and shows the core what the API server,
   kubelets and controllers would have shown, as inputs of `scheduler.inputs`.
3. `Cycles` runs `decide` once at the end of each virtual instant at which a decision may change, and hands the
   decisions back to the cluster: a bind starts after its start delay, a victim is removed after its grace period.
4. The simulation emits every event as one of the `outcomes`, in order.

That is for loads. For scenarios, `cluster` runs the processes of the live scheduler on an API server in memory instead.
`state` reads and writes the state from which a simulation may begin.

A run is deterministic: equal inputs give equal outcomes. It reads no clock and draws no random number.
"""

from .agenda import Agenda, PastEventError, Rank, SimulationError, StuckError
from .cycles import Cycles
from .engine import Simulation, UnknownNodeError
from .gangs import Settings
from .load import (
    Adopted,
    Arrival,
    DrainNode,
    EndWork,
    FailNode,
    FailPod,
    InvalidLoadError,
    OnEviction,
    RecoverNode,
    RemoveNode,
    UsePolicy,
    Workload,
    node,
)
from .outcomes import Outcome
