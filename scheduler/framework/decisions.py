"""What a cycle decided, as data: the shell writes it to the API, ``record`` keeps it, ``explain`` shows it.

The one rule: a decision carries its reason as typed data (:mod:`scheduler.reasons`); text is made of it in one place
only.
"""

from __future__ import annotations

import msgspec

from ..reasons import Refusal, UnschedulableReason, VictimReason


class Bind(msgspec.Struct, frozen=True):
    """Put this pod onto this node."""

    task: str
    """``namespace/name``."""
    uid: str
    node: str
    job: str


class Evict(msgspec.Struct, frozen=True):
    """Delete this pod, for the sake of the preemptor."""

    task: str
    uid: str
    job: str
    reason: VictimReason


class Nominate(msgspec.Struct, frozen=True):
    """Keep room on ``node`` for this pod until it fits (``status.nominatedNodeName``).

    An empty node gives the room up, and ``whys`` tell for what reasons.
    """

    task: str
    uid: str
    node: str
    whys: tuple[UnschedulableReason, ...] = ()


class QueueNumbers(msgspec.Struct, frozen=True):
    """What a cycle knew of a queue, in quantities per dimension (units of ``scheduler.model.resources``).

    ``request`` is all that its jobs hold or ask for; ``capability`` what it may hold, the guarantees of others left
    alone; ``overused`` whether it holds so much that it is entitled to no more.
    """

    allocated: dict[str, int] = {}
    deserved: dict[str, int] = {}
    request: dict[str, int] = {}
    guarantee: dict[str, int] = {}
    capability: dict[str, int] = {}
    share: float | None = None
    overused: bool | None = None


class Decisions(msgspec.Struct):
    """The outcome of one cycle. Lists are in the order in which the decisions were made."""

    binds: list[Bind] = []
    evictions: list[Evict] = []
    nominations: list[Nominate] = []
    pipelined: dict[str, str] = {}
    """Task → node, for tasks that wait for room being freed (by this cycle or an earlier one)."""
    evicted_to_requested: dict[str, float] = {}
    """Job → how many times what its tasks request the victims of this cycle hold that went for them: by the dimension
    in which that is most.
    """
    phases: dict[str, str] = {}
    """Job → PodGroup phase, where it differs from the phase that the PodGroup has."""
    refusals: dict[str, Refusal] = {}
    """Job → why it (or some task of it) still waits."""
    queues: dict[str, QueueNumbers] = {}
    wake_at: float | None = None
    """When time alone could change the outcome (a deadline), in seconds since the epoch."""
