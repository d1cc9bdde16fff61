"""Simulate a cluster that serves a load in virtual time.

At each virtual instant, all due events run in the order of their ranks. Then, if a decision may have changed, the
scheduler decides once, and its decisions are carried out. An instant may have several cycles: a victim without a grace
period is removed at once, and another cycle uses the freed capacity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial

import msgspec

from ..scheduler.framework.decisions import Decisions
from ..scheduler.inputs import Input, ObjectGone, ObjectSeen
from ..scheduler.model import objects
from ..scheduler.model.cluster import Cluster
from ..scheduler.policy.model import Policy
from ..scheduler.reasons import Refusal
from . import outcomes
from .agenda import Agenda, Rank, SimulationError
from .cycles import Cycles
from .gangs import Gangs, Settings
from .load import Adopted, Arrival, DrainNode, EndWork, FailNode, FailPod, RecoverNode, RemoveNode, UsePolicy, Workload


class UnknownNodeError(SimulationError):
    """A change names a node that does not exist."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no node {name} to drain, fail, recover or remove; add it to the cluster first")
        self.name = name


class Simulation:
    """One run. `emit` receives every outcome in order; `on_input` every input of the core (for a recording).

    ::

        simulation = Simulation(policy, emit=write, start=1_790_000_000.0)
        for node in nodes: simulation.put("Node", node)
        for queue in queues: simulation.put("Queue", queue)
        simulation.run(load)
    """

    def __init__(
        self,
        policy: Policy,
        *,
        emit: outcomes.Sink = lambda _: None,
        settings: Settings | None = None,
        start: float = 0.0,
        cluster: Cluster | None = None,
        on_input: Callable[[Input], None] | None = None,
    ) -> None:
        self.agenda = Agenda(start)
        self.cycles = Cycles(cluster or Cluster(), policy, on_input=on_input)
        self._emit = emit
        self._nodes: dict[str, objects.Node] = {}
        self._refusals: dict[str, Refusal] = {}
        names = self.cycles.cluster.scheduler_names
        self.gangs = Gangs(
            self.agenda,
            self.cycles.apply,
            emit,
            settings or Settings(),
            scheduler_name=next(iter(sorted(names)), ""),
        )

    @property
    def now(self) -> float:
        """Return the virtual time, in seconds since the epoch."""
        return self.agenda.now

    # ------------------------------------------------------------------------------------------------------- inputs

    def put(self, kind: str, item: msgspec.Struct) -> None:
        """Show an object of one of `STATE_KINDS` to the core now. Pods with work come from workloads instead."""
        self._seen(ObjectSeen(kind, item))

    def _seen(self, given: ObjectSeen) -> None:
        if given.kind == "Node":
            self._nodes[given.object.metadata.name] = given.object
        try:
            self.cycles.apply(given)
        except ValueError as error:  # like the live scheduler, leave the object out
            self._emit(outcomes.Refused(self.now, f"{given.kind} {given.object.metadata.key}", str(error)))

    def _node(self, name: str) -> objects.Node:
        if name not in self._nodes:
            raise UnknownNodeError(name)
        return self._nodes[name]

    def _show_node(self, name: str, *, ready: bool | None = None, cordoned: bool | None = None) -> None:
        """Show a node with a changed condition or cordon; None keeps what the node has."""
        node = self._node(name)
        spec, status = node.spec, node.status
        if cordoned is not None:
            spec = objects.NodeSpec(unschedulable=cordoned, taints=spec.taints)
        if ready is not None:
            others = [condition for condition in status.conditions or () if condition.type != "Ready"]
            conditions = [*others, objects.Condition("Ready", "True" if ready else "False")]
            status = msgspec.structs.replace(status, conditions=conditions)
        self._seen(ObjectSeen("Node", objects.Node(node.metadata, spec, status)))

    def carry_out(self, item: object) -> None:
        """Carry out one input now."""
        match item:
            case Workload():
                self._submit(item)
            case Adopted():
                self.gangs.adopt(item, self.cycles.cluster.priority_of(item.group.spec.priority_class_name))
            case EndWork():
                self.gangs.end(item.key)
            case UsePolicy():
                self.cycles.use(item.policy)
            case FailPod():
                self.gangs.fail_pod(item.job, item.pod)
            case ObjectSeen():
                self._seen(item)
            case ObjectGone(kind="Node") | RemoveNode():
                name = item.name if isinstance(item, RemoveNode) else item.key
                self._node(name)
                del self._nodes[name]
                self.cycles.apply(ObjectGone("Node", name))
                self.gangs.remove(name)
            case ObjectGone():
                self.cycles.apply(item)
            case DrainNode():
                self._show_node(item.name, cordoned=True)
                self.gangs.drain(item.name)
            case FailNode():
                self._show_node(item.name, ready=False)
                self.gangs.fail(item.name)
            case RecoverNode():
                self._show_node(item.name, ready=True, cordoned=False)
                self.gangs.recover(item.name)
            case _:
                raise TypeError(f"a simulation does not accept inputs of type {type(item).__name__}")

    def _submit(self, workload: Workload) -> None:
        cluster, name = self.cycles.cluster, workload.priority_class
        if not name and workload.priority is not None:
            name = f"priority-{workload.priority}".replace("--", "-minus-")
            if name not in cluster.priority_classes:
                given = objects.PriorityClass(objects.ObjectMeta(name=name), workload.priority)
                self.cycles.apply(ObjectSeen("PriorityClass", given))
        self.gangs.submit(workload, name, cluster.priority_of(name))

    # --------------------------------------------------------------------------------------------------------- time

    def run(self, load: Iterable[Arrival] = (), until: float = math.inf) -> None:
        """Run until no event is left, or the next event is later than `until`.

        Workloads that then remain in `gangs` never fit, or run for ever. Raises SimulationError.
        """
        for _ in self.instants(load, until):
            pass

    def instants(self, load: Iterable[Arrival] = (), until: float = math.inf) -> Iterator[float]:
        """Run like `run`, but yield each virtual instant after its decisions, to show progress or to stop early."""
        arrivals = iter(load)
        arrival = next(arrivals, None)
        while True:
            times = [self.agenda.next, arrival.at if arrival is not None else math.inf, self._wake_at()]
            time = min(times)
            if time == math.inf or time > until:
                return
            if arrival is not None and arrival.at < self.now:  # raises PastEventError, which names the input
                self.agenda.at(arrival.at, Rank.ARRIVAL, partial(self.carry_out, arrival.item), f"input {arrival.item}")
            self.agenda.advance(max(time, self.now))
            while arrival is not None and arrival.at <= self.now:
                rank = Rank.ARRIVAL if isinstance(arrival.item, Workload | Adopted) else Rank.CHANGE
                self.agenda.at(arrival.at, rank, partial(self.carry_out, arrival.item), f"input {arrival.item}")
                arrival = next(arrivals, None)
            self.agenda.run_due()
            if self.cycles.is_wanted(self.now):
                self._cycle()
            yield self.now

    def _wake_at(self) -> float:
        """Return the time of the next cycle if no event comes before; infinity if no cycle is needed."""
        if self.cycles.is_wanted(self.now):
            return self.now
        return math.inf if self.cycles.wake_at is None else self.cycles.wake_at

    def _cycle(self) -> None:
        decisions = self.cycles.run(self.now)
        self._emit(outcomes.Cycle(self.now, self.cycles.number, decisions))
        for bind in decisions.binds:
            self.gangs.bind(bind)
        for eviction in decisions.evictions:
            self.gangs.evict(eviction)
        for job, phase in decisions.phases.items():
            self.gangs.set_phase(job, phase)
        self._emit_reasons(decisions)
        self.cycles.confirm(self.now)

    def _emit_reasons(self, decisions: Decisions) -> None:
        """Emit the changed reasons of waiting jobs."""
        known, refusals = self._refusals, decisions.refusals
        for job in sorted(self.cycles.considered):
            before, refusal = known.get(job), refusals.get(job)
            if refusal is None:
                known.pop(job, None)
            else:
                known[job] = refusal
            if before is not refusal and before != refusal:
                self._emit(outcomes.Waits(self.now, job, refusal))
        if len(known) > len(refusals):  # a job that waited was deleted
            for job in sorted(known.keys() - refusals.keys()):
                self._emit(outcomes.Waits(self.now, job, None))
                del known[job]
