"""Simulate the life of workloads: pods start, gangs run and end, owners create evicted pods again.

`Gangs` acts as the kubelets and the owners of all workloads:

1. A workload arrives with its PodGroup and all of its pods.
2. A bound pod runs after the start delay. As soon as `min_member` pods run, the gang runs and its clock starts.
3. When the gang has run for `run_time` seconds in all, the workload ends, and its objects are deleted.
4. A victim is deleted after the grace period. If enough pods still run, the owner creates that pod again. Otherwise the
   gang is broken: its clock stops, and the owner deletes the remaining pods. It restarts the gang from the beginning or
   from the last checkpoint, or gives up. (`OnEviction` names two more kinds of owners; a pod of a cluster's VolcanoJob
   carries the action of its policy, `names.ON_EVICTED`, which comes first and with any number of pods.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import partial

from ..scheduler.controllers.job.phases import ENDS
from ..scheduler.controllers.job.state import task_of
from ..scheduler.framework.decisions import Bind, Evict
from ..scheduler.inputs import Input, ObjectGone, ObjectSeen
from ..scheduler.model import names, objects
from . import outcomes
from .adopted import CopyMaker, as_workload, live_pods
from .agenda import Agenda, Event, Rank
from .load import Adopted, InvalidLoadError, OnEviction, Workload
from .pods import ObjectMaker, annotated, terminating


@dataclass(frozen=True, slots=True)
class Settings:
    """Delays of the simulated cluster, in seconds."""

    start_delay: float = 0.0
    """From a pod's bind to its start."""
    grace: float = 0.0
    """From a pod's deletion to its end."""
    node_eviction: float = 300.0
    """From a node's failure to the end of its pods: Kubernetes' default toleration of unreachable nodes."""


class PodState(IntEnum):
    PENDING = 0
    BOUND = 1
    RUNNING = 2
    STALLED = 3
    """The pod ran or was to start on a node that has failed."""
    TERMINATING = 4
    ENDED = 5


class Member:
    """One pod of a gang; `pod` is the last version that the core has seen."""

    __slots__ = ("index", "next", "node", "pod", "state")

    def __init__(self, index: int, pod: objects.Pod) -> None:
        self.index, self.pod, self.node, self.state = index, pod, "", PodState.PENDING
        self.next: Event | None = None
        """The event that ends its present state, if one is known: its start, or its removal."""

    def enter(self, state: PodState, until: Event | None = None) -> None:
        """Set the state, which ends with an event; the event that would have ended the state before is cancelled."""
        if self.next is not None:
            self.next.cancel()
        self.state, self.next = state, until


class Gang:
    """One workload that has arrived and not ended."""

    __slots__ = (
        "attempt", "broken", "done", "end", "gives_up", "group", "made", "make", "members", "priority", "since", "work",
    )  # fmt: skip

    def __init__(self, workload: Workload, priority: int, make: ObjectMaker) -> None:
        self.work, self.priority, self.make = workload, priority, make
        self.group: objects.PodGroup | None = None
        self.members: dict[str, Member] = {}
        """By pod key."""
        self.attempt = 0
        self.made = 0
        """Number of pods created so far, which makes uids unique."""
        self.done = 0.0
        """Seconds of work that a restart does not lose."""
        self.since: float | None = None
        """Time since which the gang runs; None if it does not run."""
        self.end: Event | None = None
        """Its completion, while it runs and its run time is known."""
        self.broken = self.gives_up = False
        """Whether its remaining pods are deleted, and whether no other attempt follows."""

    def count(self, *states: PodState) -> int:
        return sum(member.state in states for member in self.members.values())


class Gangs:
    """All workloads that have arrived and not ended, by key."""

    def __init__(
        self,
        agenda: Agenda,
        show: Callable[[Input], None],
        emit: outcomes.Sink,
        settings: Settings,
        *,
        scheduler_name: str = "",
    ) -> None:
        self._agenda, self._show, self._emit, self._settings = agenda, show, emit, settings
        self._make = ObjectMaker(scheduler_name)
        self._copy = CopyMaker()
        self._gangs: dict[str, Gang] = {}
        self._on_node: dict[str, dict[str, Gang]] = {}

    def __len__(self) -> int:
        return len(self._gangs)

    def __iter__(self) -> Iterator[Gang]:
        return iter(self._gangs.values())

    # ----------------------------------------------------------------------------------------------------- arrivals

    def submit(self, workload: Workload, priority_class: str, priority: int) -> None:
        """Create the PodGroup and its pods. Raises InvalidLoadError if the name is in use."""
        self._create(self._register(workload, priority, self._make), priority_class)

    def adopt(self, given: Adopted, priority: int) -> None:
        """Show the PodGroup and its pods, and continue their work. Raises InvalidLoadError if the name is in use."""
        self._copy.add(given)
        gang = self._register(as_workload(given), priority, self._copy)
        gang.attempt, gang.done, gang.group = 1, given.done, given.group
        self._show(ObjectSeen("PodGroup", given.group))
        live = dict(live_pods(given))
        for index, pod in enumerate(given.pods):
            self._show(ObjectSeen("Pod", pod))
            if index in live:
                self._adopt_pod(gang, Member(index, pod))
        self._start_if_enough(gang)

    def _adopt_pod(self, gang: Gang, member: Member) -> None:
        pod, now = member.pod, self._agenda.now
        key, node = pod.metadata.key, pod.spec.node_name
        gang.members[key] = member
        if node:
            member.node = node
            self._on_node.setdefault(node, {})[key] = gang
            self._emit(outcomes.Placed(now, gang.work.key, key, node))
        if pod.metadata.deletion_timestamp is not None:
            self._expire(gang, member, self._settings.grace)
        elif node and pod.status.phase == "Running":
            member.enter(PodState.RUNNING)
        elif node:
            self._start_later(gang, member)

    def _register(self, workload: Workload, priority: int, make: ObjectMaker) -> Gang:
        if workload.key in self._gangs:
            raise InvalidLoadError(workload.name, "name", workload.name, "a workload of this name has not ended yet")
        gang = self._gangs[workload.key] = Gang(workload, priority, make)
        self._emit(
            outcomes.Submitted(
                self._agenda.now,
                workload.key,
                workload.queue,
                workload.pods,
                workload.minimum,
                dict(workload.requests),
                workload.run_time,
                priority,
                workload.user,
                workload.preemptable,
            )
        )
        return gang

    def _create(self, gang: Gang, priority_class: str) -> None:
        now = self._agenda.now
        gang.attempt += 1
        gang.broken = False
        gang.group = gang.make.group(gang.work, gang.attempt, priority_class, now)
        self._show(ObjectSeen("PodGroup", gang.group))
        for index in range(gang.work.pods):
            self._create_pod(gang, index)

    def _create_pod(self, gang: Gang, index: int) -> None:
        gang.made += 1
        uid = f"{gang.work.key}-{index}.{gang.made}"
        pod = gang.make.pod(gang.work, index, uid, gang.priority, self._agenda.now)
        gang.members[pod.metadata.key] = Member(index, pod)
        self._show(ObjectSeen("Pod", pod))

    # ---------------------------------------------------------------------------------------------------- decisions

    def set_phase(self, job: str, phase: str) -> None:
        """Write the phase of a PodGroup."""
        gang = self._gangs.get(job)
        if gang is None or gang.group is None:
            return
        if phase == "Inqueue":
            self._emit(outcomes.Admitted(self._agenda.now, job))
        gang.group = objects.PodGroup(gang.group.metadata, gang.group.spec, objects.PodGroupStatus(phase))
        self._show(ObjectSeen("PodGroup", gang.group))

    def bind(self, decision: Bind) -> None:
        """Bind a pod, which runs after the start delay."""
        job, key, node = decision.job, decision.task, decision.node
        gang = self._gangs[job]
        member = gang.members[key]
        if decision.annotations:
            member.pod = annotated(member.pod, decision.annotations)
        member.node = node
        self._on_node.setdefault(node, {})[key] = gang
        self._emit(outcomes.Placed(self._agenda.now, job, key, node))
        if not self._settings.start_delay:
            self._run(gang, member)
            return
        member.pod = gang.make.bound(member.pod, node)
        self._show(ObjectSeen("Pod", member.pod))
        self._start_later(gang, member)

    def _start_later(self, gang: Gang, member: Member) -> None:
        at = self._agenda.now + self._settings.start_delay
        member.enter(PodState.BOUND, self._agenda.at(at, Rank.START, partial(self._run, gang, member)))

    def _run(self, gang: Gang, member: Member) -> None:
        member.enter(PodState.RUNNING)
        member.pod = gang.make.running(member.pod, member.node, self._agenda.now)
        self._show(ObjectSeen("Pod", member.pod))
        self._start_if_enough(gang)

    def _start_if_enough(self, gang: Gang) -> None:
        if gang.since is not None or gang.broken or gang.count(PodState.RUNNING) < gang.work.minimum:
            return
        gang.since = now = self._agenda.now
        self._emit(outcomes.Started(now, gang.work.key, gang.attempt))
        remaining = gang.work.run_time - gang.done
        if remaining < math.inf:
            gang.end = self._agenda.at(now + remaining, Rank.END, partial(self._complete, gang))

    def evict(self, eviction: Evict) -> None:
        """Evict a pod."""
        gang = self._gangs[eviction.job]
        self._emit(outcomes.Evicted(self._agenda.now, eviction.job, eviction.task, eviction.reason))
        self._delete(gang, gang.members[eviction.task])

    # --------------------------------------------------------------------------------------------------------- ends

    def end(self, key: str) -> None:
        """Complete a workload now, unless it is over."""
        if key in self._gangs:
            self._stop_clock(self._gangs[key])
            self._complete(self._gangs[key])

    def fail_pod(self, job: str, key: str) -> None:
        """Let a running pod fail. Its owner does not create a new one."""
        gang = self._gangs.get(job)
        member = gang.members.get(key) if gang is not None else None
        if gang is None or member is None or member.state is not PodState.RUNNING:
            return
        member.enter(PodState.ENDED)
        del gang.members[key]
        del self._on_node[member.node][key]
        failed = objects.Pod(member.pod.metadata, member.pod.spec, objects.PodStatus("Failed"))
        self._show(ObjectSeen("Pod", failed))
        self._emit(outcomes.Released(self._agenda.now, job, key, member.node))
        if gang.count(PodState.BOUND, PodState.RUNNING) < gang.work.minimum:
            self._stop(gang)

    def _complete(self, gang: Gang) -> None:
        for member in list(gang.members.values()):
            self._remove_pod(gang, member)
        self._end(gang, "completed")

    def _end(self, gang: Gang, outcome: str) -> None:
        self._show(ObjectGone("PodGroup", gang.work.key))
        del self._gangs[gang.work.key]
        self._emit(outcomes.Ended(self._agenda.now, gang.work.key, outcome, gang.attempt))

    def _delete(self, gang: Gang, member: Member) -> None:
        """Delete a pod with its grace period, and update the gang."""
        was_placed = member.state is not PodState.PENDING
        action = (member.pod.metadata.annotations or {}).get(names.ON_EVICTED)
        self._terminate(gang, member)
        if action == "RestartTask":
            for other in [it for it in gang.members.values() if task_of(it.pod) == task_of(member.pod)]:
                if other.state in (PodState.BOUND, PodState.RUNNING):
                    self._terminate(gang, other)
        remaining = gang.count(PodState.BOUND, PodState.RUNNING)
        ends_attempt = action == "RestartJob" or action in ENDS
        if not was_placed or gang.broken or (remaining >= gang.work.minimum and not ends_attempt):
            return
        self._stop(gang)
        if not (ends_attempt or gang.work.on_eviction.deletes_remaining_pods):
            return
        gang.broken, gang.gives_up = True, action in ENDS or gang.work.on_eviction is OnEviction.ABORT
        for other in list(gang.members.values()):
            if other.state is not PodState.TERMINATING:
                self._terminate(gang, other)

    def _terminate(self, gang: Gang, member: Member) -> None:
        grace = self._settings.grace if member.node else 0.0
        if grace:
            member.pod = terminating(member.pod, self._agenda.now)
            self._show(ObjectSeen("Pod", member.pod))
        self._expire(gang, member, grace)

    def _expire(self, gang: Gang, member: Member, grace: float) -> None:
        """Remove a pod after its grace period."""
        end = self._agenda.at(self._agenda.now + grace, Rank.END, partial(self._on_terminated, gang, member))
        member.enter(PodState.TERMINATING, end)

    def _stop(self, gang: Gang) -> None:
        """Stop the clock of a gang that has too few pods to run."""
        if gang.since is None:
            return
        now, work = self._agenda.now, gang.work
        ran = now - gang.since
        total = gang.done + ran
        keeps = work.on_eviction is OnEviction.CHECKPOINT
        gang.done = min(total, math.floor(total / work.checkpoint_every) * work.checkpoint_every) if keeps else 0.0
        self._stop_clock(gang)
        self._emit(outcomes.Stopped(now, work.key, gang.attempt, ran, total - gang.done))

    def _stop_clock(self, gang: Gang) -> None:
        if gang.end is not None:
            gang.end.cancel()
        gang.since = gang.end = None

    def _on_terminated(self, gang: Gang, member: Member) -> None:
        self._remove_pod(gang, member)
        if gang.work.on_eviction is OnEviction.VANISH:
            return
        if not gang.broken:
            self._create_pod(gang, member.index)
        elif not gang.members:
            self._restart(gang)

    def _restart(self, gang: Gang) -> None:
        assert gang.group is not None
        if gang.gives_up:
            self._end(gang, "aborted")
            return
        self._show(ObjectGone("PodGroup", gang.work.key))
        self._create(gang, gang.group.spec.priority_class_name)

    def _remove_pod(self, gang: Gang, member: Member) -> None:
        key = member.pod.metadata.key
        member.enter(PodState.ENDED)
        del gang.members[key]
        if member.node:
            del self._on_node[member.node][key]
            self._emit(outcomes.Released(self._agenda.now, gang.work.key, key, member.node))
        self._show(ObjectGone("Pod", key, member.pod.metadata.uid))

    # -------------------------------------------------------------------------------------------------------- nodes

    def _pods_on(self, node: str) -> list[tuple[Gang, Member]]:
        return [(gang, gang.members[key]) for key, gang in self._on_node.get(node, {}).items()]

    def drain(self, node: str) -> None:
        """Delete the pods of a node, each with its grace period."""
        for gang, member in self._pods_on(node):
            if member.state is not PodState.TERMINATING:
                self._disrupt(gang, member, "drained")
                self._delete(gang, member)

    def fail(self, node: str) -> None:
        """Stop the work on a node. Its pods are deleted after `Settings.node_eviction` unless the node recovers."""
        for gang, member in self._pods_on(node):
            if member.state in (PodState.BOUND, PodState.RUNNING):
                at = self._agenda.now + self._settings.node_eviction
                end = self._agenda.at(at, Rank.END, partial(self._evict_stalled, gang, member))
                member.enter(PodState.STALLED, end)
                if gang.count(PodState.RUNNING) < gang.work.minimum:
                    self._stop(gang)

    def _evict_stalled(self, gang: Gang, member: Member) -> None:
        self._disrupt(gang, member, "failed")
        self._delete(gang, member)

    def recover(self, node: str) -> None:
        """Continue the work on a node."""
        for gang, member in self._pods_on(node):
            if member.state is PodState.STALLED:
                self._run(gang, member)

    def remove(self, node: str) -> None:
        """Remove the pods of a node that was deleted."""
        for gang, member in self._pods_on(node):
            if gang.members.get(member.pod.metadata.key) is member:
                self._disrupt(gang, member, "removed")
                self._delete(gang, member)
                self._on_terminated(gang, member)

    def _disrupt(self, gang: Gang, member: Member, cause: str) -> None:
        key = member.pod.metadata.key
        self._emit(outcomes.Disrupted(self._agenda.now, gang.work.key, key, member.node, cause))
