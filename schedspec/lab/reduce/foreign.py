"""Express the state of a cluster under Kueue or kube-scheduler by queues and PodGroups, as scenarios do.

1. Each Workload of Kueue becomes a PodGroup that needs as many pods as the Workload starts with. Pods that do not exist
   yet are made from its templates. A ClusterQueue becomes a queue and a Cohort its parent: the reverse of
   `schedulers/kueue/quota.py`.
2. Under kube-scheduler, the pods of one owner become a PodGroup that needs one pod, because kube-scheduler places them
   one by one. The pods of one group of `scheduling.k8s.io` become a PodGroup that needs as many as the group's
   `minCount`, or all of them if the state does not have the group, as in a dump.
3. The scheduler's rules become the policy of `templates/policies` that stands for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from ...observe import view
from ...scheduler.model import names, objects, resources
from ...scheduler.model.demand import requests_of
from ...scheduler.model.task import COMPLETED, job_key_of, status_of
from ...virtual.state import State
from .case import amounts
from .play import quantities

KUEUE, KUBE, VOLCANO = "kueue", "kube-scheduler", "volcano"
_WORKLOAD = "kueue.x-k8s.io/workload"
"""Annotation of a pod with the name of its Workload."""
_UNSCHEDULED = ("DaemonSet", "Node")
"""Owners whose pods belong to their nodes."""


def decider_of(state: State) -> str:
    """Return the scheduler that decides on a state, unless it is ours."""
    if state.objects["PodGroup"]:
        return VOLCANO if VOLCANO in state.scheduler_names else ""
    return KUEUE if state.others.get("ClusterQueue") else KUBE


def expressed(state: State) -> tuple[State, str]:
    """Return a state with PodGroups and queues, and the policy that stands for its scheduler's rules.

    The policy is empty for a state that has PodGroups: the state is returned as it is.
    """
    decider = decider_of(state)
    if decider not in (KUEUE, KUBE):
        return state, ""
    found = State(state.source, state.taken, state.is_exact, redacted=state.redacted, notes=state.notes)
    found.objects = {kind: dict(items) for kind, items in state.objects.items()}
    found.objects["PriorityClass"], found.gangs = {}, state.gangs
    if decider == KUBE:
        _group_by_owner(found, state.objects["Pod"].values())
        return found, "preempt"
    _Quotas(state, found).add()
    of_workloads = {pod.metadata.key for pod in _Workloads(state, found).add()}
    _group_by_owner(found, (pod for key, pod in state.objects["Pod"].items() if key not in of_workloads))
    return found, _policy_of(state, is_tree=any(queue.spec.parent for queue in found.objects["Queue"].values()))


def _put(state: State, group: str, spec: dict[str, Any], priority: int, pods: Iterable[objects.Pod]) -> None:
    """Add a PodGroup, and its pods with their priority and the annotation that names it."""
    namespace, _, name = group.rpartition("/")
    members = [*pods]
    owners = [it for pod in members for it in pod.metadata.owner_references or () if it.controller][:1]
    created = min((pod.metadata.creation_timestamp or "" for pod in members), default="")
    meta = objects.ObjectMeta(name, namespace, creation_timestamp=created, owner_references=owners)
    class_name = f"p{priority}" if priority else ""
    if class_name:
        state.put("PriorityClass", objects.PriorityClass(objects.ObjectMeta(class_name), priority))
    state.put("PodGroup", objects.PodGroup(meta, objects.PodGroupSpec(priority_class_name=class_name, **spec)))
    for pod in members:
        meta = msgspec.structs.replace(
            pod.metadata, annotations={**(pod.metadata.annotations or {}), names.GROUP_NAME: name}
        )
        whose = {"priority": priority, "priority_class_name": class_name}
        own = msgspec.structs.replace(pod.spec, **whose, scheduling_group=None, scheduling_gates=None)
        state.put("Pod", objects.Pod(meta, own, pod.status))


def _group_by_owner(state: State, pods: Iterable[objects.Pod]) -> None:
    """Add a PodGroup for the live pods of each owner and priority, and for each pod without an owner."""
    groups: dict[tuple[str, int, bool], list[objects.Pod]] = {}
    for pod in pods:
        owner = next((it for it in pod.metadata.owner_references or () if it.controller), None)
        if (owner is not None and owner.kind in _UNSCHEDULED) or status_of(pod)[0] & COMPLETED:
            continue
        gang = job_key_of(pod)
        key = f"{pod.metadata.namespace}/{owner.name}" if owner is not None else pod.metadata.key
        groups.setdefault((gang or key, pod.spec.priority or 0, bool(gang)), []).append(pod)
    taken: set[str] = set()
    for (key, priority, is_gang), members in sorted(groups.items()):
        name = key if key not in taken else f"{key}-{priority}"
        taken.add(key)
        group = state.gangs.get(key) if is_gang else None
        minimum = view.minimum_of(group) if group is not None else len(members) if is_gang else 1
        _put(state, name, {"min_member": max(minimum, 1)}, priority, members)


# ---------------------------------------------------------------------------------------------------------------- Kueue


class _Workloads:
    """Adds the Workloads of a state of Kueue to another state, as PodGroups."""

    def __init__(self, state: State, found: State) -> None:
        self._state, self._found = state, found
        self._pods: dict[str, list[objects.Pod]] = {}
        """Uid of a pod or of its owner, or the key of its Workload → the pods."""
        for pod in state.objects["Pod"].values():
            named = (pod.metadata.annotations or {}).get(_WORKLOAD)
            marks = {it.uid for it in pod.metadata.owner_references or () if it.controller} | {pod.metadata.uid}
            for mark in {f"{pod.metadata.namespace}/{named}"} if named else marks:
                self._pods.setdefault(mark, []).append(pod)

    def add(self) -> list[objects.Pod]:
        """Add a PodGroup for each Workload that is not finished; return the pods of all Workloads."""
        queues, seen = self._state.queues_of_work(), list[objects.Pod]()
        for key, workload in sorted(self._state.others.get("Workload", {}).items()):
            owners = [str(it.get("uid")) for it in workload["metadata"].get("ownerReferences") or ()]
            pods = {pod.metadata.key: pod for mark in (key, *owners) for pod in self._pods.get(mark, ())}
            seen += pods.values()
            queue = queues.get(key, "")
            if not queue or view.condition(workload, "Finished").get("status") == "True":
                continue
            live = [pod for pod in pods.values() if not status_of(pod)[0] & COMPLETED]
            wanted = sum(int(each.get("count") or 1) for each in workload["spec"].get("podSets") or ())
            missing = wanted - len(pods)
            members = [*live, *(self._made(workload, number) for number in range(missing))]
            spec = {"min_member": max(len(members) - wanted + view.minimum_of(workload), 1), "queue": queue}
            _put(self._found, key, spec, int(workload["spec"].get("priority") or 0), members)
        return seen

    @staticmethod
    def _made(workload: Mapping[str, Any], number: int) -> objects.Pod:
        """Return a waiting pod of a Workload that has no such pod yet."""
        sets = [each for each in workload["spec"]["podSets"] for _ in range(int(each.get("count") or 1))]
        meta = workload["metadata"]
        name = f"{meta['name']}-waits-{number}"
        owners = msgspec.convert(meta.get("ownerReferences") or [], list[objects.OwnerReference])
        spec = msgspec.convert(sets[-1 - number]["template"]["spec"], objects.PodSpec)
        created = meta.get("creationTimestamp")
        of_pod = objects.ObjectMeta(name, meta["namespace"], name, creation_timestamp=created, owner_references=owners)
        return objects.Pod(of_pod, spec, objects.PodStatus())


class _Quotas:
    """Adds the ClusterQueues and Cohorts of a state of Kueue to another state, as queues."""

    def __init__(self, state: State, found: State) -> None:
        self._found = found
        self._queues = state.others.get("ClusterQueue", {})
        self._cohorts = state.others.get("Cohort", {})
        self._parents = {name: _cohort_of(queue) for name, queue in self._queues.items()}
        self._above = {name: _cohort_of(cohort) for name, cohort in self._cohorts.items()}
        self._is_tree = len({*self._parents.values(), *self._cohorts}) > 1
        """Whether some queues do not lend to all others."""

    def add(self) -> None:
        """Add the queues, and leave out what the nodes have beyond all quotas."""
        self._found.objects["Queue"] = {}
        total: Counter[str] = Counter()
        for name, queue in self._queues.items():
            self._put(name, self._parents[name], queue)
            total.update({resource: quota.nominal for resource, quota in _quotas_of(queue).items()})
        cohorts = {*self._parents.values(), *self._above, *self._above.values()} - {""}
        for name in sorted(cohorts) if self._is_tree else ():
            self._put(f"cohort-{name}", self._above.get(name, ""), self._cohorts.get(name, {}))
        for cohort in self._cohorts.values():
            total.update({resource: quota.nominal for resource, quota in _quotas_of(cohort).items()})
        for resource, amount in total.items():
            self._cut(resource, amount)

    def _put(self, name: str, cohort: str, given: Mapping[str, Any]) -> None:
        quotas = _quotas_of(given)
        deserved = {resource: quota.nominal for resource, quota in quotas.items()}
        has_own_limit = bool(given) and not cohort and not self._is_cohort(name)
        capability = {
            resource: quota.nominal + (0 if has_own_limit else quota.borrowed or 0)
            for resource, quota in quotas.items()
            if has_own_limit or quota.borrowed is not None
        }
        guarantee = {
            resource: max(quota.nominal - quota.lent, 0) for resource, quota in quotas.items() if quota.lent is not None
        }
        spec = objects.QueueSpec(
            parent=f"cohort-{cohort}" if cohort and self._is_tree else "",
            deserved=_as_quantities(deserved),
            capability=_as_quantities(capability),
            guarantee=objects.queueing.Guarantee(_as_quantities(guarantee)) if guarantee else None,
        )
        self._found.put("Queue", objects.Queue(objects.ObjectMeta(name), spec))

    def _is_cohort(self, name: str) -> bool:
        return name not in self._queues

    def _cut(self, resource: str, most: int) -> None:
        """Cut a resource of the nodes that no pod uses, until the nodes have at most `most` of it together."""
        nodes, free = self._found.objects["Node"], dict[str, int]()
        for name, node in nodes.items():
            free[name] = resources.parse(node.status.allocatable or node.status.capacity).get(resource, 0)
        beyond = sum(free.values()) - most
        for pod in self._found.objects["Pod"].values():
            if pod.spec.node_name in free and not status_of(pod)[0] & COMPLETED:
                free[pod.spec.node_name] -= requests_of(pod)[0].get(resource, 0)
        for name in sorted(free, key=lambda each: (-free[each], each)):
            cut = max(min(beyond, free[name]), 0)
            beyond -= cut
            if cut:
                has = resources.parse(nodes[name].status.allocatable or nodes[name].status.capacity)
                left = _as_quantities({**has, resource: has[resource] - cut})
                status = msgspec.structs.replace(nodes[name].status, allocatable=left)
                nodes[name] = msgspec.structs.replace(nodes[name], status=status)


class _Quota(NamedTuple):
    """A quota of one resource in all flavors, and how much of it may be borrowed and lent at most."""

    nominal: int
    borrowed: int | None
    lent: int | None


def _quotas_of(obj: Mapping[str, Any]) -> dict[str, _Quota]:
    flavors: dict[str, list[_Quota]] = {}
    for group in (obj.get("spec") or {}).get("resourceGroups") or ():
        for each in (each for flavor in group.get("flavors") or () for each in flavor.get("resources") or ()):
            name = str(each["name"])
            nominal, *limits = (
                None if each.get(field) is None else resources.amount_of(each[field], resources.unit_of(name))
                for field in ("nominalQuota", "borrowingLimit", "lendingLimit")
            )
            flavors.setdefault(name, []).append(_Quota(nominal or 0, *limits))
    return {name: _Quota(sum(it.nominal for it in found), *_limits(found)) for name, found in flavors.items()}


def _limits(found: Iterable[_Quota]) -> Iterator[int | None]:
    """Yield the limits of borrowing and of lending; None if a flavor has none."""
    for limits in ([it.borrowed for it in found], [it.lent for it in found]):
        yield None if None in limits else sum(filter(None, limits))


def _cohort_of(obj: Mapping[str, Any]) -> str:
    spec = obj.get("spec") or {}
    return next((str(spec[it]) for it in ("cohortName", "cohort", "parentName", "parent") if spec.get(it)), "")


def _as_quantities(given: Mapping[str, int]) -> objects.Quantities | None:
    return {**quantities(amounts(given.items()))} or None


def _policy_of(state: State, *, is_tree: bool) -> str:
    """Return the policy whose settings for Kueue permit what the ClusterQueues permit."""
    settings = [queue["spec"].get("preemption") or {} for queue in state.others["ClusterQueue"].values()]
    reclaims, preempts = (
        any(it.get(field, "Never") != "Never" for it in settings)
        for field in ("reclaimWithinCohort", "withinClusterQueue")
    )
    if is_tree or (reclaims and preempts):
        return "hierarchy-cce" if preempts else "hierarchy-with-enqueue"
    return "capacity" if reclaims else "capacity-with-preempt" if preempts else "default"
