"""Replay the acts of a play to find what nodes, queues and jobs held right before each moment.

All sums are computed from the case and the acts, so that no promise depends on the scheduler's sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from ...scheduler.policy.model import Policy
from ..reduce import case as cases
from ..reduce.play import Act, Happened, Story, policy_of

Sums = dict[str, int]


class RuleViolation(NamedTuple):
    """A rule that an act breaks."""

    rule: str
    text: str
    job: str
    """The job that should have been treated differently."""


@dataclass(frozen=True, slots=True)
class HeldPod:
    job: cases.Work
    node: str
    since: float


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant with its acts, and the cluster right before them."""

    at: float
    step: int
    policy: Policy
    queues: Mapping[str, cases.CaseQueue]
    nodes: Mapping[str, cases.Amounts]
    held: Mapping[str, HeldPod]
    """The pods that hold capacity, by name."""
    leaving: frozenset[str]
    """The pods in `held` that were evicted in an earlier moment."""
    acts: tuple[Act, ...]
    served: frozenset[str] = frozenset()
    """The jobs for which pods were evicted, at this moment too; capacity is reserved for them while they wait."""

    @property
    def total(self) -> Sums:
        return sum_of(self.nodes.values())

    def acts_of(self, what: Happened) -> Iterator[Act]:
        return (act for act in self.acts if act.what is what)

    def least_held(self, queue: str) -> Sums:
        """Return the least that a queue holds during the moment: without pods that are evicted, removed or placed."""
        leaving = {act.pod for act in self.acts if act.what in (Happened.EVICTED, Happened.RELEASED)} | self.leaving
        kept = (held.job for pod, held in self.held.items() if pod not in leaving)
        return sum_of(work.requests for work in kept if work.queue == queue)

    def most_held(self, queue: str, jobs: Mapping[str, cases.Work]) -> Sums:
        """Return the most that a queue holds during the moment: with the placed pods, before any pod is removed.

        Capacity that is reserved for a job for which pods were evicted counts as held.
        """
        kept = [held.job for pod, held in self.held.items() if pod not in self.leaving]
        kept += [jobs[act.job] for act in self.acts_of(Happened.PLACED) if act.job in jobs]
        for job in (jobs[name] for name in sorted(self.served) if name in jobs):
            kept += [job] * (job.pods - sum(work is job for work in kept))
        return sum_of(work.requests for work in kept if work.queue == queue)


def moments(case: cases.Case, story: Story) -> Iterator[Moment]:
    """Yield the moments of a play in order."""
    jobs = {work.name: work for work in case.jobs}
    held: dict[str, HeldPod] = {}
    leaving: set[str] = set()
    served: set[str] = set()
    for (step, at), acts in groupby(story.acts, key=lambda act: (act.step, act.at)):
        happened = tuple(acts)
        steps = case.steps[:step]
        policy = policy_of([case.policy, *(one.text for one in steps if isinstance(one, cases.UseStep))][-1])
        queues, nodes = queues_at(case, step), nodes_at(case, step)
        served |= {act.reason.preemptor.rpartition("/")[2] for act in happened if act.reason is not None}
        yield Moment(at, step, policy, queues, nodes, dict(held), frozenset(leaving), happened, frozenset(served))
        for act in happened:
            if act.what is Happened.PLACED and act.job in jobs:
                held[act.pod] = HeldPod(jobs[act.job], act.node, at)
            elif act.what is Happened.RELEASED:
                held.pop(act.pod, None)
                leaving.discard(act.pod)
            elif act.what is Happened.EVICTED:
                leaving.add(act.pod)
        placed = Counter(pod.job.name for pod in held.values())
        served = {name for name in served if name in jobs and placed[name] < jobs[name].pods}


def queues_at(case: cases.Case, step: int) -> dict[str, cases.CaseQueue]:
    found = {"default": cases.CaseQueue("default"), **{queue.name: queue for queue in case.queues}}
    return found | {one.queue.name: one.queue for one in case.steps[:step] if isinstance(one, cases.ChangeStep)}


def closed_at(case: cases.Case, step: int) -> set[str]:
    return {one.queue for one in case.steps[:step] if isinstance(one, cases.CloseStep)}


def nodes_at(case: cases.Case, step: int) -> dict[str, cases.Amounts]:
    """Return what the nodes have during a step, by name."""
    joined = (node for one in case.steps[:step] if isinstance(one, cases.JoinStep) for node in one.nodes)
    left = {one.node for one in case.steps[:step] if isinstance(one, cases.LeaveStep)}
    return {node.name: node.has for node in (*case.nodes, *joined) if node.name not in left}


def racks_at(case: cases.Case, step: int) -> dict[str, str]:
    """Return the rack of each node during a step, by the node's name; empty for a node without a rack."""
    present = nodes_at(case, step)
    return {node.name: node.rack for node in case.all_nodes if node.name in present}


def steps_of(case: cases.Case) -> dict[str, int]:
    """Return the number of the step that submits each job; 0 for work that exists at the beginning."""
    found = {work.name: 0 for work in case.work}
    for number, step in enumerate(case.steps, 1):
        found |= {work.name: number for work in step.work} if isinstance(step, cases.SubmitStep) else {}
    return found


def sum_of(given: Iterable[cases.Amounts]) -> Sums:
    total: Sums = {}
    for amount in given:
        add(total, amount)
    return total


def add(sums: Sums, amount: cases.Amounts, times: int = 1) -> None:
    """Add an amount to sums `times` times; a negative number subtracts it."""
    for name, value in amount:
        sums[name] = sums.get(name, 0) + value * times


def idle_of(nodes: Mapping[str, cases.Amounts], holding: Iterable[tuple[str, cases.Amounts]]) -> dict[str, Sums]:
    """Return what nodes have beyond what pods hold, by node; `holding`: the node of each pod, and what it holds."""
    idle: dict[str, Sums] = {name: dict(has) for name, has in nodes.items()}
    for node, requests in holding:
        if node in idle:
            add(idle[node], requests, -1)
    return idle


def slots(idle: Sums, requests: cases.Amounts) -> int:
    """Return how many pods with these requests fit; 0 for pods that request nothing."""
    return min((max(idle.get(name, 0), 0) // amount for name, amount in requests if amount), default=0)
