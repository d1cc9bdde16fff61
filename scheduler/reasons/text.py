"""Reasons as people read them.

The one rule: this is the only place that makes a sentence of a reason, so that a pod's condition, an event and
``explain`` say the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..model.resources import PODS, render_amount
from . import victims as v
from . import waiting as w

_NODE_RULES = {
    "resource": ("lacks {}", "lack {}"),
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
    "card": ("has no card {}", "have no card {}"),
    "card-quota": ("has the card {}, whose quota is used up", "have the card {}, whose quota is used up"),
}  # fmt: skip


def count(number: int, noun: str) -> str:
    """``1 node``, ``2 nodes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _of(dimension: str, part: int, whole: int) -> str:
    """``6 of 8 nvidia.com/gpu``"""
    unit = "" if dimension == PODS else f" {dimension}"
    return f"{render_amount(dimension, part)} of {render_amount(dimension, whole)}{unit or ' pods'}"


def _queue_limit(why: w.QueueLimit) -> str:
    dim, amount = why.dimension, render_amount(why.dimension, why.amount)
    inqueue = f", {render_amount(dim, why.inqueue)} reserved by admitted jobs" if why.inqueue else ""
    return (
        f"queue {why.queue}: {_of(dim, why.allocated, why.amount)} allocated{inqueue}, "
        f"{render_amount(dim, why.requested)} requested, {why.limit} {amount}"
    )


def _node_rule(rule: w.NodeRule) -> str:
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
    spared = ", ".join(f"{item.count} {render_denial(item.why)}" for item in why.spared)
    return (
        f"{why.action}: {count(why.candidates, 'candidate')}: {spared or 'evicting all of them would not free enough'}"
    )


def _role(role: str) -> str:
    return f" of role {role}" if role else ""


_WHY: dict[type, Callable[[Any], str]] = {
    v.PluginMessage: lambda why: f"{why.plugin}: {why.text}",
    w.QueueLimit: _queue_limit,
    w.QueueClosed: lambda why: f"queue {why.queue} is {why.state}",
    w.QueueBroken: lambda why: f"queue {why.queue}: {why.problem}",
    w.NoGroup: lambda why: f"PodGroup {why.group} does not exist or cannot be read",
    w.ClusterLimit: lambda why: (
        f"cluster: {render_amount(why.dimension, why.requested)} {why.dimension} requested, "
        f"{render_amount(why.dimension, why.left)} can still be admitted"
    ),
    w.NoNode: _no_node,
    w.GangShort: lambda why: f"gang: {why.placed} of at least {why.minimum} tasks{_role(why.role)} can be placed",
    w.PodsMissing: lambda why: f"gang: {why.pods} of at least {why.minimum} pods{_role(why.role)} exist",
    w.Gated: lambda why: f"{count(why.pods, 'pod')} held by scheduling gates",
    w.NotBackfilled: lambda why: f"{count(why.pods, 'pod')} without requests, and the policy names no backfill action",
    w.Unsupported: lambda why: f"{why.task}: {why.field} is not supported by this scheduler",
    w.Outranked: lambda why: f"{why.job}, of higher priority, takes the room",
    w.NodeUnfit: _node_unfit,
    w.WrongCard: lambda why: f"{why.task}: {why.problem}",
    w.WrongService: lambda why: f"{why.task} may not reclaim: its service type is {why.service}",
    w.NotEntitled: _not_entitled,
    w.NeverPreempts: lambda why: f"{why.task} has preemptionPolicy Never",
    w.NoVictims: _no_victims,
    w.TooCostly: lambda why: (
        f"{why.action}: finding nodes for this job takes too long, so it is retried after all other jobs; "
        "use fewer affinity terms and constraints"
    ),
}

_PROTECTIONS = {
    "preemptable": "not preemptable",
    "system": "part of the system",
    "budget": "protected by disruption budget",
    "cooldown": "started too recently",
    "service-type": "protected by service type",
    "cards": "without a requested card",
    "queue": "in a queue that is not reclaimable",
    "status": "not running yet",
    "neighbour": "required by the pod affinity or topology spread of a pod placed in this cycle",
    "preemptor": "of a job that already caused evictions in this cycle",
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
    v.NotLower: lambda why: "of equal priority" if why.priority == why.preemptor else "of higher priority",
    v.GangMinimum: lambda why: f"needed by gang {why.job} (minimum {why.minimum})",
    v.Protected: lambda why: f"{_PROTECTIONS.get(why.by, f'protected by {why.by}')} {why.detail}".rstrip(),
    v.OfNoUse: lambda _: "of no use to the preemptor",
    v.NotNeeded: lambda _: "not needed",
    v.PartOfProtectedGang: lambda why: f"in gang {why.job}, of which {why.member} is protected",
}  # fmt: skip


def render_why(why: w.UnschedulableReason) -> str:
    """One rule that stood in the way, as a clause."""
    return _WHY[type(why)](why)


def render_denial(denial: v.Protection) -> str:
    """One protection, as what follows a number of candidates: ``2`` + ``protected by queue b …``."""
    return _DENIAL[type(denial)](denial)


def render_refusal(refusal: w.Refusal) -> str:
    """Why a job waits, as the message of a condition or event."""
    return "; ".join(_unique(render_why(item) for item in refusal.items))


def render_victim(reason: v.VictimReason) -> str:
    """Why a pod had to go, as the message of a condition or event."""
    verb = "reclaimed" if reason.action == "reclaim" else "preempted"
    where = f"queue {reason.preemptor_queue}" if reason.action == "preempt" else (
        f"queue {reason.preemptor_queue} (victim's queue: {reason.queue})"
    )  # fmt: skip
    stay = reason.members_that_stay
    gang = (", the whole gang" if reason.whole_gang else "") + (f" but for {count(stay, 'pod')}" if stay else "")
    votes = ", ".join(f"{plugin} {'permits' if permits else 'vetoes'}" for plugin, permits in reason.votes)
    decided = f"; tier {reason.tier + 1} decided ({votes})" if votes else ""
    spared = ", ".join(f"{item.count} {render_denial(item.why)}" for item in reason.spared)
    return f"{verb} for {reason.preemptor} of {where}{gang}{decided}" + (f"; others: {spared}" if spared else "")


def _unique(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(texts))
