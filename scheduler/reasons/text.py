"""Render reasons as text.

Only this module turns a reason into a sentence, so that a pod's condition, an event and `explain` agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..model.printable import one_line
from ..model.resources import PODS, render_amount
from . import victims as v
from . import waiting as w

_NODE_RULES = {
    "resource": ("lacks {}", "lack {}"),
    "missing": ("has no {}", "have no {}"),
    "pods": ("has no pod slot left", "have no pod slot left"),
    "taint": ("has the taint {}", "have the taint {}"),
    "selector": ("does not match the node selector {}", "do not match the node selector {}"),
    "affinity": ("does not match the node affinity", "do not match the node affinity"),
    "pod-affinity": ("does not match the pod affinity", "do not match the pod affinity"),
    "pod-anti-affinity": ("holds a pod that the anti-affinity excludes", "hold a pod that the anti-affinity excludes"),
    "unschedulable": ("is unschedulable", "are unschedulable"),
    "not-ready": ("is not ready", "are not ready"),
    "port": ("has port {} taken", "have port {} taken"),
    "spread": ("would break the topology spread over {}", "would break the topology spread over {}"),
    "attachments": ("can attach no more volumes of {}", "can attach no more volumes of {}"),
    "volume": ("does not reach the volume {}", "do not reach the volume {}"),
    "no-group": ("is in no node group", "are in no node group"),
    "other-group": ("is in node group {}, not the queue's", "are in node group {}, not the queue's"),
    "group-limit": ("is in a node group at its limit ({})", "are in a node group at its limit ({})"),
    "card": ("has no card {}", "have no card {}"),
    "shared-card": ("has no shared card that fits ({})", "have no shared card that fits ({})"),
    "card-quota": ("has the card {}, whose quota is used up", "have the card {}, whose quota is used up"),
}  # fmt: skip


def count(number: int, noun: str) -> str:
    """Format a count: `1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _of(dimension: str, part: int, whole: int) -> str:
    """Format a part of an amount: `6 of 8 nvidia.com/gpu`."""
    unit = "" if dimension == PODS else f" {dimension}"
    return f"{render_amount(dimension, part)} of {render_amount(dimension, whole)}{unit or ' pods'}"


def _reserved(why: w.QueueLimit | w.NamespaceQuota) -> str:
    """Format what admitted jobs reserve, with the names of the two that reserve most."""
    if not why.inqueue:
        return ""
    names = f" ({', '.join(why.reserved_by)})" if why.reserved_by else ""
    return f", {render_amount(why.dimension, why.inqueue)} reserved by admitted jobs{names}"


def _queue_limit(why: w.QueueLimit) -> str:
    dim, amount = why.dimension, render_amount(why.dimension, why.amount)
    others = render_amount(dim, why.guaranteed_to_others)
    kept = f" ({others} guaranteed to other queues)" if why.guaranteed_to_others else ""
    inqueue = _reserved(why)
    return (
        f"queue {why.queue}: {_of(dim, why.allocated, why.amount)} allocated{inqueue}, "
        f"{render_amount(dim, why.requested)} requested, {why.limit} {amount}{kept}"
    )


def _guarantee_kept(why: w.GuaranteeKept) -> str:
    dim, where = why.dimension, f" in queue {why.pool}" if why.pool else ""
    free, kept = (render_amount(dim, max(amount, 0)) for amount in (why.left, why.guaranteed_to_others))
    return (
        f"queue {why.queue}: {render_amount(dim, why.requested)} {dim} requested, {free} free{where}, "
        f"and {kept} guaranteed to other queues ({', '.join(why.others)})"
    )


def _namespace_quota(why: w.NamespaceQuota) -> str:
    dim = why.dimension
    inqueue = _reserved(why)
    return (
        f"ResourceQuota {why.quota}: {_of(dim, why.allocated, why.amount)} used{inqueue}, "
        f"{render_amount(dim, why.requested)} requested"
    )


def _no_domain(why: w.NoDomain) -> str:
    whose = f"subgroup {why.group}: " if why.group else ""
    whose += f"{why.above} is allowed and above every HyperNode; " if why.above else ""
    if not why.best:
        return f"{whose}no {why.kind} has a node for the pods"
    room = f"{why.best} has room for {why.room} of {count(why.pods, 'pod')}"
    if why.dimension:
        left, requested = render_amount(why.dimension, why.left), render_amount(why.dimension, why.requested)
        room += f" ({left} of {requested} {why.dimension} free)"
    elif why.nodes is not None:
        room += f" ({_no_node(why.nodes)})"
    if why.domains == 1:
        return f"{whose}{room}"
    return f"{whose}{room}; none of {why.domains} domains ({why.kind}) has room for {why.pods}"


def _outside_domain(why: w.OutsideDomain) -> str:
    whose = f"subgroup {why.group} " if why.group else ""
    where = f"across {why.across}" if why.across else "on nodes of no common domain"
    return f"{whose}runs {where}, but only {why.limit} is allowed: no more pods are placed"


def _unplaceable(why: w.Unplaceable) -> str:
    if why.dimension:
        requested, amount = (render_amount(why.dimension, value) for value in (why.requested, why.amount))
        cause = f"no node could ever hold {why.task}: {requested} {why.dimension} requested, at most {amount} on a node"
    elif why.room:
        cause = f"all nodes together could never hold more than {why.room} of at least {why.minimum} pods"
    else:
        cause = f"no node could ever hold {why.task}"
    return f"{cause}; its reservation does not count against other jobs"


def _node_rule(rule: w.NodeRule) -> str:
    if rule.rule == "missing":
        return f"no node has {rule.detail}"
    one, many = _NODE_RULES.get(rule.rule, ("{}", "{}"))
    return f"{rule.nodes} {(one if rule.nodes == 1 else many).format(rule.detail)}"


def _node_unfit(why: w.NodeUnfit) -> str:
    if not why.rule:
        return f"node {why.node} does not exist"
    return f"node {why.node} {_NODE_RULES.get(why.rule, ('{}', '{}'))[0].format(why.detail)}"


def _no_node(why: w.NoNode) -> str:
    rules = ", ".join(_node_rule(rule) for rule in sorted(why.rules, key=lambda r: (-r.nodes, r.rule, r.detail)))
    return (
        f"{count(why.nodes, 'node')}: {rules}"
        if rules
        else f"{count(why.nodes, 'node')}, none is suitable for {why.task}"
    )


def _not_entitled(why: w.NotEntitled) -> str:
    if not why.dimension:
        return f"queue {why.queue} may not reclaim"
    dim = why.dimension
    return (
        f"queue {why.queue} may not reclaim: {render_amount(dim, why.allocated)} {dim} allocated and "
        f"{render_amount(dim, why.requested)} requested, deserved {render_amount(dim, why.deserved)}"
    )


def _no_victims(why: w.NoVictims) -> str:
    if not why.candidates:
        return f"{why.action}: no candidates"
    spared = _spared(why.spared)
    surplus = "".join(f", {_surplus(item)}" for item in why.surplus)
    return (
        f"{why.action}: {count(why.candidates, 'candidate')}: "
        f"{spared or 'evicting all of them would not free enough'}{surplus}"
    )


def _spared(items: Iterable[v.ProtectedCount]) -> str:
    """Format the protections; of all pods with a cooldown, name only the one whose cooldown ends first."""
    found = list(items)
    cooling = [item for item in found if isinstance(item.why, v.CoolingDown)]
    if len(cooling) > 1:
        first = min(cooling, key=lambda item: (item.why.seconds, item.why.pod))  # type: ignore[union-attr]
        whole = v.ProtectedCount(sum(item.count for item in cooling), first.why)
        found = [whole if item is cooling[0] else item for item in found if item is cooling[0] or item not in cooling]
    return ", ".join(f"{item.count} {render_denial(item.why)}" for item in found)


def _surplus(item: v.QueueSurplus) -> str:
    above = item.allocated - item.deserved
    return f"queue {item.queue} holds {_of(item.dimension, above, item.allocated)} above deserved"


def _gang_minimum(why: v.GangMinimum) -> str:
    if not why.pods:
        return f"needed by gang {why.job} (minimum {why.minimum})"
    least = f"all {why.pods} pods" if why.pods == why.minimum else f"{why.minimum} of its {why.pods} pods"
    least = "its only pod" if why.pods == 1 else least
    return f"needed by gang {why.job}, which needs {least} (gang, tier {why.tier + 1})"


def _vetoed(why: v.Vetoed) -> str:
    where = f"{why.plugin}, tier {why.tier + 1}"
    text = render_denial(why.why) if why.why is not None else "vetoed"
    return f"{text[:-1]}; {where})" if text.endswith(")") else f"{text} ({where})"


_SETTINGS = {"capability": "spec.capability", "deserved": "spec.weight", "quota": "volcano.sh/card.quota"}
"""Name of a limit → the setting of a queue that determines the limit."""


def _queue_excess(why: w.QueueExcess) -> str:
    dim, excess = why.dimension, render_amount(why.dimension, why.allocated - why.amount)
    setting = f"{_SETTINGS.get(why.limit, why.limit)} of queue {why.set_by}"
    if not why.set_by:
        remedy = "lower spec.guarantee of the other queues"
    elif why.limit == "deserved" or why.set_by != why.queue:
        remedy = f"raise {setting}"
    else:
        remedy = f"raise {setting} to {render_amount(dim, why.allocated + why.requested)} {dim}"
    return (
        f"{why.action}: queue {why.queue} holds {excess} {dim} more than its {why.limit} of "
        f"{render_amount(dim, why.amount)}, too much to evict for one job; {remedy}, or end jobs of it"
    )


def _not_starving(why: w.NotStarving) -> str:
    if not why.plugin:
        return f"{why.action}: no plugin of the policy lets a job evict; name the plugin priority or gang"
    remedy = f"set enableJobStarving: false of {why.plugin}" + ("" if why.others else ", and name the plugin priority")
    return (
        f"{why.action}: evicts only for the minimum of a job, {count(why.minimum, 'pod')} here "
        f"({why.plugin}, tier {why.tier + 1}); {remedy} to evict for its other pods"
    )


def _pods_missing(why: w.PodsMissing) -> str:
    if why.group:
        return f"gang: {why.pods} of at least {why.minimum} subgroups {why.group} have enough pods"
    return f"gang: {why.pods} of at least {why.minimum} pods{_role(why.role)} exist"


def _role(role: str) -> str:
    return f" of role {role}" if role else ""


_WHY: dict[type, Callable[[Any], str]] = {
    v.PluginMessage: lambda why: f"{why.plugin}: {why.text}",
    w.QueueLimit: _queue_limit,
    w.GuaranteeKept: _guarantee_kept,
    w.NamespaceQuota: _namespace_quota,
    w.TopologyUnmet: lambda why: why.problem,
    w.NoDomain: _no_domain,
    w.OutsideDomain: _outside_domain,
    w.QueueClosed: lambda why: f"queue {why.queue} is {why.state}",
    w.QueueBroken: lambda why: f"queue {why.queue}: {why.problem}",
    w.NoGroup: lambda why: f"PodGroup {why.group} does not exist or cannot be read",
    w.ClusterLimit: lambda why: (
        f"cluster: {render_amount(why.dimension, why.requested)} {why.dimension} requested, "
        f"{render_amount(why.dimension, why.left)} can still be admitted"
    ),
    w.NoNode: _no_node,
    w.Unplaceable: _unplaceable,
    w.GangShort: lambda why: f"gang: {why.placed} of at least {why.minimum} tasks{_role(why.role)} can be placed",
    w.PodsMissing: _pods_missing,
    w.Gated: lambda why: f"{count(why.pods, 'pod')} held by scheduling gates",
    w.NotBackfilled: lambda why: f"{count(why.pods, 'pod')} without requests, and the policy names no backfill action",
    w.Unsupported: lambda why: f"{why.task}: {why.field} is not supported by this scheduler",
    w.Outranked: lambda why: f"{why.job}, of higher priority, takes the room",
    w.ReclaimedNext: lambda why: f"preempt: {why.job} of another queue would reclaim what it gets",
    w.NodeUnfit: _node_unfit,
    w.WrongCard: lambda why: f"{why.task}: {why.problem}",
    w.WrongService: lambda why: f"{why.task} may not reclaim: its service type is {why.service}",
    w.NotEntitled: _not_entitled,
    w.NotStarving: _not_starving,
    w.QueueOverused: lambda why: (
        f"{why.action}: queue {why.queue} holds all that it deserves ({why.plugin}, tier {why.tier + 1}); "
        f"set enabledOverused: false of {why.plugin} to judge each job instead"
    ),
    w.NeverPreempts: lambda why: f"{why.task} has preemptionPolicy Never",
    w.NoVictims: _no_victims,
    w.QueueExcess: _queue_excess,
    w.OutOfProportion: lambda why: (
        f"{why.action}: {render_amount(why.dimension, why.evicted)} {why.dimension} would be evicted to place "
        f"{render_amount(why.dimension, why.requested)}, too much for one job; raise the quota of its queue, or "
        "relax its anti-affinity"
    ),
    w.TooCostly: lambda why: (
        f"{why.action}: finding nodes for this job takes too long, so it is retried after all other jobs; "
        f"{f'shorten {why.field}' if why.field else 'use fewer affinity terms and constraints'}"
    ),
}

_PROTECTIONS = {
    v.ProtectedBy.PREEMPTABLE: "not preemptable",
    v.ProtectedBy.SYSTEM: "part of the system",
    v.ProtectedBy.BUDGET: "protected by disruption budget",
    v.ProtectedBy.SERVICE_TYPE: "protected by service type",
    v.ProtectedBy.CARDS: "without a requested card",
    v.ProtectedBy.QUEUE: "in a queue that is not reclaimable",
    v.ProtectedBy.STATUS: "not running yet",
    v.ProtectedBy.NEIGHBOUR: "required by the pod affinity or topology spread of a pod placed in this cycle",
    v.ProtectedBy.BEST_EFFORT: "with requests, while the preemptor has none",
    v.ProtectedBy.PREEMPTOR: "of a job that already caused evictions in this cycle",
}

_DENIAL: dict[type, Callable[[Any], str]] = {
    v.PluginMessage: lambda why: f"protected by {why.plugin} ({why.text})",
    v.QueueWithinDeserved: lambda why: (
        f"protected by queue {why.queue} at its deserved ({_of(why.dimension, why.allocated, why.deserved)})"
    ),
    v.QueueGuarantee: lambda why: (
        f"protected by the guarantee of queue {why.queue} "
        f"({_of(why.dimension, why.guarantee, why.allocated)} allocated is guaranteed)"
    ),
    v.PingPong: lambda why: f"protected because queue {why.queue} could reclaim the room at once",
    v.NotLower: lambda why: (
        f"of equal priority {why.priority}"
        if why.priority == why.preemptor
        else f"of higher priority ({why.priority} against {why.preemptor})"
    ),
    v.GangMinimum: _gang_minimum,
    v.Protected: lambda why: f"{_PROTECTIONS[why.by]} {why.detail}".rstrip(),
    v.CoolingDown: lambda why: f"placed too recently ({why.pod} for {why.seconds} s more)",
    v.OfNoUse: lambda _: "of no use to the preemptor",
    v.NotNeeded: lambda _: "not needed",
    v.SmallerShare: lambda why: (
        f"of job {why.job}, which would hold less of the cluster than the preemptor's job "
        f"({why.share / 10:g}% before, against {why.preemptor / 10:g}%)"
    ),
    v.Vetoed: _vetoed,
    v.PartOfProtectedGang: lambda why: f"in gang {why.job}, of which {why.member} is protected",
}  # fmt: skip


MAX_CLAUSE = 2_000
"""Characters of the longest clause: a tenant's names in it may have 250 KB each."""


def render_why(why: w.UnschedulableReason) -> str:
    """Return one reason as a clause."""
    return _clause(_WHY[type(why)](why))


def render_denial(denial: v.Protection) -> str:
    """Return one protection as the text that follows a number of candidates: `2` + `protected by queue b …`."""
    return _clause(_DENIAL[type(denial)](denial))


def _clause(text: str) -> str:
    return one_line(text if len(text) <= MAX_CLAUSE else f"{text[:MAX_CLAUSE]}…")


def render_refusal(refusal: w.Refusal) -> str:
    """Return why a job waits, as the message of a condition or event."""
    return "; ".join(_unique(render_why(item) for item in refusal.items))


def render_victim(reason: v.VictimReason) -> str:
    """Return why a pod was evicted, as the message of a condition or event."""
    verb = "reclaimed" if reason.action == "reclaim" else "preempted"
    where = f"queue {reason.preemptor_queue}" if reason.action == "preempt" else (
        f"queue {reason.preemptor_queue} (victim's queue: {reason.queue})"
    )  # fmt: skip
    stay = reason.members_that_stay
    gang = (", the whole gang" if reason.whole_gang else "") + (f" but for {count(stay, 'pod')}" if stay else "")
    votes = ", ".join(f"{plugin} {'permits' if permits else 'vetoes'}" for plugin, permits in reason.votes)
    decided = f"; tier {reason.tier + 1} decided ({votes})" if votes else ""
    spared = _spared(reason.spared)
    return f"{verb} for {reason.preemptor} of {where}{gang}{decided}" + (f"; others: {spared}" if spared else "")


def render_overdue(reason: v.StillTerminating) -> str:
    """Return the message of the event about a victim that does not terminate."""
    return (
        f"still terminating on {reason.node or 'no node'} {reason.seconds} s after its deletion was requested; "
        "its room no longer counts as being freed, and other pods may be evicted instead"
    )


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
