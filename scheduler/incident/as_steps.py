"""Replace running work by steps that submit and place it, because sentences cannot begin with running work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .case import Case, Join, Step, Submit, Work
from .shrink import Tester


def variants(case: Case) -> Iterator[Case]:
    """Yield cases that place the work on its nodes by steps: all at once, job by job, and node by node."""
    running = sorted((it for it in case.work if it.nodes), key=lambda it: (it.created, it.name))
    waiting = sorted((it for it in case.work if not it.nodes), key=lambda it: (it.created, it.name))
    bare = replace(case, work=())
    last = _last(waiting, case.subject)
    together: list[Step] = [Submit(_fresh(waiting))] if waiting else []
    for first in ([Submit(_fresh(running))] if running else [], [Submit(_fresh([it])) for it in running]):
        yield replace(bare, steps=(*first, *together))
        yield replace(bare, steps=(*first, *last))
    for whole in (False, True):  # with the nodes in the order in which they are filled, or with whole jobs only
        yield replace(bare, nodes=(), steps=(*_node_by_node(case, running, whole), *last))


def _fresh(work: list[Work]) -> tuple[Work, ...]:
    return tuple(replace(it, nodes=(), created=0) for it in work)


def _last(waiting: list[Work], subject: str) -> list[Step]:
    """Submit the waiting work, in one step if the subject is not part of it."""
    groups = [waiting] if all(it.name != subject for it in waiting) else [[it] for it in waiting]
    return [Submit(_fresh(it)) for it in groups if it]


def _node_by_node(case: Case, running: list[Work], whole: bool) -> list[Step]:
    """Let each node join and be filled before the next one joins."""
    steps: list[Step] = []
    placed: set[str] = set()
    there: set[str] = set()
    for node in case.nodes:
        steps.append(Join((node,)))
        there.add(node.name)
        fit = [it for it in running if it.name not in placed and there.issuperset(it.nodes)]
        for it in fit:
            pods = replace(it, pods=len(it.nodes), minimum=min(it.minimum, len(it.nodes))) if whole else it
            steps.append(Submit(_fresh([pods])))
        placed.update(it.name for it in fit)
    return steps


def merge_steps(tester: Tester) -> None:
    """Merge neighbouring steps of one kind, and add nodes at the beginning, where the incident stays the same."""
    early = [it for step in tester.best.steps if isinstance(step, Join) for it in step.nodes]
    if early:
        rest = tuple(it for it in tester.best.steps if not isinstance(it, Join))
        tester.take(replace(tester.best, nodes=(*tester.best.nodes, *early), steps=rest))
    if isinstance(next(iter(tester.best.steps), None), Join):
        first = tester.best.steps[0]
        assert isinstance(first, Join)
        tester.take(replace(tester.best, nodes=(*tester.best.nodes, *first.nodes), steps=tester.best.steps[1:]))
    number = 0
    while number + 1 < len(tester.best.steps):
        one, other = tester.best.steps[number : number + 2]
        if not (isinstance(one, Submit) and isinstance(other, Submit)) or not tester.take(
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
