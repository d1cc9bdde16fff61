"""Replace running work by steps that submit and place it, because sentences cannot begin with running work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from .case import Case, Join, Step, Submit, Work
from .shrink import Tester


def variants(case: Case) -> Iterable[Case]:
    """Return cases that place the work on its nodes by steps: all at once, job by job, and node by node."""
    return dict.fromkeys(_variants(case))  # with one running job, several variants are equal


def _variants(case: Case) -> Iterator[Case]:
    running = sorted((job for job in case.work if job.nodes), key=lambda job: (job.created, job.name))
    waiting = sorted((job for job in case.work if not job.nodes), key=lambda job: (job.created, job.name))
    bare = replace(case, work=())
    last = _last(waiting, case.subject)
    together: list[Step] = [Submit(_fresh(waiting))] if waiting else []
    for first in ([Submit(_fresh(running))] if running else [], [Submit(_fresh([job])) for job in running]):
        yield replace(bare, steps=(*first, *together))
        yield replace(bare, steps=(*first, *last))
    for only_running in (False, True):  # node by node: with all pods of a job, or only with those that run
        yield replace(bare, nodes=(), steps=(*_node_by_node(case, running, only_running), *last))


def _fresh(work: list[Work]) -> tuple[Work, ...]:
    return tuple(replace(job, nodes=(), created=0) for job in work)


def _last(waiting: list[Work], subject: str) -> list[Step]:
    """Return steps that submit the waiting work: one step, or a step for each job if the subject is among them."""
    groups = [waiting] if all(job.name != subject for job in waiting) else [[job] for job in waiting]
    return [Submit(_fresh(group)) for group in groups if group]


def _node_by_node(case: Case, running: list[Work], only_running: bool) -> list[Step]:
    """Return steps in which the nodes join one by one, each followed by the jobs whose nodes have all joined."""
    steps: list[Step] = []
    placed: set[str] = set()
    joined: set[str] = set()
    for node in case.nodes:
        steps.append(Join((node,)))
        joined.add(node.name)
        fit = [job for job in running if job.name not in placed and joined.issuperset(job.nodes)]
        for job in fit:
            part = replace(job, pods=len(job.nodes), minimum=min(job.minimum, len(job.nodes)))
            steps.append(Submit(_fresh([part if only_running else job])))
        placed.update(job.name for job in fit)
    return steps


def merge_steps(tester: Tester) -> None:
    """Merge neighbouring steps of one kind, and add nodes at the beginning, where the incident stays the same."""
    early = [node for step in tester.best.steps if isinstance(step, Join) for node in step.nodes]
    if early:
        rest = tuple(step for step in tester.best.steps if not isinstance(step, Join))
        tester.propose(replace(tester.best, nodes=(*tester.best.nodes, *early), steps=rest))
    if isinstance(next(iter(tester.best.steps), None), Join):
        first = tester.best.steps[0]
        assert isinstance(first, Join)
        tester.propose(replace(tester.best, nodes=(*tester.best.nodes, *first.nodes), steps=tester.best.steps[1:]))
    number = 0
    while number + 1 < len(tester.best.steps):
        one, other = tester.best.steps[number : number + 2]
        if not (isinstance(one, Submit) and isinstance(other, Submit)) or not tester.propose(
            replace(
                tester.best,
                steps=(
                    *tester.best.steps[:number],
                    Submit((*one.work, *other.work)),
                    *tester.best.steps[number + 2 :],
                ),
            )
        ):
            number += 1
