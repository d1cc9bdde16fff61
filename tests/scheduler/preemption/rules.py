"""Rules for every eviction, checked on the state on which the cycle decided.

The checks do not use the scheduler's own computations.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping

import msgspec

from schedspec.scheduler.framework.decisions import Decisions, Evict
from schedspec.scheduler.model import resources
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.resources import PODS, Resource
from schedspec.scheduler.model.task import HOLDING, Task, TaskStatus
from schedspec.scheduler.policy.model import Policy
from tests.support.core.invariants import used_guarantees


def check_evictions(cluster: Cluster, policy: Policy, decisions: Decisions) -> None:
    """Check all rules on the state, which the cycle restored."""
    preemptors_start(cluster, decisions)
    gangs_keep_their_minimum(cluster, policy, decisions)
    protected_tasks_are_not_evicted(cluster, decisions)
    preempted_tasks_have_lower_priority(cluster, decisions)
    reclaimed_queues_exceed_their_share(cluster, policy, decisions)
    guarantees_are_kept(cluster, policy, decisions)
    every_eviction_is_needed(cluster, policy, decisions)
    every_member_of_an_evicted_gang_is_needed(cluster, policy, decisions)
    evictions_are_in_proportion(cluster, decisions)


def units(cluster: Cluster, decisions: Decisions, *, by_preemptor: bool = False) -> Iterator[list[tuple[Evict, Task]]]:
    """Yield the eviction units: single tasks, and whole gangs with their spare tasks that were evicted before.

    `by_preemptor`: spare tasks that were evicted for another job are units of their own, as when they were judged.
    """
    of = lambda evict: (evict.job, evict.reason.preemptor if by_preemptor else "")  # noqa: E731
    whole = {of(evict) for evict in decisions.evictions if evict.reason.whole_gang}
    gangs: dict[tuple[str, ...], list[tuple[Evict, Task]]] = {}
    for evict in decisions.evictions:
        key = (*of(evict), "" if of(evict) in whole else evict.task)
        gangs.setdefault(key, []).append((evict, cluster.tasks[evict.task]))
    yield from gangs.values()


def preemptors_start(cluster: Cluster, decisions: Decisions) -> None:
    placed = {*decisions.pipelined, *(bind.task for bind in decisions.binds)}
    for evict in decisions.evictions:
        job = cluster.jobs[evict.reason.preemptor]
        assert evict.reason.preemptor_task in placed, (
            f"{evict.task} is evicted for {evict.reason.preemptor_task}, which is not placed"
        )
        ready = job.count(HOLDING | TaskStatus.SUCCEEDED) + sum(key in placed for key in job.tasks)
        ready -= sum(other.task in job.tasks for other in decisions.evictions)
        assert ready >= job.min_available, f"{evict.task} for {job.key}, which has {ready} of {job.min_available} tasks"


def gangs_keep_their_minimum(cluster: Cluster, policy: Policy, decisions: Decisions) -> None:
    evicted = {evict.task for evict in decisions.evictions}
    bound = Counter(bind.job for bind in decisions.binds)
    for evict in decisions.evictions:
        if not _gang_protects(policy, evict.reason.action):
            continue
        job = cluster.jobs[evict.job]
        if evict.reason.preemptor == job.key:
            continue  # within a job, each evicted task is replaced by another one
        left = [task for task in job.having(HOLDING | TaskStatus.SUCCEEDED) if task.key not in evicted]
        holding = [task for task in left if task.status & HOLDING]
        count = len(left) + bound[job.key]
        assert not holding or count >= job.min_available, f"{job.key} keeps {count} of {job.min_available} tasks"


def _gang_protects(policy: Policy, action: str) -> bool:
    gang = policy.plugin("gang")
    return gang is not None and gang.enabled("enableReclaimable" if action == "reclaim" else "enablePreemptable")


def protected_tasks_are_not_evicted(cluster: Cluster, decisions: Decisions) -> None:
    for evict in decisions.evictions:
        task = cluster.tasks[evict.task]
        evictable = TaskStatus.RUNNING if evict.reason.action == "reclaim" else TaskStatus.RUNNING | TaskStatus.BOUND
        assert task.status & evictable, f"{task} is evicted"
        assert task.preemptable, f"{task.key} is not preemptable"
        assert "system" not in task.pod.spec.priority_class_name, f"{task.key} has a system priority class"


def preempted_tasks_have_lower_priority(cluster: Cluster, decisions: Decisions) -> None:
    for evict in decisions.evictions:
        if evict.reason.action != "preempt":
            continue
        victim, preemptor = cluster.jobs[evict.job], cluster.jobs[evict.reason.preemptor]
        assert victim.queue == preemptor.queue, f"{evict.task} is preempted from another queue"
        if victim is preemptor:
            lower = cluster.tasks[evict.task].priority < cluster.tasks[evict.reason.preemptor_task].priority
        else:
            lower = victim.priority < preemptor.priority
        assert lower, f"{evict.task} is not of lower priority than {evict.reason.preemptor_task}"


def allocated(cluster: Cluster) -> dict[str, Resource]:
    """Return what each queue holds, its descendants included."""
    held: dict[str, Resource] = defaultdict(dict)
    for job in cluster.jobs.values():
        for name in lineage(cluster, job.queue):
            resources.add_to(held[name], job.allocated)
    return held


def lineage(cluster: Cluster, queue: str) -> list[str]:
    line: list[str] = []
    while queue in cluster.queues and queue not in line:
        line.append(queue)
        queue = cluster.queues[queue].parent
    return line


def units_in_order(
    cluster: Cluster, policy: Policy, decisions: Decisions, released: Container[str] = ()
) -> Iterator[tuple[list[tuple[Evict, Task]], dict[str, Resource]]]:
    """Yield the eviction units in order, each with the amounts that the queues held before.

    Placements that were made earlier in this cycle count, unless their tasks were `released` again. So do nominations:
    a member that finds its node idle while the rest of its gang waits is neither bound nor pipelined.
    """
    held = allocated(cluster)
    preemptors = {evict.reason.preemptor for evict in decisions.evictions}
    evicting = {policy.actions.index(evict.reason.action) for evict in decisions.evictions} or {0}
    placed_for: dict[str, list[Task]] = defaultdict(list)
    lost = {nominate.task for nominate in decisions.nominations if not nominate.node}
    kept = {key: cluster.tasks[key].nominated for key in cluster.nominated if key not in lost}
    kept = {key: node for key, node in kept.items() if cluster.tasks[key].status is TaskStatus.PENDING}
    for key, node in {**kept, **{bind.task: bind.node for bind in decisions.binds}, **decisions.pipelined}.items():
        task = cluster.tasks[key]
        is_bound = key not in decisions.pipelined and policy.actions.index("allocate") < min(evicting)
        if task.job in preemptors and task.nominated != node and not is_bound:
            placed_for[task.job].append(task)
        elif key not in released:
            _add_to_queues(cluster, held, task)
    preemptor = ""
    for unit in units(cluster, decisions, by_preemptor=True):
        evict, first = unit[0]
        if evict.reason.preemptor != preemptor:
            for task in placed_for.pop(preemptor, ()):
                _add_to_queues(cluster, held, task)
            preemptor = evict.reason.preemptor
        yield unit, held
        request = resources.total_of(task.request for _, task in unit)
        for name in lineage(cluster, cluster.jobs[first.job].queue):
            resources.take_from(held[name], request)


def reclaimed_queues_exceed_their_share(cluster: Cluster, policy: Policy, decisions: Decisions) -> None:
    for unit, held in units_in_order(cluster, policy, decisions):
        evict, first = unit[0]
        if evict.reason.action != "reclaim":
            continue
        job = cluster.jobs[first.job]
        request = resources.total_of(task.request for _, task in unit)
        queue = cluster.queues[job.queue]
        assert job.queue != cluster.jobs[evict.reason.preemptor].queue, f"{evict.task} is reclaimed from its own queue"
        assert queue.reclaimable, f"{evict.task} is of queue {queue.name}, which is not reclaimable"
        deserved = decisions.queues[queue.name].deserved  # computed by the queue plugin, which has tests of its own
        relevant = [name for name in request if name in deserved and name != PODS and request[name] > 0]
        above = any(held[queue.name].get(name, 0) > deserved[name] for name in relevant)
        assert above or not relevant, f"{evict.task}: queue {queue.name} holds {held[queue.name]}, deserves {deserved}"


def _add_to_queues(cluster: Cluster, held: dict[str, Resource], task: Task) -> None:
    for name in lineage(cluster, cluster.jobs[task.job].queue):
        resources.add_to(held[name], task.request)


def guarantees_are_kept(cluster: Cluster, policy: Policy, decisions: Decisions) -> None:
    released = {nominate.task for nominate in decisions.nominations if not nominate.node}
    for unit, held in units_in_order(cluster, policy, decisions, released):
        reclaimed = [task for evict, task in unit if evict.reason.action == "reclaim"]
        request = resources.total_of(task.request for task in reclaimed)
        for name in lineage(cluster, cluster.jobs[reclaimed[0].job].queue) if reclaimed else ():
            for dimension, guaranteed in cluster.queues[name].guarantee.items():
                left = held[name].get(dimension, 0) - request.get(dimension, 0)
                assert not request.get(dimension) or left >= guaranteed, (
                    f"{reclaimed[0].key}: queue {name} keeps {left} of {guaranteed} {dimension}"
                )


def every_eviction_is_needed(cluster: Cluster, policy: Policy, decisions: Decisions) -> None:
    """Check that restoring any unit would overfill a node or queue, or join pods that exclude each other."""
    room = _room(cluster, decisions)
    for unit in units(cluster, decisions):
        restored: dict[str, Resource] = defaultdict(dict)
        for _, task in unit:
            resources.add_to(restored[task.node], task.request)
        overfull = any(room[node].get(n, 0) < v for node, held in restored.items() for n, v in held.items() if v > 0)
        needed = overfull or _excludes_a_placed_pod(cluster, decisions, unit)
        assert needed or _exceeds_a_limit(cluster, policy, decisions, unit), (
            f"{[t.key for _, t in unit]} need not have been evicted"
        )


def every_member_of_an_evicted_gang_is_needed(cluster: Cluster, policy: Policy, decisions: Decisions) -> None:
    """Check that no single member of an evicted gang could have kept running beside the remaining members.

    Its room or its queue's quota is needed, or without it the other members would be protected. Only flat queues are
    checked.
    """
    room, evicted = _room(cluster, decisions), {evict.task for evict in decisions.evictions}
    for unit, held in units_in_order(cluster, policy, decisions):
        evict, first = unit[0]
        job = cluster.jobs[first.job]
        queue = cluster.queues[job.queue]
        left = sum(task.key not in evicted for task in job.having(HOLDING | TaskStatus.SUCCEEDED))
        suffices = len(unit) > 1 and left + 1 >= job.min_available and not job.binding_roles and job.disruption is None
        if not suffices or queue.parent or not _gang_protects(policy, evict.reason.action):
            continue
        for position, (_, task) in enumerate(unit):
            rest = resources.total_of(other.request for at, (_, other) in enumerate(unit) if at != position)
            if evict.reason.action == "reclaim" and not _remains_above(held[queue.name], rest, decisions, queue.name):
                continue
            member = [unit[position]]
            overfull = any(room[task.node].get(name, 0) < amount for name, amount in task.request.items() if amount > 0)
            assert (
                overfull
                or _excludes_a_placed_pod(cluster, decisions, member)
                or _exceeds_a_limit(cluster, policy, decisions, member)
            ), f"{task.key} could have kept running beside {left} other tasks of {job.key}"


def _remains_above(held: Resource, rest: Resource, decisions: Decisions, queue: str) -> bool:
    """Whether the queue exceeds its deserved share before and after the eviction of the gang's other members."""
    deserved = decisions.queues[queue].deserved
    names = [name for name in rest if name in deserved and name != PODS and rest[name] > 0]
    return bool(names) and all(held.get(name, 0) - rest[name] > deserved[name] for name in names)


def evictions_are_in_proportion(cluster: Cluster, decisions: Decisions) -> None:
    """Check that evictions for a job are at most the sum, over its placed tasks, of request plus largest evicted unit.

    One dimension within the bound is enough: victims that free cards may hold many cpus.
    """
    placed = {*decisions.pipelined, *(bind.task for bind in decisions.binds)}
    by_preemptor: dict[str, list[Resource]] = defaultdict(list)
    for unit in units(cluster, decisions):
        by_preemptor[unit[0][0].reason.preemptor].append(resources.total_of(task.request for _, task in unit))
    for key, freed in by_preemptor.items():
        tasks = [task for task in cluster.jobs[key].tasks.values() if task.key in placed]
        requested, evicted = resources.total_of(task.request for task in tasks), resources.total_of(freed)
        names = [name for name, amount in requested.items() if amount > 0 and name != PODS and evicted.get(name, 0) > 0]
        bound = {name: requested[name] + len(tasks) * max(unit.get(name, 0) for unit in freed) for name in names}
        within = [name for name in names if evicted[name] <= bound[name]]
        assert within or not names, f"{evicted} are evicted for {key}; at most {bound} would be in proportion"


def _room(cluster: Cluster, decisions: Decisions) -> dict[str, Resource]:
    """Return the free amounts of each node after all victims have left and all placed tasks run."""
    room: dict[str, Resource] = {}
    for info in cluster.nodes.rows:
        room[info.name] = dict(info.allocatable)
        for task in info.tasks.values():
            if task.status & (HOLDING | TaskStatus.UNKNOWN):
                resources.take_from(room[info.name], task.request)
    for evict in decisions.evictions:
        task = cluster.tasks[evict.task]
        resources.add_to(room[task.node], task.request)
    placed: Mapping[str, str] = {**decisions.pipelined, **{bind.task: bind.node for bind in decisions.binds}}
    for key, node in placed.items():
        resources.take_from(room[node], cluster.tasks[key].request)
    return room


def _exceeds_a_limit(cluster: Cluster, policy: Policy, decisions: Decisions, unit: list[tuple[Evict, Task]]) -> bool:
    """Whether restoring the unit would push a queue above its limit, or above the share up to which it may reclaim.

    Only queues count that contain both the unit and a placed task. Capacity that has to stay free for the guarantees of
    queues counts as a limit.
    """
    _, first = unit[0]
    restored = {task.key for _, task in unit}
    left = [evict for evict in decisions.evictions if evict.task not in restored]
    if used_guarantees(cluster, policy, msgspec.structs.replace(decisions, evictions=left)):
        return True
    if policy.plugin("capacity-card"):
        return _exceeds_a_quota(cluster, decisions, unit)
    own = lineage(cluster, cluster.jobs[first.job].queue)
    held = allocated(cluster)
    placed = [*decisions.pipelined, *(bind.task for bind in decisions.binds)]
    of_placed = {name for key in placed for name in lineage(cluster, cluster.jobs[cluster.tasks[key].job].queue)}
    shared = [name for name in own if name in of_placed]
    evicted = Counter(e.task for e in decisions.evictions) - Counter(task.key for _, task in unit)
    for key in placed:
        for name in lineage(cluster, cluster.jobs[cluster.tasks[key].job].queue):
            resources.add_to(held[name], cluster.tasks[key].request)
    for key in evicted:
        for name in lineage(cluster, cluster.jobs[cluster.tasks[key].job].queue):
            resources.take_from(held[name], cluster.tasks[key].request)
    reclaimers = (
        cluster.jobs[evict.reason.preemptor].queue for evict in decisions.evictions if evict.reason.action == "reclaim"
    )
    reclaiming = {name for queue in set(reclaimers) for name in lineage(cluster, queue)}
    for name in shared:
        numbers = decisions.queues[name]
        up_to_deserved = policy.plugin("proportion") or name in reclaiming
        limits = (numbers.capability, numbers.deserved) if up_to_deserved else (numbers.capability,)
        if any(held[name].get(n, 0) > amount for limit in limits for n, amount in limit.items() if n != PODS):
            return True
    return False


def _exceeds_a_quota(cluster: Cluster, decisions: Decisions, unit: list[tuple[Evict, Task]]) -> bool:
    """Whether restoring the unit would exceed a card quota; the model of a pod's cards is that of its node."""
    queue = cluster.jobs[unit[0][1].job].queue
    evicted = {evict.task for evict in decisions.evictions} - {task.key for _, task in unit}
    placed = {**decisions.pipelined, **{bind.task: bind.node for bind in decisions.binds}}
    held: Counter[str] = Counter()
    for task in cluster.tasks.values():
        node = placed.get(task.key) or (task.node if task.status & HOLDING and task.key not in evicted else "")
        if node and cluster.jobs[task.job].queue == queue:
            model = cluster.nodes.by_name[node].labels["nvidia.com/gpu.product"]
            held[model] += int(task.request.get("nvidia.com/gpu", 0.0))
    return any(held[name] > amount for name, amount in decisions.queues[queue].capability.items())


def _excludes_a_placed_pod(cluster: Cluster, decisions: Decisions, unit: list[tuple[Evict, Task]]) -> bool:
    """Whether a pod of the unit and a pod that is placed on its node exclude each other."""
    for _, task in unit:
        for key, node in decisions.pipelined.items():
            other = cluster.tasks[key]
            if node == task.node and (_excludes(task, other) or _excludes(other, task)):
                return True
    return False


def _excludes(one: Task, other: Task) -> bool:
    affinity = one.pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return False
    labels = other.pod.metadata.labels or {}
    return any(
        term.label_selector is not None
        and all(labels.get(key) == value for key, value in (term.label_selector.match_labels or {}).items())
        for term in affinity.pod_anti_affinity.required or ()
    )
