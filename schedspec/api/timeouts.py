"""How long anything may take, in seconds: the only place. `--timeout-scale` stretches them all.

A wait that is met costs nothing of its time, so these are generous; a span that must hold costs all of it, so those
are short and rest on the scheduler having spoken first.
"""

from __future__ import annotations

from typing import Final

WAKE: Final = 0.02
"""A wait looks again this often even if nothing was seen to change (never scaled)."""

POLICY: Final = 3.0
"""A policy file is written → the scheduler reports it. It looks every 0.1 s, so 0.3 s is usual."""

POLICY_IN_CLUSTER: Final = 20.0
"""A ConfigMap is changed → every replica in the cluster reports the policy. Under a second is usual."""

ROLLED_OUT: Final = 120.0
"""The scheduler's Deployment is applied → both of its replicas are Ready and one of them leads."""

REMOVED: Final = 45.0
"""The scheduler's Deployment is deleted → its pods are gone. Their grace period is 30 s."""

READY: Final = 30.0
"""The scheduler is started → every watch of it has listed."""

SHOWN: Final = 5.0
"""The API server took a write → the watch has shown it."""

SAID: Final = 5.0
"""A pod is created → the scheduler has published why it waits."""

BOUND: Final = 10.0
"""A pod is created → bound."""

RUNS: Final = 20.0
"""Work is submitted, or room became free → all of its pods run, evictions before it and real containers included."""

EVICTED: Final = 15.0
"""A preemptor is there → its victims are marked and deleted."""

PHASE: Final = 30.0
"""A controller moves an object into its next phase, ending pods and some writes one after the other included: seconds
each, where the machine is busy.
"""

COMPLETES: Final = 30.0
"""Work is told to finish → it has. As PHASE."""

IN_FLUX: Final = 1.0
"""What cannot lead to what is awaited, unless a controller is just about to change it, is given up after this long:
work that is not there, pods that run and should wait.
"""

HOLDS: Final = 0.6
"""What `never` and `stays` watch, once the scheduler has said why. A change takes it some tens of milliseconds."""

EMPTY: Final = 10.0
"""A scenario's objects are deleted by force → they are gone."""

CRD: Final = 15.0
"""A custom resource definition is applied → Established and served."""

LAGS: Final = 5.0
"""The last object of one scenario is gone → the watches of the next have shown it."""

NAMESPACES: Final = 60.0
"""At the end of a session: every namespace that it made is gone."""
