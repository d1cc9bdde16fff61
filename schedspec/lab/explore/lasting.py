"""Promise `lasting`: evicted pods do not return to their nodes before something changes from outside.

If a victim returns, its eviction achieved nothing. The pods of a gang count only if enough of them return to their own
nodes for the gang to run: a pod may have been evicted only because another pod of its gang was. The promise is silent:

* if the job evicts other pods for its return, or its preemptor is evicted in turn;
* on a node from which other jobs were evicted in the same step for other preemptors;
* if pods share cards: a pod may return to its node on another card;
* under proportion: a queue deserves less until its evicted pods are created again, because shares follow requests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..reduce.case import CARD_MEMORY, Case
from ..reduce.play import Happened, Story
from .timeline import Breach, moments


@dataclass(slots=True)
class _Loss:
    """The evictions of one job in one step, and the nodes to which its pods returned."""

    nodes: Counter[str] = field(default_factory=Counter)
    pods: set[str] = field(default_factory=set)
    causes: set[str] = field(default_factory=set)
    kept: int = 0
    """Number of its pods that hold capacity after the last eviction."""
    freed: set[str] = field(default_factory=set)
    """The nodes on which other jobs lost pods in the same step for other preemptors."""
    back: Counter[str] = field(default_factory=Counter)
    """The nodes on which its pods were placed after they had been evicted from there."""


def evictions_that_do_not_last(case: Case, story: Story) -> Iterator[Breach]:
    """Yield a breach for each job whose evicted pods return to the nodes that they were evicted from."""
    lost: dict[tuple[int, str], _Loss] = {}
    for moment in moments(case, story) if story.evictions else ():
        if moment.policy.plugin("proportion") is not None:
            continue
        for act in moment.acts:
            loss = lost.get((act.step, act.job))
            if act.what is Happened.EVICTED and act.reason is not None and act.pod in moment.held:
                node = moment.held[act.pod].node
                cause = act.reason.preemptor.rpartition("/")[2]
                loss = lost.setdefault((act.step, act.job), _Loss())
                for (step, name), other in lost.items():
                    if step == act.step and name != act.job and cause not in other.causes:
                        other.freed.add(node)
                        loss.freed.update({node} & other.nodes.keys())
                loss.pods.add(act.pod)
                loss.nodes[node] += 1
                loss.causes.add(cause)
                own = {pod for pod, held in moment.held.items() if held.job.name == act.job}
                loss.kept = len(own - loss.pods - moment.leaving)
            elif act.what is Happened.PLACED and loss is not None and loss.back[act.node] < loss.nodes[act.node]:
                loss.back[act.node] += 1
    jobs = {work.name: work for work in case.jobs}
    for (step, name), loss in lost.items():
        back = sum(count for node, count in loss.back.items() if node not in loss.freed)
        preemptors = {cause for (at, _), other in lost.items() if at == step for cause in other.causes}
        is_settled = name not in preemptors and not any((step, cause) in lost for cause in loss.causes)
        if CARD_MEMORY in dict(jobs[name].requests):
            continue
        if back and back + loss.kept >= jobs[name].minimum and is_settled:
            causes = ", ".join(sorted(loss.causes))
            yield Breach("returns", f"{back} pods of {name} were evicted for {causes}, and return to their nodes", name)
