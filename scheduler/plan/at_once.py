"""Compute the immediate effects: run cycles on the state until it settles, while no work ends by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..model.cluster import Cluster
from ..policy.model import Policy
from ..reasons import Refusal, render_refusal, render_victim
from ..simulate.present import ENDLESS, Present, begin
from ..simulation import Settings, Simulation, SimulationError
from ..simulation import outcomes as happened
from ..state import State
from .answer import AtOnce, Eviction, Refused, Start, World
from .processes import process_pool

LARGE = 5_000
"""Number of pods from which the two worlds run in a process each."""
HORIZON = 600.0
"""Seconds of virtual time in which a state has to settle; reservations and waits of the policy end within them."""


class _Watcher:
    """Collects the evictions, starts and waits of one world."""

    def __init__(self, state: State) -> None:
        self._queues = {key: group.spec.queue or "default" for key, group in state.objects["PodGroup"].items()}
        self._nodes = {key: pod.spec.node_name for key, pod in state.objects["Pod"].items()}
        self.has_begun = False
        self.evicted: dict[str, Eviction] = {}
        self.placed: dict[str, dict[str, str]] = {}
        self.waits: dict[str, Refusal] = {}
        self.cycles = 0

    def on_outcome(self, outcome: Any) -> None:
        if not self.has_begun:
            return
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

    def _evict(self, outcome: happened.Evicted) -> None:
        why, node = outcome.reason, self._nodes.get(outcome.pod, "")
        self.placed.get(outcome.job, {}).pop(outcome.pod, None)
        if outcome.pod not in self.evicted:
            self.evicted[outcome.pod] = Eviction(
                outcome.pod, outcome.job, self._queues.get(outcome.job, ""), node, why.preemptor,
                why.preemptor_queue, why.action, render_victim(why),
            )  # fmt: skip
        self.evicted[outcome.pod].runs_again = False

    def result(self, problem: str) -> World:
        starts = [
            Start(job, self._queues.get(job, ""), len(pods), [node for _, node in sorted(pods.items())])
            for job, pods in sorted(self.placed.items())
            if pods
        ]
        waiting = {job: render_refusal(refusal) for job, refusal in sorted(self.waits.items())}
        return World(list(self.evicted.values()), starts, waiting, self.cycles, problem)


def settle(state: State, policy: Policy, settings: Settings | None = None) -> tuple[World, Present]:
    """Run one world until it settles."""
    watcher = _Watcher(state)
    simulation = Simulation(
        policy,
        emit=watcher.on_outcome,
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
    now: tuple[State, Policy], proposed: tuple[State, Policy], settings: Settings
) -> tuple[tuple[World, Present], tuple[World, Present]]:
    """Run both worlds, each in a process of its own if the state is large."""
    if len(now[0].objects["Pod"]) < LARGE:
        return settle(*now, settings), settle(*proposed, settings)
    with process_pool(1) as pool:
        other = pool.submit(settle, *proposed, settings)
        return settle(*now, settings), other.result()


def compare(now: World, proposed: World, queues: Mapping[str, str]) -> AtOnce:
    """Compare the two worlds: the effects of the change."""
    before, after = ({eviction.pod: eviction for eviction in world.evictions} for world in (now, proposed))
    victims = {eviction.job for eviction in proposed.evictions}
    started = {start.job: start.pods for start in now.starts}
    waits = {job: why for job, why in proposed.waiting.items() if job not in now.waiting and job not in victims}
    for job in started.keys() - {start.job for start in proposed.starts} - waits.keys() - victims:
        waits[job] = proposed.waiting.get(job) or f"no cycle considers it; is there a queue {queues.get(job, '')}?"
    refused = [
        Refused(job, queues.get(job, ""), why, "starts" if job in started else "runs")
        for job, why in sorted(waits.items())
    ]
    return AtOnce(
        now,
        proposed,
        [eviction for pod, eviction in after.items() if pod not in before],
        [eviction for pod, eviction in before.items() if pod not in after],
        [start for start in proposed.starts if start.pods > started.get(start.job, 0)],
        refused,
    )
