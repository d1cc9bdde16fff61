"""What must hold of every eviction, judged by the state it was decided on and by nothing of the scheduler's own
reasoning.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Mapping

from scheduler.framework.decisions import Decisions, Evict
from scheduler.model import resources
from scheduler.model.cluster import Cluster
from scheduler.model.resources import PODS, Resource
from scheduler.model.task import HOLDING, Task, TaskStatus
from scheduler.policy.model import Policy


def check_evictions(cluster: Cluster, policy: Policy, decisions: Decisions) -> None:
    """Check all rules on the state, which the cycle restored."""
    starts_whom_it_evicts_for(cluster, decisions)
    leaves_no_gang_in_part(cluster, policy, decisions)
    spares_the_protected(cluster, decisions)
    preempts_strictly_lower(cluster, decisions)
    reclaims_above_deserved(cluster, decisions)
    keeps_guarantees(cluster, decisions)
    evicts_no_one_in_vain(cluster, policy, decisions)
    spares_members_that_nobody_needs(cluster, policy, decisions)
    evicts_in_proportion(cluster, decisions)


def units(cluster: Cluster, decisions: Decisions) -> Iterator[list[tuple[Evict, Task]]]:
    """The victims as they were taken: single tasks, and gangs as a whole, with those spare ones that went before."""
    whole = {evict.job for evict in decisions.evictions if evict.reason.whole_gang}
    gangs: dict[tuple[str, str], list[tuple[Evict, Task]]] = {}
    for evict in decisions.evictions:
        alone = "" if evict.job in whole else evict.task
        gangs.setdefault((evict.job, alone), []).append((evict, cluster.tasks[evict.task]))
    yield from gangs.values()


def starts_whom_it_evicts_for(cluster: Cluster, decisions: Decisions) -> None:
    placed = {*decisions.pipelined, *(bind.task for bind in decisions.binds)}
    for evict in decisions.evictions:
        job = cluster.jobs[evict.reason.preemptor]
        assert evict.reason.preemptor_task in placed, (
            f"{evict.task} goes for {evict.reason.preemptor_task}, which waits on"
        )
        ready = job.count(HOLDING | TaskStatus.SUCCEEDED) + sum(key in placed for key in job.tasks)
        ready -= sum(other.task in job.tasks for other in decisions.evictions)
        assert ready >= job.min_available, f"{evict.task} goes for {job.key}, which has {ready} of {job.min_available}"


def leaves_no_gang_in_part(cluster: Cluster, policy: Policy, decisions: Decisions) -> None:
    gone = {evict.task for evict in decisions.evictions}
    bound = Counter(bind.job for bind in decisions.binds)
    for evict in decisions.evictions:
        if not _gang_protects(policy, evict.reason.action):
            continue
        job = cluster.jobs[evict.job]
        if evict.reason.preemptor == job.key:
            continue  # within a job as many come as go
        left = [task for task in job.having(HOLDING | TaskStatus.SUCCEEDED) if task.key not in gone]
        holding = [task for task in left if task.status & HOLDING]
        count = len(left) + bound[job.key]
        assert not holding or count >= job.min_available, f"{job.key} keeps {count} of {job.min_available}"


def _gang_protects(policy: Policy, action: str) -> bool:
    gang = policy.plugin("gang")
    return gang is not None and gang.enabled("enableReclaimable" if action == "reclaim" else "enablePreemptable")


def spares_the_protected(cluster: Cluster, decisions: Decisions) -> None:
    for evict in decisions.evictions:
        task = cluster.tasks[evict.task]
        may_go = TaskStatus.RUNNING if evict.reason.action == "reclaim" else TaskStatus.RUNNING | TaskStatus.BOUND
        assert task.status & may_go, f"{task} is evicted"
        assert task.preemptable, f"{task.key} is not preemptable"
        assert "system" not in task.pod.spec.priority_class_name, f"{task.key} is of the system"


def preempts_strictly_lower(cluster: Cluster, decisions: Decisions) -> None:
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
    """Return what each queue holds, with its descendants."""
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


def claim_by_claim(
    cluster: Cluster, decisions: Decisions, given_up: Container[str] = ()
) -> Iterator[tuple[list[tuple[Evict, Task]], dict[str, Resource]]]:
    """The victims as they were taken, each with what the queues held before: what a queue got earlier in this cycle
    counts, unless it was `given_up` again.
    """
    held = allocated(cluster)
    preemptors = {evict.reason.preemptor for evict in decisions.evictions}
    made: dict[str, list[Task]] = defaultdict(list)
    for key, node in {**{bind.task: bind.node for bind in decisions.binds}, **decisions.pipelined}.items():
        task = cluster.tasks[key]
        if task.job in preemptors and task.nominated != node:
            made[task.job].append(task)
        elif key not in given_up:
            _hold(cluster, held, task)
    preemptor = ""
    for unit in units(cluster, decisions):
        evict, first = unit[0]
        if evict.reason.preemptor != preemptor:
            for task in made.pop(preemptor, ()):
                _hold(cluster, held, task)
            preemptor = evict.reason.preemptor
        yield unit, held
        request = resources.total_of(task.request for _, task in unit)
        for name in lineage(cluster, cluster.jobs[first.job].queue):
            resources.take_from(held[name], request)


def reclaims_above_deserved(cluster: Cluster, decisions: Decisions) -> None:
    for unit, held in claim_by_claim(cluster, decisions):
        evict, first = unit[0]
        if evict.reason.action != "reclaim":
            continue
        job = cluster.jobs[first.job]
        request = resources.total_of(task.request for _, task in unit)
        queue = cluster.queues[job.queue]
        assert job.queue != cluster.jobs[evict.reason.preemptor].queue, f"{evict.task} is reclaimed from its own queue"
        assert queue.reclaimable, f"{evict.task} is of queue {queue.name}, which is not reclaimable"
        due = decisions.queues[queue.name].deserved  # as the queue plugin cut it: it has tests of its own
        relevant = [name for name in request if name in due and name != PODS and request[name] > 0]
        above = any(held[queue.name].get(name, 0) > due[name] for name in relevant)
        assert above or not relevant, f"{evict.task}: queue {queue.name} holds {held[queue.name]}, due {due}"


def _hold(cluster: Cluster, held: dict[str, Resource], task: Task) -> None:
    for name in lineage(cluster, cluster.jobs[task.job].queue):
        resources.add_to(held[name], task.request)


def keeps_guarantees(cluster: Cluster, decisions: Decisions) -> None:
    given_up = {nominate.task for nominate in decisions.nominations if not nominate.node}
    for unit, held in claim_by_claim(cluster, decisions, given_up):
        reclaimed = [task for evict, task in unit if evict.reason.action == "reclaim"]
        request = resources.total_of(task.request for task in reclaimed)
        for name in lineage(cluster, cluster.jobs[reclaimed[0].job].queue) if reclaimed else ():
            for dimension, guaranteed in cluster.queues[name].guarantee.items():
                left = held[name].get(dimension, 0) - request.get(dimension, 0)
                assert not request.get(dimension) or left >= guaranteed, (
                    f"{reclaimed[0].key}: queue {name} keeps {left} of {guaranteed} {dimension}"
                )


def evicts_no_one_in_vain(cluster: Cluster, policy: Policy, decisions: Decisions) -> None:
    """Check that restoring any unit would overfill a node or queue, or join pods that exclude each other."""
    room = _room(cluster, decisions)
    for unit in units(cluster, decisions):
        back: dict[str, Resource] = defaultdict(dict)
        for _, task in unit:
            resources.add_to(back[task.node], task.request)
        crowded = any(room[node].get(n, 0) - v < 0 for node, held in back.items() for n, v in held.items() if v > 0)
        needed = crowded or _stands_in_the_way(cluster, decisions, unit)
        assert needed or _exceeds_a_limit(cluster, policy, decisions, unit), (
            f"{[t.key for _, t in unit]} need not have gone"
        )


def spares_members_that_nobody_needs(cluster: Cluster, policy: Policy, decisions: Decisions) -> None:
    """Of a gang that goes, no member could stay alone with those that stay: its room is needed, or its queue's quota,
    or the others would be protected without it. Only flat queues are judged.
    """
    room, gone = _room(cluster, decisions), {evict.task for evict in decisions.evictions}
    for unit, held in claim_by_claim(cluster, decisions):
        evict, first = unit[0]
        job = cluster.jobs[first.job]
        queue = cluster.queues[job.queue]
        left = sum(task.key not in gone for task in job.having(HOLDING | TaskStatus.SUCCEEDED))
        alone = len(unit) > 1 and left + 1 >= job.min_available and not job.binding_roles and job.disruption is None
        if not alone or queue.parent or not _gang_protects(policy, evict.reason.action):
            continue
        for position, (_, task) in enumerate(unit):
            rest = resources.total_of(other.request for at, (_, other) in enumerate(unit) if at != position)
            if evict.reason.action == "reclaim" and not _stays_above(held[queue.name], rest, decisions, queue.name):
                continue
            member = [unit[position]]
            crowded = any(room[task.node].get(name, 0) < amount for name, amount in task.request.items() if amount > 0)
            assert (
                crowded
                or _stands_in_the_way(cluster, decisions, member)
                or _exceeds_a_limit(cluster, policy, decisions, member)
            ), f"{task.key} could have stayed with {left} others of {job.key}"


def _stays_above(held: Resource, rest: Resource, decisions: Decisions, queue: str) -> bool:
    """Whether the queue exceeds its deserved share before and after the eviction of the gang's other members."""
    due = decisions.queues[queue].deserved
    names = [name for name in rest if name in due and name != PODS and rest[name] > 0]
    return bool(names) and all(held.get(name, 0) - rest[name] > due[name] for name in names)


def evicts_in_proportion(cluster: Cluster, decisions: Decisions) -> None:
    """What goes for one job is at most, over its placed tasks, each one's request and the largest unit that goes.

    One dimension within the bound is enough: what frees cards may hold many cpus.
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
        assert within or not names, f"for {key} {evicted} go, and {bound} are in proportion"


def _room(cluster: Cluster, decisions: Decisions) -> dict[str, Resource]:
    """Return the free amounts of each node once all victims have left and all waiting tasks run."""
    room: dict[str, Resource] = {}
    for info in cluster.nodes.rows:
        room[info.name] = dict(info.allocatable)
        for task in info.tasks.values():
            if task.status & (HOLDING | TaskStatus.UNKNOWN):
                resources.take_from(room[info.name], task.request)
    for evict in decisions.evictions:
        task = cluster.tasks[evict.task]
        resources.add_to(room[task.node], task.request)
    coming: Mapping[str, str] = {**decisions.pipelined, **{bind.task: bind.node for bind in decisions.binds}}
    for key, node in coming.items():
        resources.take_from(room[node], cluster.tasks[key].request)
    return room


def _exceeds_a_limit(cluster: Cluster, policy: Policy, decisions: Decisions, unit: list[tuple[Evict, Task]]) -> bool:
    """Whether with the unit back a queue that it shares with someone placed would be above what it may hold, or above
    what it may reclaim up to.
    """
    _, first = unit[0]
    if policy.plugin("capacity-card"):
        return _exceeds_a_quota(cluster, decisions, unit)
    own = lineage(cluster, cluster.jobs[first.job].queue)
    held = allocated(cluster)
    placed = [*decisions.pipelined, *(bind.task for bind in decisions.binds)]
    theirs = {name for key in placed for name in lineage(cluster, cluster.jobs[cluster.tasks[key].job].queue)}
    shared = [name for name in own if name in theirs]
    gone = Counter(e.task for e in decisions.evictions) - Counter(task.key for _, task in unit)
    for key in placed:
        for name in lineage(cluster, cluster.jobs[cluster.tasks[key].job].queue):
            resources.add_to(held[name], cluster.tasks[key].request)
    for key in gone:
        for name in lineage(cluster, cluster.jobs[cluster.tasks[key].job].queue):
            resources.take_from(held[name], cluster.tasks[key].request)
    claims = (
        cluster.jobs[evict.reason.preemptor].queue for evict in decisions.evictions if evict.reason.action == "reclaim"
    )
    reclaiming = {name for queue in set(claims) for name in lineage(cluster, queue)}
    for name in shared:
        numbers = decisions.queues[name]
        up_to_deserved = policy.plugin("proportion") or name in reclaiming
        limits = (numbers.capability, numbers.deserved) if up_to_deserved else (numbers.capability,)
        if any(held[name].get(n, 0) > amount for limit in limits for n, amount in limit.items() if n != PODS):
            return True
    return False


def _exceeds_a_quota(cluster: Cluster, decisions: Decisions, unit: list[tuple[Evict, Task]]) -> bool:
    """Return the same for quotas of cards: a pod counts as the model of its node."""
    queue = cluster.jobs[unit[0][1].job].queue
    gone = {evict.task for evict in decisions.evictions} - {task.key for _, task in unit}
    coming = {**decisions.pipelined, **{bind.task: bind.node for bind in decisions.binds}}
    held: Counter[str] = Counter()
    for task in cluster.tasks.values():
        node = coming.get(task.key) or (task.node if task.status & HOLDING and task.key not in gone else "")
        if node and cluster.jobs[task.job].queue == queue:
            model = cluster.nodes.by_name[node].labels["nvidia.com/gpu.product"]
            held[model] += int(task.request.get("nvidia.com/gpu", 0.0))
    return any(held[name] > amount for name, amount in decisions.queues[queue].capability.items())


def _stands_in_the_way(cluster: Cluster, decisions: Decisions, unit: list[tuple[Evict, Task]]) -> bool:
    """Whether a pod of the unit and a pod to be placed on its node exclude each other."""
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
