"""General promises, which hold in every case under every policy (in parentheses: the module that judges them).

* `error`: the scheduler decides without an exception.
* `rest`: the cluster settles.
* `told`: a job that waits has a reason.
* `owed`: no job waits that fits on idle capacity to which its queue is entitled.
* `entitled`: no job waits for which the policy may free capacity, as an exact search shows (`entitled`).
* `permitted`: each eviction is one that the policy permits, and of equal pods the right one is evicted (`permitted`).
* `order`, `admitted`, `lent`: jobs start in the order of service, and queues keep their limits (`served`).
* `waited`: a job that has waited its time under `sla` keeps the capacity that it has reserved (`served`).
* `close`: a gang that prefers a rack is in one rack, if a rack could hold all of its pods (`served`).
* `less`: a job that gets all of its pods because of evictions gets as many as it may evict for, if it requests less,
  but not none, of a resource.
* `node-more`: one more node does not delay the first job.
* `names`: reversed names of jobs change only which of several equal jobs runs.

The one rule: a promise is judged by the case and by the events of its play, never by the scheduler's own sums.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ..reduce.case import CARD_MEMORY, CARDS, Case, SubmitStep, Work, amounts, map_work
from ..reduce.play import PAUSE, START, Story, play, policy_of
from ..reduce.signature import reason_type
from ..reduce.simplify import rename
from . import entitled, permitted, served
from .hardware import unit_of
from .owed import owed_jobs
from .timeline import RuleViolation

_RULES: tuple[tuple[str, Callable[[Case, Story], Iterator[RuleViolation]], str], ...] = (
    ("entitled", entitled.jobs_without_room, '"{}" runs'),
    ("permitted", permitted.forbidden_evictions, "exactly 0 of these is evicted:\n      | workload |\n      | {:8} |"),
    ("permitted", permitted.unasked_backfills, '"{}" stays pending'),
    ("order", served.out_of_order, '"{}" runs'),
    ("admitted", served.admitted_above_limits, 'the PodGroup of "{}" stays Pending'),
    ("admitted", served.served_in_closed_queues, 'the PodGroup of "{}" stays Pending'),
    ("lent", served.lent_guarantees, '"{}" stays pending'),
    ("waited", served.lost_holds, '"{}" stays pending'),
    ("close", served.spread_gangs, 'every pod of "{}" is in one rack'),
)
"""Promises that single acts break, each with a function that finds breaches, and a sentence that is then false.

A pod that is evicted may run again at the end, so that only a sentence about evictions is false then.
"""
PROMISES = ("error", "rest", "told", "owed", *dict.fromkeys(name for name, *_ in _RULES), "less", "node-more", "names")
_LAST = "zz-more"
"""The name of the additional node, which is the last in the order of names."""


@dataclass(frozen=True, slots=True)
class PromiseFinding:
    name: str
    """The signature: the promise, and the types of the scheduler's reasons."""
    text: str
    case: Case
    """The case in which a sentence shows the broken promise."""
    thens: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Worlds:
    """The variants of a case that are played too. Each costs one or two more plays."""

    less: bool = True
    node_more: bool = True
    names: bool = True


def broken_promises(case: Case, story: Story, worlds: Worlds) -> Iterator[PromiseFinding]:
    """Yield the promises that a case breaks; `story` is its play."""
    if story.problem:
        yield _rest(case, story)
        return
    yield from _without_reason(case, story)
    yield from _without_pods(case, story)
    for work in owed_jobs(case, story):
        text = f"{work.name} waits although idle capacity remains to which its queue is entitled"
        yield PromiseFinding(f"owed: {_reasons(story, work.name)}", text, case, (f'"{work.name}" runs',))
    for name, find, then in _RULES:
        for breach in find(case, story):
            yield PromiseFinding(f"{name}: {breach.rule}", breach.text, case, (then.format(breach.job),))
    if worlds.less:
        yield from _less(case, story)
    if worlds.node_more and case.nodes and story.starts and case.steps and not story.settled[1].waits:
        yield from _node_more(case, story)
    if worlds.names:
        yield from _names(case, story)


def error_of(case: Case, problem: Exception) -> PromiseFinding:
    """Return the promise that an exception in a play breaks."""
    thens = tuple(f'"{work.name}" runs or is refused' for work in case.jobs[-1:])
    return PromiseFinding(f"error: {type(problem).__name__}", f"the scheduler raised {problem!r}", case, thens)


def _reasons(story: Story, job: str) -> str:
    refusal = story.end.waits.get(job)
    return " + ".join(sorted({reason_type(reason) for reason in refusal.items})) if refusal is not None else "no reason"


def _rest(case: Case, story: Story) -> PromiseFinding:
    evicted = Counter(eviction.pod for eviction in story.evictions)
    actions = sorted({eviction.reason.action for eviction in story.evictions})
    thens = (
        (f"exactly {len(evicted)} pods are evicted, once each",) if len(evicted) != 1 else ("exactly 1 pod is evicted",)
    )
    return PromiseFinding(f"rest: {' + '.join(actions) or 'no evictions'}", story.problem, case, thens)


def _without_reason(case: Case, story: Story) -> Iterator[PromiseFinding]:
    alive = alive_jobs(case)
    for work in alive:
        placed = story.end.placed.get(work.name, {})
        if len(placed) < work.pods and work.name not in story.end.waits and work.name not in case.failed:
            yield PromiseFinding(
                "told: no reason", f"{work.name} waits without a reason", case, (f'"{work.name}" runs or is refused',)
            )
            return


def _without_pods(case: Case, story: Story) -> Iterator[PromiseFinding]:
    """Yield the jobs whose PodGroup is Running although none of their pods has a node."""
    for work in alive_jobs(case):
        if story.end.phases.get(work.name) == "Running" and not story.end.placed.get(work.name):
            text = f"the PodGroup of {work.name} is Running although none of its pods has a node"
            yield PromiseFinding("told: phase", text, case, (f'the PodGroup of "{work.name}" stays Pending',))


def alive_jobs(case: Case) -> list[Work]:
    """Return the jobs that have not completed at the end."""
    done = case.completed
    return [job for job in case.jobs if job.name not in done]


def _less(case: Case, story: Story) -> Iterator[PromiseFinding]:
    """Yield a broken promise if the last job does not start with a smaller request.

    Only a job that arrives alone, while no other job waits, and that starts because of evictions is judged. Under
    proportion the shares follow the requests, so that a smaller request may change them. A smaller job may need less of
    what is evicted, so that its pods above the number for which it may evict any do not count: they wait for idle room.
    """
    last, policy = case.steps[-1] if case.steps else None, policy_of(case.policies[-1])
    if (
        not isinstance(last, SubmitStep)
        or len(last.work) != 1
        or story.settled[-2].waits
        or policy.plugin("capacity") is None
    ):
        return
    (job,) = last.work
    if _placed(story, job) < job.pods or not any(one.step == len(case.steps) for one in story.evictions):
        return
    for name, amount in job.requests:
        less = amount // unit_of(name) // 2 * unit_of(name)
        if not less or name in (CARDS, CARD_MEMORY):
            continue
        requests = amounts((other, less if other == name else value) for other, value in job.requests)
        smaller = map_work(case, {job.name: replace(job, requests=requests)})
        other = play(smaller)
        if other.problem or entitled.starves(policy, job, _placed(other, job)):
            text = f"{job.name} starts, but not if it requests less {name}"
            yield PromiseFinding(f"less: {_reasons(other, job.name)}", text, smaller, (f'"{job.name}" runs',))


def _node_more(case: Case, story: Story) -> Iterator[PromiseFinding]:
    """Yield a broken promise if one more node delays the first start.

    The caller skips cases in which work waits after the first step, because another job may then become the first.
    """
    at, job = story.starts[0]
    most = max(case.nodes, key=lambda node: node.has)
    larger = replace(case, nodes=(*case.nodes, replace(most, name=_LAST)))
    other = play(replace(larger, steps=case.steps[: int((at - START) // PAUSE)]))
    if not other.starts or other.starts[0][0] > at + 1e-6:
        later = f"{other.starts[0][0] - at:g} s later" if other.starts else "in a later step"
        yield PromiseFinding(
            "node-more", f"with one more node the first job starts {later}", larger, (f'"{job}" runs',)
        )


def _names(case: Case, story: Story) -> Iterator[PromiseFinding]:
    ended = case.completed | case.failed
    for work in (step.work for step in case.steps if isinstance(step, SubmitStep)):
        if not _are_equal(work) or (len(work) > 1 and not ended.isdisjoint(job.name for job in work)):
            return  # a step that ends a job would end a different job after the renaming
    names = sorted(job.name for job in case.jobs)
    jobs = dict(zip(names, reversed(names), strict=True))
    other = rename(case, jobs, {}, {}, {})
    mine, theirs = _classes(case, story), _classes(other, play(other))
    if mine != theirs:
        more = sorted((mine - theirs).items())
        text = f"with reversed names, different work runs: {more}"
        expected = [
            f'"{jobs[name]}" runs' for name in names if len(story.end.placed.get(name, ())) == _pods(case, name)
        ]
        yield PromiseFinding("names", text, other, tuple(expected))


def _placed(story: Story, job: Work) -> int:
    return len(story.end.placed.get(job.name, ()))


def _pods(case: Case, name: str) -> int:
    return next(job.pods for job in case.jobs if job.name == name)


def _are_equal(work: Iterable[Work]) -> bool:
    return len({replace(job, name="") for job in work}) == 1


def _classes(case: Case, story: Story) -> Counter[tuple[int, Work, int]]:
    """Count jobs by step, by their fields without the name, and by the number of their pods on nodes."""
    found: Counter[tuple[int, Work, int]] = Counter()
    for number, step in enumerate(case.steps):
        for work in step.work if isinstance(step, SubmitStep) else ():
            found[number, replace(work, name=""), len(story.end.placed.get(work.name, ()))] += 1
    return found
