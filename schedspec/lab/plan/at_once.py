"""Compute the immediate effects: run cycles on the state until it settles, while no work ends by itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import msgspec

from ...scheduler.model import resources
from ...scheduler.model.cluster import Cluster
from ...scheduler.policy.model import Policy
from ...scheduler.reasons import Refusal, render_refusal, render_victim
from ...schedulers.pdeathsig import end_with_parent
from ...virtual import Settings, Simulation, SimulationError
from ...virtual import outcomes as happened
from ...virtual.state import State
from ..simulate.present import ENDLESS, Present, begin
from .answer import SUBMITTED, AtOnce, NewlyWaiting, PlannedEviction, PlannedWorld, QueueAtOnce, Start

LARGE = 5_000
"""Number of pods from which the two worlds run in a process each."""
_ROUNDING = 1e-6
HORIZON = 600.0
"""Seconds of virtual time in which a state has to settle; reservations and waits of the policy end within them."""


class _OutcomeReader:
    """Collects the evictions, starts and waits of one world."""

    def __init__(self, state: State, resource: str) -> None:
        self._resource, self._unit = resource, resources.unit_of(resource)
        self._each: dict[str, tuple[str, float]] = {}
        """Job → its queue, and the amount that each of its pods requests."""
        self._held: dict[str, float] = {}
        self._deserved: dict[str, float] = {}
        self._queues = {key: group.spec.queue or "default" for key, group in state.objects["PodGroup"].items()}
        self._nodes = {key: pod.spec.node_name for key, pod in state.objects["Pod"].items()}
        self.has_begun = False
        self.evicted: dict[str, PlannedEviction] = {}
        self.placed: dict[str, dict[str, str]] = {}
        self.waits: dict[str, Refusal] = {}
        self.cycles = 0

    def on_outcome(self, outcome: Any) -> None:
        match outcome:
            case happened.Submitted():
                amount = resources.parse(dict(outcome.requests)).get(self._resource, 0) / self._unit
                self._each[outcome.job] = outcome.queue, amount
            case happened.Placed():
                self._hold(outcome.job, 1)
            case happened.Released():
                self._hold(outcome.job, -1)
        if self.has_begun:
            self._on_decision(outcome)

    def _hold(self, job: str, pods: int) -> None:
        queue, amount = self._each.get(job, ("", 0.0))
        self._held[queue] = self._held.get(queue, 0.0) + pods * amount

    def _on_decision(self, outcome: Any) -> None:
        match outcome:
            case happened.Evicted():
                self._evict(outcome)
            case happened.Placed():
                self._nodes[outcome.pod] = outcome.node
                if outcome.pod in self.evicted:
                    self.evicted[outcome.pod].runs_again = True
                else:
                    self.placed.setdefault(outcome.job, {})[outcome.pod] = outcome.node
            case happened.Waits():
                if outcome.refusal is None:
                    self.waits.pop(outcome.job, None)
                else:
                    self.waits[outcome.job] = outcome.refusal
            case happened.Cycle():
                self.cycles = outcome.number
                self._deserved = {
                    queue: numbers.deserved[self._resource] / self._unit
                    for queue, numbers in outcome.decisions.queues.items()
                    if self._resource in numbers.deserved
                }

    def _evict(self, outcome: happened.Evicted) -> None:
        why, node = outcome.reason, self._nodes.get(outcome.pod, "")
        self.placed.get(outcome.job, {}).pop(outcome.pod, None)
        if outcome.pod not in self.evicted:
            self.evicted[outcome.pod] = PlannedEviction(
                outcome.pod, outcome.job, self._queues.get(outcome.job, ""), node, why.preemptor,
                why.preemptor_queue, why.action, render_victim(why),
            )  # fmt: skip
        self.evicted[outcome.pod].runs_again = False

    def result(self, problem: str) -> PlannedWorld:
        starts = [
            Start(job, self._queues.get(job, ""), len(pods), [node for _, node in sorted(pods.items())])
            for job, pods in sorted(self.placed.items())
            if pods
        ]
        waiting = {job: render_refusal(refusal) for job, refusal in sorted(self.waits.items())}
        held = {queue: amount for queue, amount in sorted(self._held.items()) if amount}
        return PlannedWorld(list(self.evicted.values()), starts, waiting, held, self._deserved, self.cycles, problem)


def settle(
    state: State,
    policy: Policy,
    resource: str,
    settings: Settings | None = None,
    *,
    also: Callable[[Any], None] = lambda _outcome: None,
) -> tuple[PlannedWorld, Present]:
    """Run one world until it settles; amounts are of `resource`, and `also` receives every outcome."""
    watcher = _OutcomeReader(state, resource)

    def on_outcome(outcome: Any) -> None:
        watcher.on_outcome(outcome)
        also(outcome)

    simulation = Simulation(
        policy,
        emit=on_outcome,
        settings=settings,
        start=state.taken,
        cluster=Cluster(state.scheduler_names, state.node_selector),
    )
    present = begin(simulation, state, ENDLESS)
    watcher.has_begun = True
    problem = ""
    try:
        simulation.run(until=state.taken + HORIZON)
    except SimulationError as error:
        problem = str(error)
    return watcher.result(problem), present


def settle_both(
    now: tuple[State, Policy], proposed: tuple[State, Policy], resource: str, settings: Settings
) -> tuple[tuple[PlannedWorld, Present], tuple[PlannedWorld, Present]]:
    """Run both worlds, each in a process of its own if the state is large."""
    if len(now[0].objects["Pod"]) < LARGE:
        return settle(*now, resource, settings), settle(*proposed, resource, settings)
    with ProcessPoolExecutor(1, initializer=end_with_parent) as pool:
        other = pool.submit(settle, *proposed, resource, settings)
        return settle(*now, resource, settings), other.result()


def compare(
    now: PlannedWorld, proposed: PlannedWorld, queues: Mapping[str, str], submitted: Collection[str] = ()
) -> AtOnce:
    before, after = ({eviction.pod: eviction for eviction in world.evictions} for world in (now, proposed))
    victims = {eviction.job for eviction in proposed.evictions}
    started = {start.job: start.pods for start in now.starts}
    waits = {job: why for job, why in proposed.waiting.items() if job not in now.waiting and job not in victims}
    for job in started.keys() - {start.job for start in proposed.starts} - waits.keys() - victims:
        waits[job] = proposed.waiting.get(job) or f"no cycle considers it; is there a queue {queues.get(job, '')}?"
    refused = [
        NewlyWaiting(
            job, queues.get(job, ""), why, SUBMITTED if job in submitted else "starts" if job in started else "runs"
        )
        for job, why in sorted(waits.items())
    ]
    evictions = [eviction for pod, eviction in after.items() if pod not in before]
    starts = [start for start in proposed.starts if start.pods > started.get(start.job, 0)]
    spared = [eviction for pod, eviction in before.items() if pod not in after]
    return AtOnce(now, proposed, evictions, spared, starts, refused, _of_queues(now, proposed, evictions, starts))


def any_of(worlds: Sequence[PlannedWorld]) -> PlannedWorld:
    """Return a world with what happens in any of several runs: a change does not cause it."""
    first = worlds[0]
    if len(worlds) == 1:
        return first
    evictions = {eviction.pod: eviction for world in worlds for eviction in world.evictions}
    starts: dict[str, Start] = {}
    for start in (start for world in worlds for start in world.starts):
        if start.job not in starts or starts[start.job].pods < start.pods:
            starts[start.job] = start
    waiting = {job: why for world in worlds for job, why in world.waiting.items()}
    problem = next((world.problem for world in worlds if world.problem), "")
    return PlannedWorld(
        [*evictions.values()], [*starts.values()], waiting, first.held, first.deserved, first.cycles, problem
    )


def merged(runs: Sequence[AtOnce]) -> AtOnce:
    """Return the effects of several runs as one answer, which says of each in how many runs it was seen.

    What the change prevents counts only if no run with the change shows it.
    """
    first = runs[0]
    if len(runs) == 1:
        return first
    evictions: dict[str, PlannedEviction] = {}
    starts: dict[str, Start] = {}
    refused: dict[str, NewlyWaiting] = {}
    for run in runs:
        for eviction in run.evictions:
            known = evictions.setdefault(eviction.pod, msgspec.structs.replace(eviction, runs=0))
            known.runs += 1
        for start in run.starts:
            begun = starts.setdefault(start.job, msgspec.structs.replace(start, runs=0))
            begun.runs += 1
        refused |= {one.job: one for one in run.refused}
    spared = [one for one in first.spared if all(one.pod in {it.pod for it in run.spared} for run in runs)]
    proposed = any_of([run.proposed for run in runs])
    often = lambda one: -one.runs  # noqa: E731
    return AtOnce(
        first.now, proposed, sorted(evictions.values(), key=often), spared, sorted(starts.values(), key=often),
        [*refused.values()], first.queues,
    )  # fmt: skip


def _of_queues(
    now: PlannedWorld, proposed: PlannedWorld, evictions: list[PlannedEviction], starts: list[Start]
) -> list[QueueAtOnce]:
    """Return the queues that hold another amount because of the change, those that lose most first."""
    found = [
        QueueAtOnce(
            queue,
            now.held.get(queue, 0.0),
            proposed.held.get(queue, 0.0),
            proposed.deserved.get(queue),
            len({eviction.job for eviction in evictions if eviction.queue == queue}),
            len({start.job for start in starts if start.queue == queue}),
        )
        for queue in sorted(now.held.keys() | proposed.held.keys())
    ]
    changed = [row for row in found if abs(row.proposed - row.now) > _ROUNDING]
    return sorted(changed, key=lambda row: (row.proposed - row.now, row.queue))
