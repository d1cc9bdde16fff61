"""Report policies that are legal but almost certainly wrong.

A rule is a function of the document that yields findings. It reads nothing but the policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..model.times import duration
from ..policy.loader import Document
from ..policy.model import PluginOption, Policy
from ..policy.schema import ACTIONS, EVICTING, PLUGINS
from .objects import LintFinding

Found = Iterator[tuple[str, str, str]]
"""Field, text, remedy."""

UNIT_HOOKS = {"reclaim": "reclaim_unit", "preempt": "preempt_unit"}
"""The hooks whose protections hold in every tier, whichever tier decides."""


def evicting(policy: Policy) -> list[str]:
    """Return the actions of a policy that evict."""
    return [action for action in policy.actions if action in EVICTING]


def voters(policy: Policy, action: str) -> list[tuple[int, PluginOption]]:
    """Return the plugins that vote on the victims of an action, each with its tier, from 0."""
    switch = EVICTING[action]
    return [
        (number, option)
        for number, tier in enumerate(policy.tiers)
        for option in tier
        if switch in PLUGINS[option.name].switches and option.enabled(switch)
    ]


def tiers(document: Document) -> Found:
    """Report plugins in lower tiers whose votes are ignored, or counted after gang's."""
    for action in evicting(document.policy):
        votes = voters(document.policy, action)
        first = votes[0][0] if votes else 0
        above = [option.name for tier, option in votes if tier == first]
        below = [option.name for tier, option in votes if tier > first]
        if above == ["gang"]:
            continue
        if "gang" in above and below:
            below_decides = f"where gang permits nothing, tier {first + 2} decides without it"
            text = f"{action}: {below_decides}, and whole gangs may be evicted"
            others = ", ".join(["gang", *below[:-1]])
            remedy = f"to keep gangs whole and running, put {others} and {below[-1]} into one tier"
            yield document.places["gang"], text, remedy
        for name in below:
            if UNIT_HOOKS[action] not in PLUGINS[name].hooks:
                text = f"{action}: tier {first + 1} ({', '.join(above)}) decides, and the vote of {name} is ignored"
                yield document.places[name], text, f"put {name} into tier {first + 1}"


Rule = Callable[[Document], Found]


_OF_GANG = {
    "enableJobReady": "jobs start in part, and wait for each other",
    "enableJobPipelined": "room is kept idle, and pods are evicted, for a job of which only a part fits",
}


def policy_findings(document: Document, source: str) -> list[LintFinding]:
    """Return the findings of all rules, in the order of the file."""
    found = [
        LintFinding(source, document.line(field), field, text, remedy, is_error=rule in ERRORS)
        for rule in RULES
        for field, text, remedy in rule(document)
    ]
    return sorted(found, key=lambda finding: finding.line)


def _actions(document: Document) -> Found:
    actions = document.policy.actions
    for action in evicting(document.policy):
        if "allocate" in actions and actions.index(action) < actions.index("allocate"):
            text = f"{action} before allocate evicts for jobs that would have found idle room"
            yield "actions", text, f"put {action} after allocate"
    if "allocate" not in actions:
        yield "actions", "without allocate nothing is placed on idle room", "add allocate"
    if "backfill" not in actions:
        yield "actions", "without backfill pods that request nothing are never placed", "add backfill after allocate"
    if "enqueue" in actions and actions.index("enqueue") > 0:
        yield "actions", "enqueue after other actions admits jobs one cycle late", "put enqueue first"


def _admission(document: Document) -> Found:
    """Report an admission check that no action calls."""
    policy = document.policy
    if policy.plugin("resourcequota") is not None and "enqueue" not in policy.actions:
        text = "only the action enqueue checks resourcequota, and the policy does not run it"
        yield document.places["resourcequota"], text, "add enqueue, or remove resourcequota"
    overcommit = policy.plugin("overcommit")
    if overcommit is None or not overcommit.enabled("enableJobEnqueued"):
        return
    if "enqueue" not in policy.actions:
        text = "only the action enqueue checks overcommit, and the policy does not run it"
        yield document.places["overcommit"], text, "add enqueue, or remove overcommit"


def _portability(document: Document) -> Found:
    """Report plugins by which Volcano keeps a job from admission though it could evict pods (volcano#5925).

    Our enqueue counts what the policy would evict for the job. Volcano's counts what is free: overcommit in the whole
    cluster, capacity and proportion in the queue, from which preempt takes its victims.
    """
    policy = document.policy
    for action in evicting(policy) if "enqueue" in policy.actions else ():
        names = ("overcommit", "capacity", "proportion") if action == "preempt" else ("overcommit",)
        refusing = [
            name
            for name in names
            if (option := policy.plugin(name)) is not None and option.enabled("enableJobEnqueued")
        ]
        for name in refusing:
            full, remedy = (
                ("cluster", "remove overcommit")
                if name == "overcommit"
                else ("queue", f"set enableJobEnqueued: false on {name}")
            )
            text = (
                f"portability: {name} of Volcano refuses a PodGroup in enqueue while the {full} is full, "
                f"so that {action} never sees it; this scheduler admits it"
            )
            yield document.places[name], text, f"for Volcano, {remedy}"


def _endless(document: Document) -> Found:
    """Report evictions without an order among jobs or queues: two of them would evict each other for ever."""
    policy = document.policy
    priority = policy.plugin("priority")
    yield from _endless_reclaim(document)
    if "preempt" not in policy.actions:
        return
    if priority is None:
        text = "without the plugin priority preempt never ends: jobs of equal priority evict each other in turn"
        yield "actions", text, "add priority to the first tier, or remove preempt"
    elif not priority.enabled("enablePreemptable") and not _shares_decide(policy):
        text = "without this hook of priority, preempt never ends: jobs evict each other in turn, of any priority"
        yield f"{document.places['priority']}.enablePreemptable", text, "leave it on, or remove preempt"


def _endless_reclaim(document: Document) -> Found:
    policy = document.policy
    if "reclaim" not in policy.actions:
        return
    queues = [option for tier in policy.tiers for option in tier if PLUGINS[option.name].decides_queues]
    if not queues:
        text = "without capacity, proportion or capacity-card reclaim never ends: queues evict from each other in turn"
        yield "actions", text, "add one of them, or remove reclaim"
    for option in queues:
        if not option.enabled("enableReclaimable"):
            field = f"{document.places[option.name]}.enableReclaimable"
            text = (
                f"without this hook of {option.name}, reclaim evicts from queues that hold less than they deserve, and "
                "may never end"
            )
            yield field, text, "leave it on"


def _shares_decide(policy: Policy) -> bool:
    """Whether drf limits all evictions of preempt. A further tier with votes would decide where drf permits nothing."""
    votes = voters(policy, "preempt")
    return any(option.name == "drf" for _, option in votes) and len({tier for tier, _ in votes}) == 1


def _missing(document: Document) -> Found:
    """Report actions without the plugins that they need."""
    policy = document.policy
    priority = policy.plugin("priority")
    off = priority is not None and not priority.enabled("enablePreemptable")
    if "preempt" in policy.actions and off and _shares_decide(policy):  # else `_endless` reports it
        field = f"{document.places['priority']}.enablePreemptable"
        yield field, "without this hook of priority, preempt evicts pods of any priority", "leave it on"
    if "preempt" in policy.actions and priority is not None and not priority.enabled("enableJobOrder"):
        field = f"{document.places['priority']}.enableJobOrder"
        yield field, "without this hook of priority, allocate serves jobs that preempt evicts at once", "leave it on"
    if policy.plugin("predicates") is None and policy.tiers:
        text = "without predicates node selectors, affinity, taints and ports are ignored"
        yield "tiers", text, "add predicates"
    if policy.plugin("capacity") is not None and "reclaim" not in policy.actions:
        text = "without reclaim a queue keeps what it has borrowed until its jobs end"
        yield "actions", text, "add reclaim after allocate, or give every queue a capability equal to deserved"
    if evicting(policy) and not any(_starves(policy, name) for name in ("gang", "priority")):
        text = "neither gang nor priority implements enableJobStarving here: no job ever causes an eviction"
        yield "actions", text, "add gang or priority, with enableJobStarving on"


def _starves(policy: Policy, name: str) -> bool:
    option = policy.plugin(name)
    return option is not None and option.enabled("enableJobStarving")


def _gangs(document: Document) -> Found:
    """Report policies under which a gang starts, or holds capacity, only in part."""
    gang = document.policy.plugin("gang")
    if gang is None and document.policy.tiers:
        yield "tiers", "without gang minMember is ignored: jobs start in part, and wait for each other", "add gang"
    for switch, text in _OF_GANG.items():
        if gang is not None and not gang.enabled(switch):
            yield f"{document.places['gang']}.{switch}", f"without this hook of gang, {text}", "leave it on"


def _cooldown(document: Document) -> Found:
    """Report a protection from evictions in a policy without evictions."""
    if document.policy.plugin("cdp") is not None and not evicting(document.policy):
        text = "cdp protects pods from eviction, and no action of the policy evicts"
        yield document.places["cdp"], text, "add preempt or reclaim, or remove cdp"


def _shared_cards(document: Document) -> Found:
    """Report a deviceshare that offers no cards, or whose weight has no effect."""
    option = document.policy.plugin("deviceshare")
    if option is None:
        return
    place, given = document.places["deviceshare"], option.arguments
    if not any(given.get(f"deviceshare.{name}Enable") for name in ("GPUSharing", "GPUNumber", "VGPU")):
        text = "deviceshare offers no cards until an argument names what the cluster's device plugin provides"
        yield place, text, "set one of GPUSharingEnable, GPUNumberEnable and VGPUEnable to true"
    if given.get("deviceshare.ScheduleWeight") and "deviceshare.SchedulePolicy" not in given:
        field = f"{place}.arguments.deviceshare.ScheduleWeight"
        yield field, "has no effect without deviceshare.SchedulePolicy", "set it to binpack or spread"


def _topology(document: Document) -> Found:
    """Report arguments of network-topology-aware that have no effect, and a switch that lets gangs wait for ever."""
    option = document.policy.plugin("network-topology-aware")
    if option is None:
        return
    place, given = document.places["network-topology-aware"], option.arguments
    if not option.enabled("enabledHyperNodeGradient"):
        text = "without this hook every job with a networkTopology waits"
        yield f"{place}.enabledHyperNodeGradient", text, "leave it on"
    prefix = "hypernode.binpack.resources"
    listed = {name.strip() for name in given.get(prefix, "").split(",")}
    for name in given:
        resource = name.removeprefix(f"{prefix}.")
        if resource != name and resource not in listed:
            yield f"{place}.arguments.{name}", "has no effect", f"name {resource} in {prefix}"
    is_off = given.get("hypernode.binpack.normal-pod.enable") is False
    if is_off and (fading := "hypernode.binpack.normal-pod.fading") in given:
        yield (
            f"{place}.arguments.{fading}",
            "has no effect while hypernode.binpack.normal-pod.enable is off",
            "remove it",
        )
    if (tried := "hypernode.gradient.evict.max-hypernodes") in given and not evicting(document.policy):
        yield f"{place}.arguments.{tried}", "has no effect: no action of the policy evicts", "remove it"


def _node_groups(document: Document) -> Found:
    """Report a nodegroup that keeps no pod on its groups, or whose order of groups has no effect."""
    option = document.policy.plugin("nodegroup")
    if option is None:
        return
    place = document.places["nodegroup"]
    if not option.enabled("enablePredicate"):
        text = "without this hook pods run on nodes of any group, whatever their queues name"
        yield f"{place}.enablePredicate", text, "leave it on"
    if option.arguments.get("enablePreferredOrder") and not option.enabled("enableNodeOrder"):
        field = f"{place}.arguments.enablePreferredOrder"
        yield field, "has no effect while enableNodeOrder is off", "leave enableNodeOrder on"


def _sla(document: Document) -> Found:
    """Report an sla whose vote to keep capacity for a waiting job never counts: gang has vetoed before."""
    policy = document.policy
    tier_of = {option.name: number for number, tier in enumerate(policy.tiers) for option in tier}
    sla, gang = policy.plugin("sla"), policy.plugin("gang")
    if sla is not None and duration(sla.arguments.get("sla-waiting-time", "1s")) == 0:
        field = f"{document.places['sla']}.arguments.sla-waiting-time"
        yield field, "has no effect: a waiting time is above 0", "remove it, or write 30m, for instance"
    if sla is not None and not sla.enabled("enableJobPipelined"):
        text = "without this hook of sla, no capacity is kept for a job that waited its time"
        yield f"{document.places['sla']}.enableJobPipelined", text, "leave it on"
        return
    if sla is None or gang is None or not gang.enabled("enableJobPipelined") or tier_of["sla"] < tier_of["gang"]:
        return
    text = (
        "gang, in the same tier or in an earlier one, vetoes first: no capacity is kept for a job that waited its time"
    )
    yield document.places["sla"], text, "put sla into a tier before gang"


def _scores(document: Document) -> Found:
    """Report scores that counteract each other."""
    pack, order = document.policy.plugin("binpack"), document.policy.plugin("nodeorder")
    if pack is None or order is None or not (pack.enabled("enableNodeOrder") and order.enabled("enableNodeOrder")):
        return
    fill, spread = pack.arguments.get("binpack.weight", 1), order.arguments.get("leastrequested.weight", 1)
    if 0 < float(fill) <= float(spread):
        text = f"binpack fills nodes with weight {fill}, nodeorder spreads over them with weight {spread}: neither wins"
        remedy = "set leastrequested.weight: 0 on nodeorder, or remove binpack"
        yield document.places["binpack"], text, remedy


def _first_replica(document: Document) -> Found:
    policy = document.policy
    gang = policy.plugin("gang")
    if gang is not None and evicting(policy) and gang.enabled("enableJobStarving"):
        text = "jobs evict only up to minMember: of a Deployment, whose PodGroup has 1, only the first replica evicts"
        remedy = "to let all replicas evict, set enableJobStarving: false on gang and keep priority in the policy"
        yield document.places["gang"], text, remedy


def _system_pods(document: Document) -> Found:
    policy = document.policy
    if evicting(policy) and policy.plugin("conformance") is None:
        text = "without conformance pods of kube-system and of the system priority classes can be evicted"
        yield "tiers", text, "add conformance to the first tier"


def _without_effect(document: Document) -> Found:
    """Report settings without effect."""
    policy, places = document.policy, document.places
    for tier in policy.tiers:
        for option in tier:
            rule, field = PLUGINS[option.name], places[option.name]
            for switch in option.switches:
                if switch not in rule.switches:
                    text = f"plugin {option.name} does not implement this hook; the switch has no effect"
                    yield f"{field}.{switch}", text, "remove it"
            for name in option.arguments:
                known = rule.argument(name)
                if known is not None and known.ignored:
                    yield f"{field}.arguments.{name}", f"has no effect: {known.ignored}", "remove it"
    for action, arguments in policy.configurations.items():
        if action not in policy.actions:
            yield (
                places[f"action:{action}"],
                f"{action} is not among the actions",
                "add it to actions, or remove this configuration",
            )
        for name in arguments:
            if reason := ACTIONS[action][name].ignored:
                yield f"{places[f'action:{action}']}.arguments.{name}", f"has no effect: {reason}", "remove it"
    for name, field in document.left_out.items():
        yield f"{field}.name", f"{name} only ranks nodes or tasks and is not supported: it has no effect", "remove it"
    for field in document.retired:
        yield field, "Volcano has removed this switch: it has no effect", "remove it"


def _arguments(document: Document) -> Found:
    policy, places = document.policy, document.places
    capacity, cards = policy.plugin("capacity"), policy.plugin("capacity-card")
    if capacity and "ancestorReclaimLevel" in capacity.arguments and not capacity.enabled("enableHierarchy"):
        field = f"{places['capacity']}.arguments.ancestorReclaimLevel"
        yield field, "has no effect while enableHierarchy is off", "set enableHierarchy: true"
    if cards and {"podOwnerReferenceToServiceType", "allowServiceTypeByPodOwnerReferences"} <= set(cards.arguments):
        field = f"{places['capacity-card']}.arguments.allowServiceTypeByPodOwnerReferences"
        yield field, "podOwnerReferenceToServiceType takes precedence: this has no effect", "remove it"


RULES: tuple[Rule, ...] = (
    _actions,
    tiers,
    _admission,
    _portability,
    _endless,
    _missing,
    _gangs,
    _cooldown,
    _shared_cards,
    _topology,
    _node_groups,
    _sla,
    _scores,
    _first_replica,
    _system_pods,
    _without_effect,
    _arguments,
)
ERRORS = frozenset({_endless})
"""Rules whose findings are errors: the scheduler loads such a policy, but may never settle under it."""
