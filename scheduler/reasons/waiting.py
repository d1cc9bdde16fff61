"""Why a job still waits, as data.

A *why* is one rule that kept a job waiting, with the numbers of the decision (units of `scheduler.model.resources`).
"""

from __future__ import annotations

import msgspec

from .victims import PluginMessage, ProtectedCount, QueueSurplus


class QueueLimit(msgspec.Struct, frozen=True, tag="queue-limit"):
    """The job would lift a queue (or an ancestor) above a limit.

    `limit` is the name of the limit: capability, deserved or quota.
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
    """The guarantees of other queues, if these set the amount instead of the queue's own capability."""
    reserved_by: tuple[str, ...] = ()
    """The two jobs that reserve most of `inqueue`."""


class GuaranteeKept(msgspec.Struct, frozen=True, tag="guarantee-kept"):
    """The job would use capacity that is guaranteed to other queues and that these do not use yet."""

    queue: str
    dimension: str
    requested: int
    left: int
    """What is free."""
    guaranteed_to_others: int
    others: tuple[str, ...]
    """The queues (or branches) with the largest unused guarantees, at most two."""
    pool: str = ""
    """The ancestor in which too little is free; empty for the cluster."""


class QueueClosed(msgspec.Struct, frozen=True, tag="queue-closed"):
    """The queue accepts no jobs in this state."""

    queue: str
    state: str


class QueueBroken(msgspec.Struct, frozen=True, tag="queue-broken"):
    """The queue's place in the tree or its amounts are invalid. Until they are corrected, no job of it is placed."""

    queue: str
    problem: str


class NoGroup(msgspec.Struct, frozen=True, tag="no-group"):
    """Pods name a PodGroup that does not exist, or that cannot be read (its condition names the error)."""

    group: str


class ClusterLimit(msgspec.Struct, frozen=True, tag="cluster-limit"):
    """Admission would exceed what the cluster as a whole has left (overcommit)."""

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
    reserved_by: tuple[str, ...] = ()
    """The two jobs that reserve most of `inqueue`."""


class TopologyUnmet(msgspec.Struct, frozen=True, tag="topology-unmet"):
    """The topology that the job requests cannot be resolved."""

    job: str
    problem: str


class NodeRule(msgspec.Struct, frozen=True, order=True):
    """The number of nodes that one rule excludes.

    `scheduler.reasons.text` has the words for each `rule` of ours (resource, pods, taint, selector, …). Any other rule
    is shown as its `detail`.
    """

    nodes: int
    rule: str
    detail: str = ""


class NoNode(msgspec.Struct, frozen=True, tag="no-node"):
    """No node fits a task: the number of all nodes, and the number that each rule excludes.

    A node counts once, for the first rule that excludes it.
    """

    task: str
    nodes: int
    rules: tuple[NodeRule, ...] = ()


class Unplaceable(msgspec.Struct, frozen=True, tag="unplaceable"):
    """The nodes could not hold the job even if they were empty. What it reserves counts against no other job."""

    task: str
    """The first task that no node could hold; the first waiting task if single tasks fit."""
    pods: int
    """The number of waiting pods."""
    room: int
    """The number of them that empty nodes could hold."""
    minimum: int
    """The number of further pods that the job needs to start."""
    dimension: str = ""
    """A resource of which the task requests more than any node has; empty if another rule excludes the nodes."""
    requested: int = 0
    amount: int = 0
    """What the largest node has."""


class NoDomain(msgspec.Struct, frozen=True, tag="no-domain"):
    """No permitted domain has room for enough pods of the gang, or of one of its subgroups."""

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
    """The resource of which the best domain has too little in sum; empty if there is none."""
    left: int = 0
    requested: int = 0
    """The sum of the pods' requests in the dimension."""
    group: str = ""
    """The subgroup; empty for the job as a whole."""
    above: str = ""
    """The highest allowed tier, if it is above every existing tier."""
    nodes: NoNode | None = None
    """Why the nodes of the best domain fit no more pods; None if `dimension` is the reason."""


class OutsideDomain(msgspec.Struct, frozen=True, tag="outside-domain"):
    """Pods of the gang run further apart than is permitted now, so no more of its pods are placed."""

    limit: str
    across: str
    """The smallest domain that contains these pods; empty if none does."""
    group: str = ""


class GangShort(msgspec.Struct, frozen=True, tag="gang-short"):
    """Some tasks of the gang can be placed, but too few for the gang to start."""

    placed: int
    minimum: int
    role: str = ""


class PodsMissing(msgspec.Struct, frozen=True, tag="pods-missing"):
    """The job has fewer pods than its minimum; the missing pods are not created yet.

    With `group`, the subgroup policy of that name has too few complete subgroups.
    """

    pods: int
    minimum: int
    role: str = ""
    group: str = ""


class Gated(msgspec.Struct, frozen=True, tag="gated"):
    """Pods that carry scheduling gates are not placed."""

    pods: int


class NotBackfilled(msgspec.Struct, frozen=True, tag="not-backfilled"):
    """Only the action backfill places pods without requests, and the policy does not name this action."""

    pods: int


class Unsupported(msgspec.Struct, frozen=True, tag="unsupported"):
    """The pod has a constraint that this scheduler does not support, and waits instead of violating it."""

    task: str
    field: str


class Outranked(msgspec.Struct, frozen=True, tag="outranked"):
    """A job of the same queue and of higher priority uses the room that was freed for the task."""

    job: str


class ReclaimedNext(msgspec.Struct, frozen=True, tag="reclaimed-next"):
    """A job of another queue would reclaim at once what the job gets, because it lifts its queue above its share."""

    job: str


class NodeUnfit(msgspec.Struct, frozen=True, tag="node-unfit"):
    """A task no longer fits on the node on which room was freed for it.

    `rule` and `detail` are as in `NodeRule`; if `rule` is empty, the node does not exist.
    """

    node: str
    rule: str = ""
    detail: str = ""


class WrongCard(msgspec.Struct, frozen=True, tag="wrong-card"):
    """A pod names a card that does not exist, or requests a card in another way than the nodes offer it."""

    task: str
    problem: str


class WrongService(msgspec.Struct, frozen=True, tag="wrong-service"):
    """The pod's service type may not reclaim: only online services may."""

    task: str
    service: str


class NotEntitled(msgspec.Struct, frozen=True, tag="not-entitled"):
    """The preemptor's queue may not reclaim: with the request it would hold more than it deserves."""

    queue: str
    dimension: str = ""
    allocated: int = 0
    requested: int = 0
    deserved: int = 0


class NotStarving(msgspec.Struct, frozen=True, tag="not-starving"):
    """A plugin's switch `enableJobStarving` ends an action for the job: it evicts for no more of the job's pods."""

    action: str
    """`reclaim` or `preempt`."""
    plugin: str = ""
    """The plugin that says so; empty if no plugin of the policy lets a job evict."""
    tier: int = 0
    """Number of the plugin's tier, from 0."""
    minimum: int = 0
    others: bool = False
    """Whether the other plugins of the tier would let the action evict."""


class QueueOverused(msgspec.Struct, frozen=True, tag="queue-overused"):
    """A plugin's switch `enabledOverused` ends an action for the jobs of a queue that holds all that it deserves."""

    action: str
    queue: str
    plugin: str
    tier: int


class NeverPreempts(msgspec.Struct, frozen=True, tag="never-preempts"):
    """The pod's preemptionPolicy is Never: the pod waits for room and evicts nothing."""

    task: str


class NoVictims(msgspec.Struct, frozen=True, tag="no-victims"):
    """An action looked for victims and found too few."""

    action: str
    task: str
    candidates: int
    spared: tuple[ProtectedCount, ...] = ()
    """The number of candidates that each kind of protection protects."""
    surplus: tuple[QueueSurplus, ...] = ()
    """For `reclaim`: the candidates' queues that held more than they deserve at the start of the cycle."""


class QueueExcess(msgspec.Struct, frozen=True, tag="queue-excess"):
    """A queue (or an ancestor) exceeds a limit so far that the evictions would be out of proportion to one job.

    Attributes:
        limit: capability, deserved or quota, as in `QueueLimit`.
        set_by: Name of the queue whose spec sets the limit: the queue itself or an ancestor; empty if the guarantees
            of other queues lower the limit.
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
    """Evictions for the job would be out of proportion to it, because of a card quota or its anti-affinity."""

    action: str
    dimension: str
    evicted: int
    requested: int


class TooCostly(msgspec.Struct, frozen=True, tag="too-costly"):
    """Finding room for the job in an action costs more steps than the maximum of one job.

    `field` is the field of its pods that causes the cost; empty if their number causes it.
    """

    action: str
    field: str = ""


UnschedulableReason = (
    PluginMessage
    | QueueLimit
    | GuaranteeKept
    | QueueClosed
    | QueueBroken
    | NoGroup
    | ClusterLimit
    | NamespaceQuota
    | TopologyUnmet
    | Unplaceable
    | NoDomain
    | OutsideDomain
    | NoNode
    | GangShort
    | PodsMissing
    | Gated
    | NotBackfilled
    | Unsupported
    | Outranked
    | ReclaimedNext
    | NodeUnfit
    | WrongCard
    | WrongService
    | NotEntitled
    | NotStarving
    | QueueOverused
    | NeverPreempts
    | NoVictims
    | QueueExcess
    | OutOfProportion
    | TooCostly
)


class Refusal(msgspec.Struct, frozen=True):
    """Why a job, or some task of it, still waits: the rules that refused it, each rendered as one clause."""

    items: tuple[UnschedulableReason, ...] = ()

    def also(self, *more: UnschedulableReason) -> Refusal:
        """Return this refusal with further rules, without duplicates."""
        if not self.items and len(more) == 1:
            return Refusal(more)
        items = list(self.items)
        for why in more:
            if why not in items:  # a few reasons of different types: comparing costs less than hashing
                items.append(why)
        return Refusal(tuple(items))
