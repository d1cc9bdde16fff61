"""Decisions of a cycle as data. The shell writes them to the API, `record` stores them, `explain` shows them.

A decision carries its reason as typed data; only `scheduler.reasons` turns reasons into text.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from ..backlog.entries import Memory
from ..reasons import Refusal, UnschedulableReason, VictimReason

_NO_REASON = Refusal()


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

    `request` is all that its jobs hold or request. `capability` is what it may hold without using the guarantees of
    other queues. `overused` is whether it holds so much that it is entitled to no more.
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
    """Task → node, for tasks that wait for capacity being freed, by this cycle or an earlier one."""
    evicted_to_requested: dict[str, float] = {}
    """Job → what this cycle's victims for the job's tasks hold, divided by what these tasks request (largest ratio)."""
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

    def refuse(self, job: str, whys: Iterable[UnschedulableReason]) -> None:
        """Add reasons why a job waits."""
        self.refusals[job] = self.refusals.get(job, _NO_REASON).also(*whys)
