"""Why a job still waits, as data.

The one rule: a *why* is one rule that stood in the way of a job, with the numbers it was judged by (units of
:mod:`scheduler.model.resources`).
"""

from __future__ import annotations

import msgspec

from .victims import PluginMessage, ProtectedCount


class QueueLimit(msgspec.Struct, frozen=True, tag="queue-limit"):
    """A queue (or ancestor) would be lifted above a limit.

    ``limit`` names which: capability, deserved, real capability, card quota.
    """

    queue: str
    dimension: str
    allocated: int
    requested: int
    limit: str
    amount: int
    inqueue: int = 0
    """Reserved by admitted jobs that are not placed yet; counts at enqueue."""


class QueueClosed(msgspec.Struct, frozen=True, tag="queue-closed"):
    """The queue takes no work in this state."""

    queue: str
    state: str


class QueueBroken(msgspec.Struct, frozen=True, tag="queue-broken"):
    """The queue's place in the tree, or its numbers, make no sense; nothing of it is scheduled until that is mended."""

    queue: str
    problem: str


class NoGroup(msgspec.Struct, frozen=True, tag="no-group"):
    """Pods name a PodGroup that is not there, or that cannot be read, which says so itself."""

    group: str


class ClusterLimit(msgspec.Struct, frozen=True, tag="cluster-limit"):
    """Admission stops at what the cluster as a whole has left (overcommit)."""

    dimension: str
    requested: int
    left: int


class NodeRule(msgspec.Struct, frozen=True, order=True):
    """How many nodes one rule excludes. ``rule``: one of those that :mod:`scheduler.reasons.text` has words for
    (resource, pods, taint, selector, affinity, port, …); any other is shown by its detail.
    """

    nodes: int
    rule: str
    detail: str = ""


class NoNode(msgspec.Struct, frozen=True, tag="no-node"):
    """No node takes a task: how many there are and what excludes how many.

    A node counts once, for the first rule that excludes it.
    """

    task: str
    nodes: int
    rules: tuple[NodeRule, ...] = ()


class GangShort(msgspec.Struct, frozen=True, tag="gang-short"):
    """Some tasks of the gang have a place, too few for it to start."""

    placed: int
    minimum: int
    role: str = ""


class PodsMissing(msgspec.Struct, frozen=True, tag="pods-missing"):
    """The job has fewer pods than its minimum; they have yet to be created."""

    pods: int
    minimum: int
    role: str = ""


class Gated(msgspec.Struct, frozen=True, tag="gated"):
    """Pods that carry scheduling gates are not placed."""

    pods: int


class NotBackfilled(msgspec.Struct, frozen=True, tag="not-backfilled"):
    """Pods that ask for nothing are placed by the backfill action only, and the policy does not name it."""

    pods: int


class Unsupported(msgspec.Struct, frozen=True, tag="unsupported"):
    """A constraint that this scheduler does not honour; the pod waits rather than being placed against its wish."""

    task: str
    field: str


class Outranked(msgspec.Struct, frozen=True, tag="outranked"):
    """A job of the same queue and of higher priority takes the room that was freed for the task."""

    job: str


class NodeUnfit(msgspec.Struct, frozen=True, tag="node-unfit"):
    """The node that room was freed on for a task takes it no longer.

    ``rule`` and ``detail`` as of a :class:`NodeRule`; without a rule the node does not exist.
    """

    node: str
    rule: str = ""
    detail: str = ""


class WrongCard(msgspec.Struct, frozen=True, tag="wrong-card"):
    """A pod names a card that does not exist, or does not ask for it as its nodes offer it."""

    task: str
    problem: str


class WrongService(msgspec.Struct, frozen=True, tag="wrong-service"):
    """A pod's kind of work may not reclaim: only online services do."""

    task: str
    service: str


class NotEntitled(msgspec.Struct, frozen=True, tag="not-entitled"):
    """The preemptor's queue may not reclaim: with the request it would hold more than it deserves."""

    queue: str
    dimension: str = ""
    allocated: int = 0
    requested: int = 0
    deserved: int = 0


class NeverPreempts(msgspec.Struct, frozen=True, tag="never-preempts"):
    """The pod's preemptionPolicy is Never: it waits for room, it makes none."""

    task: str


class NoVictims(msgspec.Struct, frozen=True, tag="no-victims"):
    """An action looked for victims and found too few."""

    action: str
    task: str
    candidates: int
    spared: tuple[ProtectedCount, ...] = ()


class TooCostly(msgspec.Struct, frozen=True, tag="too-costly"):
    """To find room for the job in an action costs more work than a single job may."""

    action: str


UnschedulableReason = (
    PluginMessage
    | QueueLimit
    | QueueClosed
    | QueueBroken
    | NoGroup
    | ClusterLimit
    | NoNode
    | GangShort
    | PodsMissing
    | Gated
    | NotBackfilled
    | Unsupported
    | Outranked
    | NodeUnfit
    | WrongCard
    | WrongService
    | NotEntitled
    | NeverPreempts
    | NoVictims
    | TooCostly
)


class Refusal(msgspec.Struct, frozen=True):
    """Why a job, or some task of it, still waits: each rule that stood in the way, rendered as one clause."""

    items: tuple[UnschedulableReason, ...] = ()

    def also(self, *more: UnschedulableReason) -> Refusal:
        """This refusal with further rules, each said once."""
        return Refusal(tuple(dict.fromkeys((*self.items, *more))))
