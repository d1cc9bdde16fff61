"""Why a job still waits, as data.

A *why* is one rule that kept a job waiting, with the numbers of the decision (units of `scheduler.model.resources`).
"""

from __future__ import annotations

import msgspec

from .victims import PluginMessage, ProtectedCount, QueueSurplus


class QueueLimit(msgspec.Struct, frozen=True, tag="queue-limit"):
    """A queue (or ancestor) would be lifted above a limit.

    `limit` names which: capability, deserved, real capability, card quota.
    """

    queue: str
    dimension: str
    allocated: int
    requested: int
    limit: str
    amount: int
    inqueue: int = 0
    """Reserved by admitted jobs that are not placed yet; counts at enqueue."""
    guaranteed_to_others: int = 0
    """The guarantees of other queues, if these and not the queue's own capability set the amount."""


class QueueClosed(msgspec.Struct, frozen=True, tag="queue-closed"):
    """The queue takes no work in this state."""

    queue: str
    state: str


class QueueBroken(msgspec.Struct, frozen=True, tag="queue-broken"):
    """The queue's place in the tree or its amounts are invalid. Until they are corrected, no job of it is placed."""

    queue: str
    problem: str


class NoGroup(msgspec.Struct, frozen=True, tag="no-group"):
    """Pods name a PodGroup that does not exist or cannot be read (its own condition says why)."""

    group: str


class ClusterLimit(msgspec.Struct, frozen=True, tag="cluster-limit"):
    """Admission stops at what the cluster as a whole has left (overcommit)."""

    dimension: str
    requested: int
    left: int


class NamespaceQuota(msgspec.Struct, frozen=True, tag="namespace-quota"):
    """A ResourceQuota of the namespace has too little left for the job's minimum."""

    quota: str
    """`namespace/name` of the ResourceQuota."""
    dimension: str
    allocated: int
    """The amount that the quota counts as used."""
    requested: int
    amount: int
    """The amount that the quota permits."""
    inqueue: int = 0
    """The part of their minimum that admitted PodGroups of the namespace still lack."""


class TopologyUnmet(msgspec.Struct, frozen=True, tag="topology-unmet"):
    """The topology that the job requests cannot be resolved."""

    job: str
    problem: str


class NodeRule(msgspec.Struct, frozen=True, order=True):
    """The number of nodes that one rule excludes.

    `rule` is one with words in `scheduler.reasons.text` (resource, pods, taint, selector, affinity, port, …). Any other
    rule is shown by its detail.
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


class NoDomain(msgspec.Struct, frozen=True, tag="no-domain"):
    """No domain that may hold the gang, or one of its subgroups, has room for enough of it."""

    kind: str
    """The users' word for such domains: `rack`."""
    domains: int
    """The number of domains; 1 if running pods bind the other pods to one domain."""
    best: str
    """The domain with the most room."""
    room: int
    """The number of pods that find room in the best domain."""
    pods: int
    """The number of pods that have to be placed together."""
    dimension: str = ""
    """The resource that the best domain lacks; empty if it lacks none in sum."""
    left: int = 0
    requested: int = 0
    """The sum of the pods' requests in the dimension."""
    group: str = ""
    """The subgroup; empty for the job as a whole."""
    above: str = ""
    """The tier that is allowed, where it is above every tier that there is."""
    nodes: NoNode | None = None
    """Why the nodes of the best domain take no more pods; None if a sum says it."""


class OutsideDomain(msgspec.Struct, frozen=True, tag="outside-domain"):
    """Pods of the gang run further apart than is permitted now; nothing more of it is placed."""

    limit: str
    across: str
    """The smallest domain that holds them all; empty if none does."""
    group: str = ""


class GangShort(msgspec.Struct, frozen=True, tag="gang-short"):
    """Some tasks of the gang have a place, too few for it to start."""

    placed: int
    minimum: int
    role: str = ""


class PodsMissing(msgspec.Struct, frozen=True, tag="pods-missing"):
    """The job has fewer pods than its minimum; they have yet to be created.

    With `group`, a policy of that name has too few complete subgroups.
    """

    pods: int
    minimum: int
    role: str = ""
    group: str = ""


class Gated(msgspec.Struct, frozen=True, tag="gated"):
    """Pods that carry scheduling gates are not placed."""

    pods: int


class NotBackfilled(msgspec.Struct, frozen=True, tag="not-backfilled"):
    """Pods that ask for nothing are placed by the backfill action only, and the policy does not name it."""

    pods: int


class Unsupported(msgspec.Struct, frozen=True, tag="unsupported"):
    """A constraint that this scheduler does not support; the pod waits and is not placed against it."""

    task: str
    field: str


class Outranked(msgspec.Struct, frozen=True, tag="outranked"):
    """A job of the same queue and of higher priority takes the room that was freed for the task."""

    job: str


class NodeUnfit(msgspec.Struct, frozen=True, tag="node-unfit"):
    """A task does not fit any more onto the node on which room was freed for it.

    `rule` and `detail` mean the same as in a `NodeRule`; without a rule the node does not exist.
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
    """The pod's preemptionPolicy is Never: the pod waits for room and evicts nothing."""

    task: str


class NoVictims(msgspec.Struct, frozen=True, tag="no-victims"):
    """An action looked for victims and found too few."""

    action: str
    task: str
    candidates: int
    spared: tuple[ProtectedCount, ...] = ()
    """By kind of protection, how many candidates it protects."""
    surplus: tuple[QueueSurplus, ...] = ()
    """For a reclaim, the candidates' queues that held more than they deserve at the start of the cycle."""


class QueueExcess(msgspec.Struct, frozen=True, tag="queue-excess"):
    """A queue (or ancestor) holds so much more than a limit that one job's evictions would not be in proportion.

    Attributes:
        limit: capability, deserved or quota, as in `QueueLimit`.
        set_by: Name of the queue whose spec sets the limit, itself or an ancestor; empty where other queues' guarantees
            lower it.
    """

    action: str
    queue: str
    dimension: str
    allocated: int
    requested: int
    limit: str
    amount: int
    set_by: str = ""


class OutOfProportion(msgspec.Struct, frozen=True, tag="out-of-proportion"):
    """Room for a job would take more evictions than are in proportion to it, for a quota of cards or its neighbours."""

    action: str
    dimension: str
    evicted: int
    requested: int


class TooCostly(msgspec.Struct, frozen=True, tag="too-costly"):
    """Finding room for the job in an action costs more work than a single job may.

    `field` is the field of its pods that costs it; empty where it is their number.
    """

    action: str
    field: str = ""


UnschedulableReason = (
    PluginMessage
    | QueueLimit
    | QueueClosed
    | QueueBroken
    | NoGroup
    | ClusterLimit
    | NamespaceQuota
    | TopologyUnmet
    | NoDomain
    | OutsideDomain
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
    | QueueExcess
    | OutOfProportion
    | TooCostly
)


class Refusal(msgspec.Struct, frozen=True):
    """Why a job, or some task of it, still waits: each rule that stood in the way, rendered as one clause."""

    items: tuple[UnschedulableReason, ...] = ()

    def also(self, *more: UnschedulableReason) -> Refusal:
        """This refusal with further rules, each said once."""
        return Refusal(tuple(dict.fromkeys((*self.items, *more))))
