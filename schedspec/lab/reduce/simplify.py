"""Simplify what is left of a case after removals: fields, the policy, amounts, and finally the names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import yaml

from ...scheduler.model import resources
from ...scheduler.policy.loader import WRAPPER
from . import case as cases
from .shrink import Tester, fewer_pods, remove_parts

_QUEUE_AMOUNTS = ("capability", "deserved", "guarantee", "cards")
_PLAIN = {
    name: getattr(cases.CaseQueue(""), name)
    for name in ("parent", "weight", "priority", "reclaimable", *_QUEUE_AMOUNTS)
}
_PLAIN_WORK = {
    name: getattr(cases.Work(""), name)
    for name in ("priority", "preemptable", "created", "stop_after", "is_service", "card", "rack")
}
_STEPS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64)
QUEUES = ("analysis", "batch", "chat", "evaluation", "imaging", "research", "speech", "training", "video", "web")
"""Names for queues in alphabetical order, so that renamed queues keep their order."""


def simplify_fields(tester: Tester) -> None:
    """Set fields to their defaults."""
    for name in [job.name for job in tester.best.jobs]:
        for change in _changes_of_work(tester, name):
            tester.propose(change)
    for queue in tester.best.queues:
        for field, value in _PLAIN.items():
            latest = next(other for other in tester.best.queues if other.name == queue.name)
            tester.propose(cases.map_queues(tester.best, {queue.name: replace(latest, **{field: value})}))
    for node in tester.best.all_nodes:
        tester.propose(cases.map_nodes(tester.best, {node.name: replace(node, card="", rack="")}))
    for dimension in sorted({name for site in _sites(tester.best) for name, _ in site}):
        tester.propose(_map_amounts(tester.best, partial(_without_dimension, dimension)))


def _changes_of_work(tester: Tester, name: str) -> Iterator[cases.Case]:
    """Yield simpler versions of a job, each made from the best case of that moment."""

    def current() -> cases.Work:
        return next(job for job in tester.best.jobs if job.name == name)

    for pods in (*_STEPS[:3], *(number for number in range(current().pods // 2, current().pods))):
        if pods < current().pods:
            yield from fewer_pods(tester.best, current(), pods)
    for simple in (
        {"minimum": 1 if current().is_service else current().pods},
        {"minimum": 1},
        *({name: value} for name, value in _PLAIN_WORK.items()),
    ):
        yield cases.map_work(tester.best, {name: replace(current(), **simple)})


# ------------------------------------------------------------------------------------------------------------- policy


def simplify_policy(tester: Tester, known: Mapping[str, str]) -> None:
    """Use a known policy, or cut the policy down."""
    for text in known.values():
        if tester.best.policy == text or tester.propose(replace(tester.best, policy=text)):
            return
    parts = list(_policy_parts(_read(tester.best.policy)))
    remove_parts(tester, parts, (lambda case, removed: replace(case, policy=_without(case.policy, removed)),))
    if (tidy := _tidy(tester.best.policy)) != tester.best.policy:
        tester.propose(replace(tester.best, policy=tidy))


_Part = tuple[str, ...]
_SWITCH = "switch"


def _policy_parts(document: Any) -> Iterator[_Part]:
    yield from (("action", action.strip()) for action in str(document.get("actions", "")).split(","))
    yield from ((key,) for key in document if key not in ("actions", "tiers"))
    for number, tier in enumerate(document.get("tiers") or ()):
        for plugin in tier.get("plugins") or ():
            yield "plugin", str(number), plugin["name"]
            yield from ((_SWITCH, str(number), plugin["name"], key) for key in plugin if key not in ("name",))


def _without(text: str, removed: Iterable[_Part]) -> str:
    document = _read(text)
    kept = {*_policy_parts(document)} - {*removed}
    tiers = []
    for number, tier in enumerate(document.get("tiers") or ()):
        plugins = [
            {
                key: value
                for key, value in plugin.items()
                if key == "name" or (_SWITCH, str(number), plugin["name"], key) in kept
            }
            for plugin in tier.get("plugins") or ()
            if ("plugin", str(number), plugin["name"]) in kept
        ]
        tiers.append({"plugins": plugins})
    actions = [action.strip() for action in str(document.get("actions", "")).split(",")]
    rest = {key: value for key, value in document.items() if (key,) in kept}
    found = {"actions": ", ".join(action for action in actions if ("action", action) in kept), "tiers": tiers, **rest}
    return str(yaml.safe_dump(found, sort_keys=False))


def _read(text: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(text) or {}
    inside: dict[str, Any] = document.get(WRAPPER, document)
    return inside


def _tidy(text: str) -> str:
    """Return a policy without tiers that have no plugins."""
    document = _read(text)
    document["tiers"] = [tier for tier in document["tiers"] if tier["plugins"]]
    return str(yaml.safe_dump(document, sort_keys=False))


# ------------------------------------------------------------------------------------------------------------- amounts


def simplify_amounts(tester: Tester) -> None:
    """Make amounts small whole numbers, all of a dimension together and then one by one; lower the queues' weights."""
    for dimension in sorted({name for site in _sites(tester.best) for name, _ in site}):
        most = max(amount for site in _sites(tester.best) for name, amount in site if name == dimension)
        for goal in _STEPS:
            scaled = _map_amounts(tester.best, partial(_scaled, dimension, goal, most))
            if goal * _unit(dimension) < most and tester.propose(scaled):
                break
        tester.propose(_map_amounts(tester.best, partial(_whole, dimension)))
        for number in range(len(list(_sites(tester.best)))):
            _lower(tester, dimension, number)
    for queue in tester.best.queues:
        for weight in range(1, min(queue.weight, 4)):
            tester.propose(cases.map_queues(tester.best, {queue.name: replace(queue, weight=weight)}))


def fill_empty_nodes(tester: Tester) -> None:
    """Give nodes without cpu or memory the least amount: a table of nodes has no node on which no pod could run."""
    for node in tester.best.all_nodes:
        least = tuple((name, amount or int(name in (resources.CPU, resources.MEMORY))) for name, amount in node.has)
        tester.propose(cases.map_nodes(tester.best, {node.name: replace(node, has=least)}))


def _lower(tester: Tester, dimension: str, number: int) -> None:
    """Lower a dimension of the amounts at index `number` of `_sites` to the smallest step that keeps the incident."""
    site = dict(list(_sites(tester.best))[number])
    for goal in _STEPS:
        amount = goal * _unit(dimension)
        if dimension not in site or amount >= site[dimension]:
            return
        if tester.propose(_with_amount(tester.best, dimension, number, amount)):
            return


def _with_amount(case: cases.Case, dimension: str, number: int, amount: int) -> cases.Case:
    numbers = count()
    return _map_amounts(case, lambda site: _map(site, dimension, lambda _: amount) if next(numbers) == number else site)


def _unit(dimension: str) -> int:
    return 1 << 30 if dimension == resources.MEMORY else resources.unit_of(dimension)


def _map(given: cases.Amounts, dimension: str, change: Callable[[int], int]) -> cases.Amounts:
    return tuple((name, change(amount) if name == dimension else amount) for name, amount in given)


def _scaled(dimension: str, goal: int, most: int, given: cases.Amounts) -> cases.Amounts:
    unit = _unit(dimension)
    return _map(given, dimension, lambda amount: -(-amount * goal // most) * unit)


def _whole(dimension: str, given: cases.Amounts) -> cases.Amounts:
    unit = _unit(dimension)
    return _map(given, dimension, lambda amount: -(-amount // unit) * unit)


def _without_dimension(dimension: str, given: cases.Amounts) -> cases.Amounts:
    return tuple(entry for entry in given if entry[0] != dimension)


def _sites(case: cases.Case) -> Iterator[cases.Amounts]:
    """Yield all amounts of a case, in the order of `_map_amounts`."""
    found: list[cases.Amounts] = []

    def note(given: cases.Amounts) -> cases.Amounts:
        found.append(given)
        return given

    _map_amounts(case, note)
    yield from found


def _map_amounts(case: cases.Case, change: Callable[[cases.Amounts], cases.Amounts]) -> cases.Case:
    nodes: dict[str, cases.CaseNode | None] = {
        node.name: replace(node, has=change(node.has)) for node in case.all_nodes
    }
    queues: dict[str, cases.CaseQueue | None] = {queue.name: _map_queue(queue, change) for queue in case.queues}
    work: dict[str, cases.Work | None] = {job.name: replace(job, requests=change(job.requests)) for job in case.jobs}
    changed = cases.map_work(cases.map_queues(cases.map_nodes(case, nodes), queues), work)
    steps = (
        replace(step, queue=_map_queue(step.queue, change)) if isinstance(step, cases.ChangeStep) else step
        for step in changed.steps
    )
    return replace(changed, steps=tuple(steps))


def _map_queue(queue: cases.CaseQueue, change: Callable[[cases.Amounts], cases.Amounts]) -> cases.CaseQueue:
    changed: dict[str, Any] = {field: change(getattr(queue, field)) for field in _QUEUE_AMOUNTS}
    return replace(queue, **changed)


# --------------------------------------------------------------------------------------------------------------- names


def simplify_names(tester: Tester) -> None:
    """Replace all names by names of the vocabulary, in the order of the old names."""
    tester.propose(renamed(tester.best))


def renamed(case: cases.Case) -> cases.Case:
    """Return the case with names of the vocabulary, in the order of the old names."""
    width = len(str(len(case.jobs)))
    jobs = {name: f"train-{number:0{width}}" for number, name in enumerate(sorted(job.name for job in case.jobs), 1)}
    return rename(case, jobs, _of_queues(case), _numbered(node.name for node in case.all_nodes), _of_classes(case))


def old_names(before: cases.Case, after: cases.Case) -> dict[str, str]:
    """Return the old names of the jobs and queues of a renamed case, by new name; renaming keeps their order."""
    found: dict[str, str] = {}
    for names_of in (lambda case: {job.name for job in case.jobs}, _named_queues):
        found |= dict(zip(sorted(names_of(after)), sorted(names_of(before)), strict=True))
    return found


def _named_queues(case: cases.Case) -> set[str]:
    """Return the queues that have a name of the state, also those that a job names and the state lacks."""
    return {*(queue.name for queue in case.queues), *(job.queue for job in case.jobs)} - {"root", "default"}


def _of_queues(case: cases.Case) -> dict[str, str]:
    names = sorted(_named_queues(case))
    if len(names) > len(QUEUES):
        return _numbered(names, "queue-")
    return dict(zip(names, QUEUES[-len(names) :] if len(names) > 5 else QUEUES[5 : 5 + len(names)], strict=True))


def _of_classes(case: cases.Case) -> dict[str, str]:
    ordered = sorted(case.classes, key=lambda priority_class: priority_class.value)
    return dict(zip((priority_class.name for priority_class in ordered), _levels(len(ordered)), strict=True))


def _levels(number: int) -> tuple[str, ...]:
    return (
        ("low", "high") if number == 2 else ("high",) if number == 1 else tuple(f"p{level}" for level in range(number))
    )


def _numbered(names: Iterable[str], word: str = "n") -> dict[str, str]:
    ordered = sorted(names)
    width = len(str(len(ordered)))
    return {name: f"{word}{number:0{width}}" for number, name in enumerate(ordered, 1)}


Names = Mapping[str, str]


def rename(case: cases.Case, jobs: Names, queues: Names, nodes: Names, classes: Names) -> cases.Case:
    """Rename all objects; a name that is not in its mapping is kept."""

    def work(old: cases.Work) -> cases.Work:
        return replace(
            old,
            name=jobs.get(old.name, old.name),
            queue=queues.get(old.queue, old.queue),
            priority=classes.get(old.priority, old.priority),
            nodes=tuple(nodes.get(on, on) for on in old.nodes),
        )

    def node(old: cases.CaseNode) -> cases.CaseNode:
        return replace(old, name=nodes.get(old.name, old.name))

    def queue(old: cases.CaseQueue) -> cases.CaseQueue:
        return replace(old, name=queues.get(old.name, old.name), parent=queues.get(old.parent, old.parent))

    def step(old: Any) -> Any:  # noqa: PLR0911 - one return a kind of step
        match old:
            case cases.SubmitStep():
                return cases.SubmitStep(tuple(map(work, old.work)))
            case cases.JoinStep():
                return cases.JoinStep(tuple(map(node, old.nodes)))
            case cases.LeaveStep():
                return cases.LeaveStep(nodes.get(old.node, old.node))
            case cases.ChangeStep():
                return cases.ChangeStep(queue(old.queue))
            case cases.CloseStep():
                return cases.CloseStep(queues.get(old.queue, old.queue))
            case cases.CompleteStep():
                return cases.CompleteStep(jobs.get(old.job, old.job))
            case cases.FailStep():
                return replace(old, job=jobs.get(old.job, old.job))
            case cases.UseStep():
                return old

    return replace(
        case,
        nodes=tuple(map(node, case.nodes)),
        queues=tuple(sorted(map(queue, case.queues), key=lambda new: new.name)),
        classes=tuple(
            cases.CasePriorityClass(classes.get(priority_class.name, priority_class.name), priority_class.value)
            for priority_class in case.classes
        ),
        work=tuple(map(work, case.work)),
        steps=tuple(map(step, case.steps)),
        subject=jobs.get(case.subject, case.subject),
        preemptor=jobs.get(case.preemptor, case.preemptor),
    )
