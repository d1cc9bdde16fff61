"""Decisions of a cycle as data. The shell writes them to the API, `record` stores them, `explain` shows them.

A decision carries its reason as typed data (`scheduler.reasons`). One place turns reasons into text.
"""

from __future__ import annotations

import msgspec

from ..reasons import Refusal, UnschedulableReason, VictimReason


class Bind(msgspec.Struct, frozen=True, omit_defaults=True):
    """Bind this pod to this node."""

    task: str
    """`namespace/name`."""
    uid: str
    node: str
    job: str
    annotations: dict[str, str] = {}
    """Annotations that the pod gets together with its node."""


class Evict(msgspec.Struct, frozen=True):
    """Delete this pod for the preemptor."""

    task: str
    uid: str
    job: str
    reason: VictimReason


class Nominate(msgspec.Struct, frozen=True):
    """Reserve capacity on `node` for this pod until it fits (`status.nominatedNodeName`).

    An empty node releases the capacity; `whys` are the reasons.
    """

    task: str
    uid: str
    node: str
    whys: tuple[UnschedulableReason, ...] = ()


class QueueNumbers(msgspec.Struct, frozen=True):
    """The amounts of a queue in a cycle, per dimension (units of `scheduler.model.resources`).

    `request` is all that its jobs hold or ask for; `capability` what it may hold, the guarantees of others left
    alone; `overused` whether it holds so much that it is entitled to no more.
    """

    allocated: dict[str, int] = {}
    deserved: dict[str, int] = {}
    request: dict[str, int] = {}
    guarantee: dict[str, int] = {}
    capability: dict[str, int] = {}
    share: float | None = None
    overused: bool | None = None


class Waiting(msgspec.Struct, frozen=True):
    """State of a job that was refused. The job is skipped until a change could help it, or its time has come.

    Times are seconds since 1970.

    Attributes:
        refusal: Why the job waits.
        topics: Changes that could help (`scheduler.model.backlog`).
        least: Capacity of at least this much, freed on a node, could help; None if capacity could not.
        tried: Actions that have tried the job, if a cycle was cut before all had; empty if all have.
        retry_at: When the job is tried again in any case.
        not_before: Until when the job is not tried, whatever changes, because of the cost of its last attempt.
        costly: How many expensive attempts in a row were useless.
        late: The job exceeded the maximum of one job, and is tried after all others.
        places: Task → node of a job that only waits for capacity being freed. It keeps them in the cycles that continue
            after a cut one, and no longer.
        retries: How many times in a row the job was tried again because of time alone and got the same refusal.
        line: What equal waiting jobs share, of which only the first waits for changes; empty if the job waits alone.
        created: When the job was created.
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
    retries: int = 0
    line: str = ""
    created: float = 0.0


class Memory(msgspec.Struct):
    """State that the next cycle needs: changed and removed entries of the backlog, due jobs, and turns.

    `policy` is a fingerprint: under another policy the state is ignored.
    """

    policy: str = ""
    waiting: dict[str, Waiting] = {}
    forgotten: list[str] = []
    due: list[str] = []
    turns: dict[str, dict[str, int]] = {}
    lapses: dict[str, float] = {}
    """Job → when its reservation lapses, of jobs without pods for it (`scheduler.framework.reservations`)."""


class Decisions(msgspec.Struct):
    """The outcome of one cycle. Lists are in the order in which the decisions were made."""

    binds: list[Bind] = []
    evictions: list[Evict] = []
    nominations: list[Nominate] = []
    pipelined: dict[str, str] = {}
    """Task → node, for tasks that wait for capacity being freed, by this cycle or an earlier one."""
    evicted_to_requested: dict[str, float] = {}
    """Job → how many times what its tasks request the victims of this cycle hold that went for them: by the dimension
    in which that is most.
    """
    phases: dict[str, str] = {}
    """Job → new PodGroup phase, if it differs from the current one."""
    refusals: dict[str, Refusal] = {}
    """Job → why the job (or some task of it) still waits."""
    queues: dict[str, QueueNumbers] = {}
    wake_at: float | None = None
    """When time alone could change the outcome (a deadline), in seconds since 1970."""
    steps: int = 0
    """Cost of the jobs of this cycle (`scheduler.framework.work`)."""
    cut: list[str] = []
    """Actions that left jobs for the next cycle, which should follow at once."""
    memory: Memory = msgspec.field(default_factory=Memory)
