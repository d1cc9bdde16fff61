"""Faults in whole decisions: they are changed after they were made, or are never made."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import msgspec

from schedspec.scheduler.decide import decide
from schedspec.scheduler.framework.decisions import Bind, Decisions, Evict
from schedspec.scheduler.live import loop, process
from schedspec.scheduler.live.writer import Writer
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.job import Job
from schedspec.scheduler.model.task import COMPLETED, Task, TaskStatus
from schedspec.scheduler.policy.model import Policy
from schedspec.scheduler.reasons import VictimReason
from tests.test_the_tests.faults.fault import CONDITIONS, EVERYWHERE, ORDER, Fault, instead
from tests.test_the_tests.specimens import Specimen

Change = Callable[[Cluster, Decisions, float], Decisions]
WITHOUT_REASON = "nobody/says-so"
LATER = 0.15
"""Seconds from a refusal to the bind that contradicts it; less than the time that any `stays` sentence watches."""


def after(change: Callable[[], Change]) -> Callable[[], None]:
    """Return an injection that passes each cycle's decisions to one `Change`, which may keep state between cycles."""

    def inject() -> None:
        changed = change()

        def decide_changed(cluster: Cluster, policy: Policy, now: float, *step: Any, **budget: Any) -> Decisions:
            return changed(cluster, decide(cluster, policy, now, *step, **budget), now)

        instead((loop, "decide", decide_changed))()

    return inject


def running(cluster: Cluster, excluded: set[str]) -> Iterator[Task]:
    """Yield the running tasks of all jobs except `excluded`, the youngest job first."""
    jobs = sorted(cluster.jobs.values(), key=lambda job: (-job.creation, job.key))
    for job in jobs:
        if job.key not in excluded and job.group is not None:
            yield from sorted(job.by_status.get(TaskStatus.RUNNING, {}).values(), key=lambda task: task.key)


def running_outside(cluster: Cluster, job: str) -> Iterator[Task]:
    """Yield the running tasks of all jobs, those of the job itself last."""
    yield from running(cluster, {job})
    yield from running(cluster, cluster.jobs.keys() - {job})


def eviction(cluster: Cluster, task: Task, preemptor: str) -> Evict:
    queue = cluster.jobs[preemptor].queue if preemptor in cluster.jobs else ""
    victim = cluster.jobs[task.job].queue
    return Evict(task.key, task.uid, task.job, VictimReason("reclaim", preemptor, f"{preemptor}-0", queue, victim))


def _one_too_many() -> Change:
    """Evict one more pod once a preemptor runs: a pod of another job, or of the preemptor if no other is left.

    Before that, the eviction might be a needed one. The job that lost the pod gets no more binds, because its pod would
    start again at once.
    """
    served: set[str] = set()
    unserved: set[str] = set()
    starved: set[str] = set()

    def change(cluster: Cluster, decisions: Decisions, now: float) -> Decisions:
        more: list[Evict] = []
        unserved.update({it.reason.preemptor for it in decisions.evictions} - served)
        for job in sorted(unserved & cluster.jobs.keys()):
            alive = cluster.jobs[job].count(~COMPLETED)
            if alive and alive == cluster.jobs[job].count(TaskStatus.RUNNING):
                unserved.remove(job)
                served.add(job)
                more += [eviction(cluster, task, job) for task in islice(running_outside(cluster, job), 1)]
        starved.update(it.job for it in more)
        binds = [bind for bind in decisions.binds if bind.job not in starved]
        wake_at = now + 0.05 if unserved else decisions.wake_at
        evictions = [*decisions.evictions, *more]
        return msgspec.structs.replace(decisions, binds=binds, evictions=evictions, wake_at=wake_at)

    return change


def _evict_without_binding() -> Change:
    """Evict a pod for each refused job, and bind neither the refused job nor the victim's job afterwards."""
    victims: dict[str, str] = {}

    def change(cluster: Cluster, decisions: Decisions, _: float) -> Decisions:
        more = []
        for job in sorted(decisions.refusals.keys() - victims.keys() - set(victims.values())):
            victim = next(running_outside(cluster, job), None)
            if victim is not None:
                victims[job] = victim.job
                more.append(eviction(cluster, victim, job))
        unbound = victims.keys() | set(victims.values())
        binds = [bind for bind in decisions.binds if bind.job not in unbound]
        return msgspec.structs.replace(decisions, binds=binds, evictions=[*decisions.evictions, *more])

    return change


def _ping_pong() -> Change:
    """Let a victim's job evict a pod of its preemptor, and then the other way round, for ever."""
    lost: dict[str, str] = {}

    def change(cluster: Cluster, decisions: Decisions, _: float) -> Decisions:
        more = []
        for victim, preemptor in list(lost.items()):
            job, other = cluster.jobs.get(victim), cluster.jobs.get(preemptor)
            if job is not None and other is not None and job.by_status.get(TaskStatus.PENDING):
                task = next(iter(other.by_status.get(TaskStatus.RUNNING, {}).values()), None)
                if task is not None:
                    del lost[victim]
                    lost[preemptor] = victim
                    more.append(eviction(cluster, task, victim))
        lost.update((it.job, it.reason.preemptor) for it in decisions.evictions)
        return msgspec.structs.replace(decisions, evictions=[*decisions.evictions, *more])

    return change


def _pending(job: Job) -> list[Task]:
    return [task for task in job.by_status.get(TaskStatus.PENDING, {}).values() if not task.gated]


def _bind_anyway(cluster: Cluster, decisions: Decisions, jobs: set[str]) -> Decisions:
    """Bind every pending pod of these jobs to the first node, whether it fits or not."""
    node = next(iter(sorted(cluster.nodes.by_name)), "")
    bound = {bind.task for bind in decisions.binds}
    tasks = [task for key in sorted(jobs) if key in cluster.jobs for task in _pending(cluster.jobs[key])]
    more = [Bind(task.key, task.uid, node, task.job) for task in tasks if task.key not in bound and node]
    return msgspec.structs.replace(decisions, binds=[*decisions.binds, *more])


def overcommit() -> Change:
    return lambda cluster, decisions, _: _bind_anyway(cluster, decisions, set(decisions.refusals))


def _changes_its_mind() -> Change:
    since: dict[str, float] = {}

    def change(cluster: Cluster, decisions: Decisions, now: float) -> Decisions:
        for key in decisions.refusals:
            if key in cluster.jobs and _pending(cluster.jobs[key]):
                since.setdefault(key, now)
        late = {key for key, at in since.items() if key in decisions.refusals and now - at > LATER}
        decisions = _bind_anyway(cluster, decisions, late)
        return msgspec.structs.replace(decisions, wake_at=now + 0.05)

    return change


def _silent() -> Change:
    return lambda _, decisions, __: msgspec.structs.replace(decisions, refusals={})


def _asleep() -> Change:
    return lambda *_: Decisions()


def _restless() -> Change:
    """Evict a pod of every running job again and again; `_restless_and_silent` also hides the reason."""
    last = 0.0

    def change(cluster: Cluster, decisions: Decisions, now: float) -> Decisions:
        nonlocal last
        more = []
        if now - last > 0.1:  # if timeouts are halved, a number of pods has to be stable for 0.3 s
            last, one_each = now, {task.job: task for task in running(cluster, set())}
            more = [eviction(cluster, task, WITHOUT_REASON) for task in one_each.values()]
        return msgspec.structs.replace(decisions, evictions=[*decisions.evictions, *more], wake_at=now + 0.05)

    return change


def _restless_and_silent() -> None:
    mark_as_victim = Writer._mark_as_victim

    async def evicting(self: Any, namespace: str, name: str, decision: Evict) -> None:
        if decision.reason.preemptor != WITHOUT_REASON:
            await mark_as_victim(self, namespace, name, decision)

    instead((Writer, "_mark_as_victim", evicting))()
    after(_restless)()


def _dies() -> None:
    """Exit soon after the start, before a scenario can end."""
    ready = process.serve

    async def serve(options: Any) -> int:
        asyncio.get_running_loop().call_later(0.4, os._exit, 3)
        return await ready(options)

    instead((process, "serve", serve))()


def _waits_for_reasons(scenario: Specimen) -> bool:
    return any(re.search("stays? (pending|Pending|Inqueue)", step.text) for step in scenario.steps)


def _schedules(scenario: Specimen) -> bool:
    """Whether decisions matter to the scenario: the API server and the policy loader refuse without the scheduler."""
    return not any("refused because" in step.text for step in scenario.steps)


FAULTS = (
    Fault(
        "victim-too-many",
        "evicts one pod too many, and no longer serves the job of that pod",
        after(_one_too_many),
        ("are evicted", "is evicted:", "pod is evicted"),
    ),
    Fault(
        "evicts-in-vain",
        "evicts pods for jobs that it then does not bind",
        after(_evict_without_binding),
        ("nothing is evicted", "exactly 0 pods"),
    ),
    Fault(
        "ping-pong",
        "lets victims evict their preemptors in turn",
        after(_ping_pong),
        ("hierarchy/use_case", "queue_capacity/four", "queue_weights/four", ORDER, f"{CONDITIONS}: A gang"),
    ),
    Fault(
        "overcommit-node",
        "binds every waiting pod, even if it does not fit",
        after(overcommit),
        ("stays pending", "stay pending", "of these", "exactly 4 pods of"),
    ),
    Fault(
        "changes-its-mind",
        "reports why a pod waits, and binds it a moment later although it does not fit",
        after(_changes_its_mind),
        (f"{CONDITIONS}: A pod", "lifecycle/first_job", "queue_capacity/shares: A queue at"),
    ),
    Fault(
        "silent", "never reports why a pod waits", after(_silent), ("stays", "stay "), _waits_for_reasons, acts=False
    ),
    Fault(
        "restless",
        "evicts running pods of every job without a reason",
        _restless_and_silent,
        ("keeps running", "exactly 2 pods of", "exactly 4 pods of", "exactly 1 pod of"),
    ),
    Fault("asleep", "decides nothing", after(_asleep), EVERYWHERE, _schedules, acts=False),
    Fault(
        "dies", "exits soon after its start", _dies, EVERYWHERE, lambda _: True, acts=False, ends=True, of_process=True
    ),
)
