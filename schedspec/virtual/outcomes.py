"""The events that a simulation emits, in order, as data.

Each outcome has its virtual time `at` (seconds since the epoch). They are msgspec structs with a tag, so that a
writer can encode them directly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ..scheduler.framework.decisions import Decisions
from ..scheduler.reasons import Refusal, VictimReason


class _Outcome(msgspec.Struct, frozen=True, tag_field="kind", tag=str.lower):
    at: float


class Submitted(_Outcome, frozen=True):
    """A workload arrived."""

    job: str
    queue: str
    pods: int
    min_member: int
    requests: dict[str, str]
    """The amounts that each pod requests."""
    run_time: float
    priority: int
    user: str
    preemptable: bool = True


class Admitted(_Outcome, frozen=True):
    """The PodGroup became Inqueue (again, after a restart)."""

    job: str


class Placed(_Outcome, frozen=True):
    """A pod was bound: from now on it holds capacity of the node."""

    job: str
    pod: str
    node: str


class Started(_Outcome, frozen=True):
    """The gang runs: at least `min_member` of its pods run. `attempt` counts from 1."""

    job: str
    attempt: int


class Evicted(_Outcome, frozen=True):
    """The scheduler evicted a pod; `reason` names the preemptor, the action and the numbers."""

    job: str
    pod: str
    reason: VictimReason


class Disrupted(_Outcome, frozen=True):
    """A pod is deleted because its node was `drained`, has `failed` or was `removed` (`cause`)."""

    job: str
    pod: str
    node: str
    cause: str


class Released(_Outcome, frozen=True):
    """A pod was removed and its capacity is free."""

    job: str
    pod: str
    node: str


class Stopped(_Outcome, frozen=True):
    """The gang ran for `ran` seconds and lost its minimum of pods; `lost` seconds of its work have to run again."""

    job: str
    attempt: int
    ran: float
    lost: float


class Ended(_Outcome, frozen=True):
    """The workload is over: `completed`, or `aborted` by its owner after an eviction."""

    job: str
    outcome: str
    attempts: int


class Waits(_Outcome, frozen=True):
    """The reason why a job waits has changed; None: the job no longer waits."""

    job: str
    refusal: Refusal | None


class Cycle(_Outcome, frozen=True):
    """A cycle ran. `decisions.queues` has what each queue held, requested and deserved."""

    number: int
    decisions: Decisions


class Refused(_Outcome, frozen=True):
    """The core could not read an object, and ignores it."""

    object: str
    message: str


Outcome = (
    Submitted | Admitted | Placed | Started | Evicted | Disrupted | Released | Stopped | Ended | Waits | Cycle | Refused
)

Sink = Callable[[Any], None]
"""Receives one outcome."""
