"""All timeouts, in seconds. `--timeout-scale` multiplies them.

A wait that succeeds ends early, so waits are generous. A span during which something must hold always takes its full
time, so spans are short and begin after the scheduler has published its decision.
"""

from __future__ import annotations

from typing import Final

WAKE: Final = 0.02
"""A wait checks its condition again after this time even without a new version (never scaled)."""

POLICY: Final = 3.0
"""A policy file is written → the scheduler reports the policy. It checks the file every 0.1 s; 0.3 s is usual."""

POLICY_IN_CLUSTER: Final = 20.0
"""A ConfigMap is changed → every replica in the cluster reports the policy. Less than a second is usual."""

ROLLED_OUT: Final = 120.0
"""The scheduler's Deployment is applied → both replicas are Ready and one of them leads."""

REMOVED: Final = 45.0
"""The scheduler's Deployment is deleted → its pods are gone. Their grace period is 30 s."""

READY: Final = 30.0
"""The scheduler is started → each of its watches has listed."""

SHOWN: Final = 5.0
"""The API server accepted a write → the watch has shown it."""

REASON: Final = 5.0
"""A pod is created → the scheduler has published why it waits."""

BOUND: Final = 10.0
"""A pod is created → bound."""

RUNS: Final = 20.0
"""Work is submitted or capacity is freed → all of its pods run, including evictions and the start of real containers.
"""

EVICTED: Final = 15.0
"""A preemptor exists → its victims are marked and deleted."""

PHASE: Final = 30.0
"""A controller moves an object into its next phase, after pods have ended and several writes.

Each of these takes seconds on a busy machine.
"""

COMPLETES: Final = 30.0
"""Work receives the order to finish → it has finished. Equal to PHASE."""

IN_FLUX: Final = 1.0
"""Maximum wait for a condition that can become true only if a controller acts at once.

For instance: the work does not exist, or pods run although they should wait.
"""

HOLDS: Final = 0.6
"""Span of `never` and `stays`, after the scheduler has published its reason.

A change takes some tens of milliseconds.
"""

EMPTY: Final = 10.0
"""A scenario's objects are deleted by force → they are gone."""

ANSWERED: Final = 10.0
"""A request is sent → the API server answers (never scaled)."""

COLLECTION: Final = 60.0
"""A request deletes all objects of a kind → it is answered (never scaled).

The API server deletes them one after the other, some hundreds a second, and ends each request after this time.
"""

CRD: Final = 15.0
"""A custom resource definition is applied → it is Established and served."""

LAGS: Final = 5.0
"""The last object of one scenario is gone → the watches of the next scenario have shown it."""

NAMESPACES: Final = 60.0
"""The session ends → every namespace that it created is gone."""
