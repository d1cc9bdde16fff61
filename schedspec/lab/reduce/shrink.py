"""Delta debugging: remove jobs, queues and nodes from a case while it still shows the incident.

A removal is tried in two ways. *Excised*: the job's amounts are also subtracted from its nodes and its queues, so that
free capacity and head-room stay the same. *Plain*: only the object is removed.

Sentences cannot begin with running work: `variants` replaces it by steps that submit and place it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...scheduler.policy.loader import PolicyError
from . import case as cases

Test = Callable[[cases.Case], bool]
Removal = Callable[[cases.Case, Sequence[Any]], cases.Case]


class OutOfBudgetError(Exception):
    """The budget of candidates or of time is used up."""


class Tester:
    """Judges candidates, each once, and keeps the smallest case that shows the incident."""

    def __init__(self, test: Test, case: cases.Case, is_over: Callable[[], bool]) -> None:
        self._test, self._is_over = test, is_over
        self._judged: set[cases.Case] = set()
        self.best = case
        self.found = [case]
        """Every best case so far, the smallest last."""
        self.tried = 0

    def propose(self, candidate: cases.Case) -> bool:
        """Make the candidate the best case if it shows the incident. Raises OutOfBudgetError."""
        if candidate == self.best or candidate in self._judged or _is_empty(candidate, self.best):
            return False
        if self._is_over():
            raise OutOfBudgetError
        self.tried += 1
        self._judged.add(candidate)
        try:
            if not self._test(candidate):
                return False
        except PolicyError:  # a policy that was cut down too far
            return False
        self.best = candidate
        self.found.append(candidate)
        return True


def _is_empty(candidate: cases.Case, before: cases.Case) -> bool:
    """Whether nothing could run any more: no node is left, cards have no memory, or a capability has become zero.

    A case also counts as empty if it names a card model that no node has any more.
    """
    if (before.all_nodes and not candidate.all_nodes) or cases.missing_models(candidate) - cases.missing_models(before):
        return True
    shares = (dict(node.has) for node in candidate.all_nodes)
    if any(has.get(cases.CARDS) and has.get(cases.CARD_MEMORY, 0) < has[cases.CARDS] for has in shares):
        return True
    allowed = {(queue.name, name) for queue in before.queues for name, amount in queue.capability if amount}
    return any(
        (queue.name, name) in allowed for queue in candidate.queues for name, amount in queue.capability if not amount
    )


def remove_objects(tester: Tester) -> None:
    """Remove jobs, queues, classes and nodes, in this order."""
    jobs = [job.name for job in tester.best.jobs if job.name != tester.best.subject]
    remove_parts(tester, jobs, (excise, _drop_jobs))
    tester.propose(_without_unused(tester.best))
    remove_parts(tester, [queue.name for queue in tester.best.queues], (_drop_queues,))
    remove_parts(tester, [node.name for node in tester.best.all_nodes], (_drop_nodes,))
    _remove_steps(tester)


def _remove_steps(tester: Tester) -> None:
    """Remove steps. Each step becomes an object of its own, so that one of several equal steps can be removed."""
    tester.best = replace(tester.best, steps=tuple(replace(step) for step in tester.best.steps))
    remove_parts(tester, tester.best.steps, (_drop_steps,))


def remove_parts(tester: Tester, parts: Sequence[Any], removals: Iterable[Removal]) -> None:
    """Remove as many parts as possible: all at once, then halves, down to single ones."""
    ways, size, left = tuple(removals), len(parts), list(parts)
    while size and left:
        at = len(left)
        while at > 0:
            chunk = left[max(at - size, 0) : at]
            if any(tester.propose(way(tester.best, chunk)) for way in ways):
                del left[max(at - size, 0) : at]
            at -= size
        size = size // 2 if size > 1 else 0


def excise(case: cases.Case, jobs: Sequence[str]) -> cases.Case:
    """Remove jobs, and subtract their amounts from their nodes and queues."""
    removed = {job.name: job for job in case.jobs if job.name in set(jobs)}
    used: dict[str, Counter[str]] = {}
    held: dict[str, Counter[str]] = {}
    for work in removed.values():
        above = cases.ancestors(case, work.queue) if work.nodes else ()
        for name, amount in work.requests:
            for on in work.nodes:
                used.setdefault(on, Counter())[name] += amount
            for queue in above:
                held.setdefault(queue, Counter())[name] += amount * len(work.nodes)
    nodes: dict[str, cases.CaseNode | None] = {
        node.name: replace(node, has=cases.minus(node.has, tuple(used[node.name].items())))
        for node in case.nodes
        if node.name in used
    }
    queues: dict[str, cases.CaseQueue | None] = {
        holder.name: _lowered(holder, tuple(held[holder.name].items())) for holder in case.queues if holder.name in held
    }
    return cases.map_work(cases.map_queues(cases.map_nodes(case, nodes), queues), dict.fromkeys(removed))


def _lowered(queue: cases.CaseQueue, held: tuple[tuple[str, int], ...]) -> cases.CaseQueue:
    return replace(
        queue,
        capability=cases.minus(queue.capability, held),
        deserved=cases.minus(queue.deserved, held),
        guarantee=cases.minus(queue.guarantee, held),
    )


def fewer_pods(case: cases.Case, work: cases.Work, pods: int) -> Iterable[cases.Case]:
    """Yield the case with fewer pods of a job: excised, and plain."""
    index = len(work.nodes) - max(work.pods - pods, 0) if work.pods == len(work.nodes) else min(len(work.nodes), pods)
    kept = work.nodes[: max(index, 0)]
    small = replace(work, pods=pods, minimum=min(work.minimum, pods), nodes=kept)
    if removed := work.nodes[len(kept) :]:
        part = replace(work, name=f"{work.name}-part", nodes=removed, pods=len(removed))
        yield excise(
            replace(cases.map_work(case, {work.name: small}), work=(*_replace_work(case, small), part)), [part.name]
        )
    yield cases.map_work(case, {work.name: small})


def _replace_work(case: cases.Case, work: cases.Work) -> tuple[cases.Work, ...]:
    return tuple(work if job.name == work.name else job for job in case.work)


def _drop_jobs(case: cases.Case, jobs: Sequence[str]) -> cases.Case:
    return cases.map_work(case, dict.fromkeys(jobs))


def _drop_queues(case: cases.Case, queues: Sequence[str]) -> cases.Case:
    """Remove queues with their jobs, except the subject's queue. Children of removed queues move up."""
    removed = set(queues) - {job.queue for job in case.jobs if job.name == case.subject}
    parents = {child.name: child.parent for child in case.queues}
    moved: dict[str, cases.CaseQueue | None] = {}
    for queue in case.queues:
        parent = queue.parent
        while parent in removed:
            parent = parents.get(parent, "")
        if queue.name in removed or parent != queue.parent:
            moved[queue.name] = None if queue.name in removed else replace(queue, parent=parent)
    return cases.map_queues(excise(case, [job.name for job in case.jobs if job.queue in removed]), moved)


def _drop_nodes(case: cases.Case, nodes: Sequence[str]) -> cases.Case:
    return cases.map_nodes(case, dict.fromkeys(nodes))


def _drop_steps(case: cases.Case, steps: Sequence[cases.Step]) -> cases.Case:
    removed = {id(step) for step in steps}
    return replace(case, steps=tuple(step for step in case.steps if id(step) not in removed))


def _without_unused(case: cases.Case) -> cases.Case:
    """Remove queues without work and children, and unused priority classes."""
    used = set().union(*(cases.ancestors(case, job.queue) for job in case.jobs))
    classes = {job.priority for job in case.jobs}
    without = cases.map_queues(case, dict.fromkeys(queue.name for queue in case.queues if queue.name not in used))
    return replace(
        without, classes=tuple(priority_class for priority_class in case.classes if priority_class.name in classes)
    )


def variants(case: cases.Case) -> Iterable[cases.Case]:
    """Return cases that place the work on its nodes by steps: all at once, job by job, and node by node."""
    return dict.fromkeys(_variants(case))  # with one running job, several variants are equal


def _variants(case: cases.Case) -> Iterator[cases.Case]:
    running = sorted((job for job in case.work if job.nodes), key=lambda job: (job.created, job.name))
    waiting = sorted((job for job in case.work if not job.nodes), key=lambda job: (job.created, job.name))
    bare = replace(case, work=())
    last = _last(waiting, case.subject)
    together: list[cases.Step] = [cases.SubmitStep(_fresh(waiting))] if waiting else []
    for first in (
        [cases.SubmitStep(_fresh(running))] if running else [],
        [cases.SubmitStep(_fresh([job])) for job in running],
    ):
        yield replace(bare, steps=(*first, *together))
        yield replace(bare, steps=(*first, *last))
    for only_running in (False, True):  # node by node: with all pods of a job, or only with those that run
        yield replace(bare, nodes=(), steps=(*_node_by_node(case, running, only_running), *last))


def _fresh(work: list[cases.Work]) -> tuple[cases.Work, ...]:
    return tuple(replace(job, nodes=(), created=0) for job in work)


def _last(waiting: list[cases.Work], subject: str) -> list[cases.Step]:
    """Return steps that submit the waiting work: one step, or a step for each job if the subject is among them."""
    groups = [waiting] if all(job.name != subject for job in waiting) else [[job] for job in waiting]
    return [cases.SubmitStep(_fresh(group)) for group in groups if group]


def _node_by_node(case: cases.Case, running: list[cases.Work], only_running: bool) -> list[cases.Step]:
    """Return steps in which the nodes join one by one, each followed by the jobs whose nodes have all joined."""
    steps: list[cases.Step] = []
    placed: set[str] = set()
    joined: set[str] = set()
    for node in case.nodes:
        steps.append(cases.JoinStep((node,)))
        joined.add(node.name)
        fit = [job for job in running if job.name not in placed and joined.issuperset(job.nodes)]
        for job in fit:
            part = replace(job, pods=len(job.nodes), minimum=min(job.minimum, len(job.nodes)))
            steps.append(cases.SubmitStep(_fresh([part if only_running else job])))
        placed.update(job.name for job in fit)
    return steps


def merge_steps(tester: Tester) -> None:
    """Merge neighbouring steps of one kind, and add nodes at the beginning, where the incident stays the same."""
    early = [node for step in tester.best.steps if isinstance(step, cases.JoinStep) for node in step.nodes]
    if early:
        rest = tuple(step for step in tester.best.steps if not isinstance(step, cases.JoinStep))
        tester.propose(replace(tester.best, nodes=(*tester.best.nodes, *early), steps=rest))
    if isinstance(next(iter(tester.best.steps), None), cases.JoinStep):
        first = tester.best.steps[0]
        assert isinstance(first, cases.JoinStep)
        tester.propose(replace(tester.best, nodes=(*tester.best.nodes, *first.nodes), steps=tester.best.steps[1:]))
    number = 0
    while number + 1 < len(tester.best.steps):
        one, other = tester.best.steps[number : number + 2]
        if not (isinstance(one, cases.SubmitStep) and isinstance(other, cases.SubmitStep)) or not tester.propose(
            replace(
                tester.best,
                steps=(
                    *tester.best.steps[:number],
                    cases.SubmitStep((*one.work, *other.work)),
                    *tester.best.steps[number + 2 :],
                ),
            )
        ):
            number += 1
