"""Answer why a job waits in the cluster of a state: what it lacks, who is before it, what would have to end.

Our scheduler decides on the state as a model of the cluster's, and the answer says whether the cluster agrees. Kueue
has no model: its Workloads say why they wait, and the quotas of the state are added up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from ..monitors import amounts
from ..observe.view import condition
from ..scheduler.framework.decisions import QueueNumbers
from ..scheduler.inputs import PolicyLoaded
from ..scheduler.model.auxiliary import priority_of
from ..scheduler.model.errors import PlacedError
from ..scheduler.model.objects import Pod
from ..scheduler.model.printable import printable
from ..scheduler.model.task import job_key_of
from ..scheduler.policy.loader import load_policy
from ..scheduler.policy.model import Policy
from ..scheduler.reasons.text import count
from ..scheduler.recording.explain import explain_queue
from ..virtual import outcomes
from ..virtual.state import State, kueue, require_ours
from ..virtual.state.state import api_object
from .plan.answer import PlannedWorld
from .plan.at_once import settle
from .plan.changes import copied

MOST_TRIED = 40
"""Jobs of which each end is tried on its own."""
LARGE = 2_000
"""Number of pods from which no ends are tried: each is a run of the whole state."""


class WhyError(PlacedError):
    """The question cannot be answered: no such job, or no policy."""


class Why(msgspec.Struct):
    """The answer; `-o json` prints it."""

    job: str
    queue: str
    fate: str
    """`runs`, `starts`, `waits` or `is evicted`, as the scheduler decides on the state."""
    why: str
    """The scheduler's reason; empty for a job that runs."""
    decided_by: str
    cluster: str
    """What the cluster itself shows of the job; empty if nothing."""
    agrees: bool | None
    """Whether that agrees with `fate`; None if the cluster shows nothing."""
    queues: list[str] = []
    """The numbers of the job's queue and of its ancestors."""
    ahead: list[str] = []
    """Waiting jobs of its queue that are served before it: of higher priority, or as high and older."""
    evicts: list[str] = []
    """Pods that are evicted for it."""
    ends: list[str] = []
    """Jobs each of which would have to end, alone, so that it starts."""


def why(state: State, name: str, policy: PolicyLoaded | None = None) -> Why:
    """Answer for a job: `NAMESPACE/NAME` or, if no other has this name, `NAME`; the name of a PodGroup or of its owner.

    Raises:
        WhyError: there is no such job, several have this name, or the state has no policy or never reads one.
        StateError: nothing could be decided on the state.
        PolicyError: the policy is refused.
    """
    if state.others.get("Workload") and not state.objects["PodGroup"]:
        if policy is not None:
            raise WhyError(policy.source, "Kueue reads no policy file", "leave --policy out")
        return _of_workload(state, _found(name, _named(state.others["Workload"])))
    require_ours(state)
    if not state.objects["PodGroup"] and (pods := _pods_of(state, name)):
        return _of_pods(name, pods)
    key = _found(name, _named({key: api_object("PodGroup", it) for key, it in state.objects["PodGroup"].items()}))
    policy = policy or state.policy
    if policy is None:
        raise WhyError(state.source, "has no policy", "name the one that the cluster runs with --policy")
    return _of_job(state, key, load_policy(policy.text, policy.source))


def _named(objects: dict[str, Any]) -> dict[str, list[str]]:
    """Return the keys of units by the names that people use: their own, and those of their owners."""
    found: dict[str, list[str]] = {}
    for key, obj in objects.items():
        meta = obj["metadata"]
        for name in {meta["name"], *(owner["name"] for owner in meta.get("ownerReferences") or ())}:
            for known in (name, f"{meta['namespace']}/{name}"):
                found.setdefault(known, []).append(key)
    return found


def _found(name: str, known: dict[str, list[str]]) -> str:
    keys = known.get(name, [])
    if len(keys) == 1:
        return keys[0]
    if keys:
        raise WhyError(name, f"{count(len(keys), 'job')} have this name: {', '.join(sorted(keys))}", "name one of them")
    if not known:
        raise WhyError(name, "the state has no job", "take the state with pods and PodGroups")
    near = [other for other in sorted(known) if "/" in other and (name in other or other.rpartition("/")[2] in name)]
    raise WhyError(name, "there is no such job", f"name one of: {', '.join((near or sorted(known))[:8])}")


# --------------------------------------------------------------------------------------------------------- by the model


def _of_job(state: State, key: str, policy: Policy) -> Why:
    numbers: dict[str, QueueNumbers] = {}
    world = _settled(state, policy, numbers)
    group = state.objects["PodGroup"][key]
    queue = group.spec.queue or "default"
    fate, reason = _fate(state, key, world)
    shown = _shown(state, key)
    found = Why(key, queue, fate, reason, "schedspec's model", shown, None)
    if shown:
        found.agrees = (fate == "waits") == bool(_waiting_pods(state, key))
    parents = {name: item.spec.parent for name, item in state.objects["Queue"].items()}
    while queue in numbers and len(found.queues) < len(numbers):
        found.queues.append(explain_queue(queue, numbers[queue]))
        queue = parents.get(queue) or ""
    found.evicts = [one.pod for one in world.evictions if one.preemptor == key]
    if fate == "waits":
        found.ahead = _ahead(state, key, world)
        found.ends = _ends(state, key, policy)
    return found


def _settled(state: State, policy: Policy, numbers: dict[str, QueueNumbers]) -> PlannedWorld:
    def on_outcome(outcome: Any) -> None:
        if isinstance(outcome, outcomes.Cycle):
            numbers.update(outcome.decisions.queues)

    return settle(state, policy, "pods", also=on_outcome)[0]


def _fate(state: State, key: str, world: PlannedWorld) -> tuple[str, str]:
    for eviction in world.evictions:
        if eviction.job == key and not eviction.runs_again:
            return "is evicted", eviction.why
    if key in world.waiting:
        return "waits", world.waiting[key]
    if any(start.job == key for start in world.starts):
        return "starts", ""
    return ("runs", "") if not _waiting_pods(state, key) else ("waits", "no cycle considers it: is its queue there?")


def _waiting_pods(state: State, key: str) -> list[Pod]:
    return [pod for pod in state.of_job()[key] if not pod.spec.node_name]


def _shown(state: State, key: str) -> str:
    """Return what the cluster shows of a job: the phase of its PodGroup, and the reason on it or on its first pod."""
    group = state.objects["PodGroup"][key]
    phase = f"its PodGroup is {group.status.phase}" if group.status.phase else ""
    waits = (it for pod in _waiting_pods(state, key) for it in pod.status.conditions or ())
    conditions = [*(group.status.conditions or ()), *waits]
    wanted = {("Unschedulable", "True"), ("PodScheduled", "False")}
    texts = (it.message for it in conditions if (it.type, it.status) in wanted and it.message)
    return "; ".join(filter(None, (phase, next(texts, ""))))


_Rank = tuple[int, str, str]
"""The order in which jobs of a queue are served: negative priority, time of creation, key."""


def _before(key: str, others: Iterable[str], rank: Callable[[str], _Rank]) -> list[str]:
    """Return those of the others that are served before a job, in their order."""
    return sorted((other for other in others if rank(other) < rank(key)), key=rank)


def _ahead(state: State, key: str, world: PlannedWorld) -> list[str]:
    groups = state.objects["PodGroup"]

    def rank(other: str) -> _Rank:
        group = groups[other]
        priority = priority_of(group.spec.priority_class_name, state.objects["PriorityClass"])
        return -priority, group.metadata.creation_timestamp or "", other

    mine = groups[key].spec.queue or "default"
    waiting = [other for other in world.waiting if other in groups and (groups[other].spec.queue or "default") == mine]
    return _before(key, waiting, rank)


def _ends(state: State, key: str, policy: Policy) -> list[str]:
    """Return the jobs whose end alone would start this one."""
    if len(state.objects["Pod"]) > LARGE:
        return []
    running = {job: pods for job, pods in state.of_job().items() if any(pod.spec.node_name for pod in pods)}
    found = []
    for other, pods in [*running.items()][:MOST_TRIED]:
        world = settle(_without(state, other, pods), policy, "pods")[0]
        if any(start.job == key for start in world.starts):
            found.append(other)
    return found


def _without(state: State, job: str, pods: Iterable[Pod]) -> State:
    found = copied(state)
    for pod in pods:
        del found.objects["Pod"][pod.metadata.key]
    del found.objects["PodGroup"][job]
    return found


# ------------------------------------------------------------------------------------- by a scheduler of single pods


def _pods_of(state: State, name: str) -> list[Pod]:
    """Return the pods of a job under a scheduler without PodGroups of ours: by their own name, owner or gang."""
    pods = state.objects["Pod"]
    named = _named({key: api_object("Pod", pod) for key, pod in pods.items()})
    of_gang = [key for key, pod in pods.items() if job_key_of(pod) and name in (job_key_of(pod), _short(pod))]
    return [pods[key] for key in sorted({*named.get(name, ()), *of_gang})]


def _short(pod: Pod) -> str:
    return job_key_of(pod).rpartition("/")[2]


def _of_pods(name: str, pods: list[Pod]) -> Why:
    """Return what the cluster says of pods that each wait or run alone; no policy of ours decides there."""
    waiting = [pod for pod in pods if not pod.spec.node_name]
    texts = {
        it.message or it.reason: None
        for pod in waiting
        for it in pod.status.conditions or ()
        if it.type == "PodScheduled" and it.status == "False"
    }
    decider = ", ".join(sorted({pod.spec.scheduler_name for pod in pods}))
    return Why(
        name, "", "waits" if waiting else "runs", "; ".join(texts), f"scheduler {decider} in the cluster", "", None
    )


# ------------------------------------------------------------------------------------------------------------- by Kueue


def _of_workload(state: State, key: str) -> Why:
    workload, queues = state.others["Workload"][key], state.queues_of_work()
    queue = queues[key]
    has_quota = condition(workload, "QuotaReserved").get("status") == "True"
    reason = "" if has_quota else str(condition(workload, "QuotaReserved").get("message", ""))
    evicted = condition(workload, "Evicted")
    fate = "runs" if has_quota else "is evicted" if evicted.get("status") == "True" else "waits"
    if fate == "is evicted":
        reason = "; ".join(filter(None, (str(evicted.get("message", "")), reason)))
    found = Why(key, queue, fate, reason, "Kueue in the cluster", "", None)
    found.queues = [*_quotas(state, queue, queues)]
    if not has_quota:
        found.ahead = _pending_before(state, key, queues)
    return found


def _quotas(state: State, queue: str, queues: dict[str, str]) -> Iterator[str]:
    """Yield the quotas of a ClusterQueue, and what its Workloads and those of its cohort have reserved."""
    known = state.others.get("ClusterQueue", {})
    cohort = known.get(queue, {}).get("spec", {}).get("cohortName", "")
    members = [name for name, item in known.items() if cohort and item["spec"].get("cohortName") == cohort] or [queue]
    used = {name: amounts.total(_reserved(state, name, queues)) for name in members}
    for name in members if queue in members else [queue]:
        parts = [
            f"{resource} of flavor {flavor}: {amounts_text(used.get(name, {}).get(f'{flavor}/{resource}'))} reserved, "
            f"{quota} nominal"
            for flavor, resource, quota in kueue.quotas_of(known.get(name, {}))
        ]
        yield f"queue {name}: {'; '.join(parts) or 'has no quota'}" + (f"; in cohort {cohort}" if cohort else "")


def amounts_text(amount: Any) -> str:
    """Return an amount without an exponent; 0 for none."""
    return f"{amount or 0:f}".rstrip("0").rstrip(".") if amount and amount % 1 else f"{amount or 0:.0f}"


def _reserved(state: State, queue: str, queues: dict[str, str]) -> Iterator[amounts.Amounts]:
    for key, workload in state.others["Workload"].items():
        if queues[key] == queue and condition(workload, "QuotaReserved").get("status") == "True":
            for part in (workload["status"].get("admission") or {}).get("podSetAssignments") or ():
                flavors = part.get("flavors") or {}
                given = amounts.parse(part.get("resourceUsage"))
                yield {f"{flavors.get(name, '')}/{name}": amount for name, amount in given.items()}


def _pending_before(state: State, key: str, queues: Mapping[str, str]) -> list[str]:
    """Return the pending Workloads of the same ClusterQueue of higher priority, or as high and older."""
    workloads = state.others["Workload"]

    def rank(other: str) -> _Rank:
        meta, spec = workloads[other]["metadata"], workloads[other]["spec"]
        return -int(spec.get("priority") or 0), str(meta.get("creationTimestamp", "")), other

    pending = (
        other
        for other, item in workloads.items()
        if queues[other] == queues[key] and not {"True"} & {condition(item, it).get("status") for it in _OVER}
    )
    return _before(key, pending, rank)


_OVER = ("QuotaReserved", "Finished")
"""Conditions of a Workload that no longer waits."""


def render(found: Why) -> str:
    """Format the answer: the fate first, then why, the numbers, and what could change it."""
    queue = f" ({found.queue})" if found.queue else ""
    lines = [f"{found.job}{queue} {found.fate}, decided by {found.decided_by}"]
    lines += [f"  why: {found.why}"] if found.why else []
    if found.agrees is not None:
        lines.append(f"  the cluster {'agrees' if found.agrees else 'does not agree'}: {found.cluster}")
    lines += [f"  {line}" for line in found.queues]
    for text, names in (
        ("before it in its queue", found.ahead),
        ("evicted for it", found.evicts),
        ("it would start if one of these ended", found.ends),
    ):
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            lines.append(f"  {text}: {', '.join(names[:5])}{more}")
    return "\n".join(map(printable, lines)) + "\n"
