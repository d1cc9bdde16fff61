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
from .case import (
    CARD_MEMORY,
    CARDS,
    Case,
    CaseNode,
    CaseQueue,
    JoinStep,
    Step,
    SubmitStep,
    Work,
    ancestors,
    map_nodes,
    map_queues,
    map_work,
    minus,
    missing_models,
)

Test = Callable[[Case], bool]
Removal = Callable[[Case, Sequence[Any]], Case]


class OutOfBudgetError(Exception):
    """The budget of candidates or of time is used up."""


class Tester:
    """Judges candidates, each once, and keeps the smallest case that shows the incident."""

    def __init__(self, test: Test, case: Case, is_over: Callable[[], bool]) -> None:
        self._test, self._is_over = test, is_over
        self._judged: set[Case] = set()
        self.best = case
        self.found = [case]
        """Every best case so far, the smallest last."""
        self.tried = 0

    def propose(self, candidate: Case) -> bool:
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


def _is_empty(candidate: Case, before: Case) -> bool:
    """Whether nothing could run any more: no node is left, cards have no memory, or a capability has become zero.

    A case also counts as empty if it names a card model that no node has any more.
    """
    if (before.all_nodes and not candidate.all_nodes) or missing_models(candidate) - missing_models(before):
        return True
    shares = (dict(node.has) for node in candidate.all_nodes)
    if any(has.get(CARDS) and has.get(CARD_MEMORY, 0) < has[CARDS] for has in shares):
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


def excise(case: Case, jobs: Sequence[str]) -> Case:
    """Remove jobs, and subtract their amounts from their nodes and queues."""
    removed = {job.name: job for job in case.jobs if job.name in set(jobs)}
    used: dict[str, Counter[str]] = {}
    held: dict[str, Counter[str]] = {}
    for work in removed.values():
        above = ancestors(case, work.queue) if work.nodes else ()
        for name, amount in work.requests:
            for on in work.nodes:
                used.setdefault(on, Counter())[name] += amount
            for queue in above:
                held.setdefault(queue, Counter())[name] += amount * len(work.nodes)
    nodes: dict[str, CaseNode | None] = {
        node.name: replace(node, has=minus(node.has, tuple(used[node.name].items())))
        for node in case.nodes
        if node.name in used
    }
    queues: dict[str, CaseQueue | None] = {
        holder.name: _lowered(holder, tuple(held[holder.name].items())) for holder in case.queues if holder.name in held
    }
    return map_work(map_queues(map_nodes(case, nodes), queues), dict.fromkeys(removed))


def _lowered(queue: CaseQueue, held: tuple[tuple[str, int], ...]) -> CaseQueue:
    return replace(
        queue,
        capability=minus(queue.capability, held),
        deserved=minus(queue.deserved, held),
        guarantee=minus(queue.guarantee, held),
    )


def fewer_pods(case: Case, work: Work, pods: int) -> Iterable[Case]:
    """Yield the case with fewer pods of a job: excised, and plain."""
    index = len(work.nodes) - max(work.pods - pods, 0) if work.pods == len(work.nodes) else min(len(work.nodes), pods)
    kept = work.nodes[: max(index, 0)]
    small = replace(work, pods=pods, minimum=min(work.minimum, pods), nodes=kept)
    if removed := work.nodes[len(kept) :]:
        part = replace(work, name=f"{work.name}-part", nodes=removed, pods=len(removed))
        yield excise(replace(map_work(case, {work.name: small}), work=(*_replace_work(case, small), part)), [part.name])
    yield map_work(case, {work.name: small})


def _replace_work(case: Case, work: Work) -> tuple[Work, ...]:
    return tuple(work if job.name == work.name else job for job in case.work)


def _drop_jobs(case: Case, jobs: Sequence[str]) -> Case:
    return map_work(case, dict.fromkeys(jobs))


def _drop_queues(case: Case, queues: Sequence[str]) -> Case:
    """Remove queues with their jobs, except the subject's queue. Children of removed queues move up."""
    removed = set(queues) - {job.queue for job in case.jobs if job.name == case.subject}
    parents = {child.name: child.parent for child in case.queues}
    moved: dict[str, CaseQueue | None] = {}
    for queue in case.queues:
        parent = queue.parent
        while parent in removed:
            parent = parents.get(parent, "")
        if queue.name in removed or parent != queue.parent:
            moved[queue.name] = None if queue.name in removed else replace(queue, parent=parent)
    return map_queues(excise(case, [job.name for job in case.jobs if job.queue in removed]), moved)


def _drop_nodes(case: Case, nodes: Sequence[str]) -> Case:
    return map_nodes(case, dict.fromkeys(nodes))


def _drop_steps(case: Case, steps: Sequence[Step]) -> Case:
    removed = {id(step) for step in steps}
    return replace(case, steps=tuple(step for step in case.steps if id(step) not in removed))


def _without_unused(case: Case) -> Case:
    """Remove queues without work and children, and unused priority classes."""
    used = set().union(*(ancestors(case, job.queue) for job in case.jobs))
    classes = {job.priority for job in case.jobs}
    without = map_queues(case, dict.fromkeys(queue.name for queue in case.queues if queue.name not in used))
    return replace(
        without, classes=tuple(priority_class for priority_class in case.classes if priority_class.name in classes)
    )


def variants(case: Case) -> Iterable[Case]:
    """Return cases that place the work on its nodes by steps: all at once, job by job, and node by node."""
    return dict.fromkeys(_variants(case))  # with one running job, several variants are equal


def _variants(case: Case) -> Iterator[Case]:
    running = sorted((job for job in case.work if job.nodes), key=lambda job: (job.created, job.name))
    waiting = sorted((job for job in case.work if not job.nodes), key=lambda job: (job.created, job.name))
    bare = replace(case, work=())
    last = _last(waiting, case.subject)
    together: list[Step] = [SubmitStep(_fresh(waiting))] if waiting else []
    for first in ([SubmitStep(_fresh(running))] if running else [], [SubmitStep(_fresh([job])) for job in running]):
        yield replace(bare, steps=(*first, *together))
        yield replace(bare, steps=(*first, *last))
    for only_running in (False, True):  # node by node: with all pods of a job, or only with those that run
        yield replace(bare, nodes=(), steps=(*_node_by_node(case, running, only_running), *last))


def _fresh(work: list[Work]) -> tuple[Work, ...]:
    return tuple(replace(job, nodes=(), created=0) for job in work)


def _last(waiting: list[Work], subject: str) -> list[Step]:
    """Return steps that submit the waiting work: one step, or a step for each job if the subject is among them."""
    groups = [waiting] if all(job.name != subject for job in waiting) else [[job] for job in waiting]
    return [SubmitStep(_fresh(group)) for group in groups if group]


def _node_by_node(case: Case, running: list[Work], only_running: bool) -> list[Step]:
    """Return steps in which the nodes join one by one, each followed by the jobs whose nodes have all joined."""
    steps: list[Step] = []
    placed: set[str] = set()
    joined: set[str] = set()
    for node in case.nodes:
        steps.append(JoinStep((node,)))
        joined.add(node.name)
        fit = [job for job in running if job.name not in placed and joined.issuperset(job.nodes)]
        for job in fit:
            part = replace(job, pods=len(job.nodes), minimum=min(job.minimum, len(job.nodes)))
            steps.append(SubmitStep(_fresh([part if only_running else job])))
        placed.update(job.name for job in fit)
    return steps


def merge_steps(tester: Tester) -> None:
    """Merge neighbouring steps of one kind, and add nodes at the beginning, where the incident stays the same."""
    early = [node for step in tester.best.steps if isinstance(step, JoinStep) for node in step.nodes]
    if early:
        rest = tuple(step for step in tester.best.steps if not isinstance(step, JoinStep))
        tester.propose(replace(tester.best, nodes=(*tester.best.nodes, *early), steps=rest))
    if isinstance(next(iter(tester.best.steps), None), JoinStep):
        first = tester.best.steps[0]
        assert isinstance(first, JoinStep)
        tester.propose(replace(tester.best, nodes=(*tester.best.nodes, *first.nodes), steps=tester.best.steps[1:]))
    number = 0
    while number + 1 < len(tester.best.steps):
        one, other = tester.best.steps[number : number + 2]
        if not (isinstance(one, SubmitStep) and isinstance(other, SubmitStep)) or not tester.propose(
            replace(
                tester.best,
                steps=(
                    *tester.best.steps[:number],
                    SubmitStep((*one.work, *other.work)),
                    *tester.best.steps[number + 2 :],
                ),
            )
        ):
            number += 1
