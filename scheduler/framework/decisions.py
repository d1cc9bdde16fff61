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


class Waiting(msgspec.Struct, frozen=True):
    """What is remembered of a job that found no room: it is passed over until something changes that could help it
    (``topics``, see :mod:`scheduler.model.backlog`), or its time has come.

    ``least``: room of at least this much, freed on a node, could help; None where room would not. ``tried``: the
    actions that have tried it, where a cycle was cut before all had; empty where all have. ``retry_at``: when it is
    tried again in any case; ``not_before``: until when it is not, whatever changes, for what its last attempt cost.
    Times are seconds since the epoch. ``costly``: how often in a row it cost a lot in vain; ``late``: it cost more than
    a job may, and is tried after all others. ``places``: task → node of a job that only waits for room being freed; it
    keeps them in the cycles that go on with what one that was cut has left, and is remembered no longer than that.
    """

    refusal: Refusal
    topics: tuple[str, ...] = ()
    least: dict[str, int] | None = None
    tried: tuple[str, ...] = ()
    retry_at: float = 0.0
    not_before: float = 0.0
    costly: int = 0
    late: bool = False
    places: dict[str, str] = {}


class Memory(msgspec.Struct):
    """What the next cycle is to know of this one: entries of the backlog that are new or changed, and those that are
    not needed any more; who is due; whose turn it is.

    ``policy`` is a fingerprint: under another policy nothing of it counts.
    """

    policy: str = ""
    waiting: dict[str, Waiting] = {}
    forgotten: list[str] = []
    due: list[str] = []
    turns: dict[str, dict[str, int]] = {}


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
    steps: int = 0
    """What the jobs of this cycle have cost (:mod:`scheduler.work`)."""
    cut: list[str] = []
    """Actions that left jobs for the next cycle, which is wanted at once."""
    memory: Memory = msgspec.field(default_factory=Memory)
