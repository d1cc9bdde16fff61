"""Write a case as a feature: nodes, queues, classes and work as tables, events and the outcome as sentences.

The one rule: no name or text of the state reaches a sentence. Names come from the vocabulary, and comments are cleaned.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...api.kinds import GPU, GPU_MEMORY, GPU_NUMBER
from ...scheduler.lint import unread_settings
from ...scheduler.reasons import render_why
from . import case as cases
from .play import SettledState, Story, quantities
from .signature import DifferentFate, EvictedFate, Fate, RunningFate, Signature, WaitingFate

_WORDS = {GPU: "gpus"}
_NODE = {"cpu": "64", "memory": "256Gi"}
"""Amounts of a node in dimensions that do not matter."""
_MAX_TEXT = 112


@dataclass(frozen=True, slots=True)
class Text:
    """The texts of a feature beside its case."""

    title: str
    policy: str
    """The sentence after Given: `the policy "capacity"`, `the policy of "file.yaml"`."""
    thens: Sequence[str]
    comments: Sequence[str] = ()
    tags: Sequence[str] = ()
    work: str = "jobs"
    """The kind of work: `jobs`, or `gangs` for a scheduler without jobs."""


def write_feature(case: cases.Case, story: Story, text: Text) -> str:
    """Return the feature of a case whose play is `story`. Without `story.settled`, no state of the work is known."""
    lines = [" ".join(f"@{tag}" for tag in text.tags)] if text.tags else []
    lines += [f"Feature: {text.title}"]
    lines += [f"  # {clean(comment)}" for comment in text.comments]
    lines += ["", f"  Scenario: {text.title}", f"    Given {text.policy}"]
    lines += _table("And these nodes:", [_node(node) for node in case.nodes])
    unread = unread_settings(case.policy)
    lines += _table("And these queues:", [_queue(queue, unread) for queue in case.queues if not _is_plain(queue)])
    lines += _table(
        "And these priority classes:",
        [{"class": priority_class.name, "value": str(priority_class.value)} for priority_class in case.classes],
    )
    lines += _steps(case, story, text.work)
    lines += [f"    {'And' if number else 'Then'} {then}" for number, then in enumerate(text.thens)]
    return "\n".join(lines) + "\n"


def clean(text: str) -> str:
    """Return a foreign text as one line of plain characters."""
    plain = "".join(character if character.isprintable() else " " for character in text)
    return plain if len(plain) <= _MAX_TEXT else f"{plain[: _MAX_TEXT - 1]}…"


def _is_plain(queue: cases.CaseQueue) -> bool:
    """Whether every cluster has exactly this queue."""
    return bool(queue.name == "root" or queue == type(queue)("default") or queue == type(queue)("default", "root"))


def _steps(case: cases.Case, story: Story, work: str) -> Iterator[str]:
    """Yield the sentences of the steps: as many Givens as possible, and the last step as the When."""
    when_begun = False
    services = {job.name for job in case.jobs if job.is_service}
    for number, step in enumerate(case.steps):
        last = number == len(case.steps) - 1
        when_begun = when_begun or last or not story.settled or not isinstance(step, cases.SubmitStep | cases.JoinStep)
        lead = "When" if last or (when_begun and not isinstance(step, cases.SubmitStep)) else "And"
        match step:
            case cases.SubmitStep():
                if number and isinstance(case.steps[number - 1], cases.SubmitStep) and not when_begun | last:
                    yield "    And a second has passed"
                settled = story.settled[number + 1] if number + 1 < len(story.settled) else None
                lead = "When" if when_begun else "And"
                for kind_of_work, part in _by_kind(step.work, work):
                    done = "are submitted" if when_begun else _outcome(part, settled)
                    rows = [_job(job, kind_of_work) for job in part]
                    yield from _table(f"{lead} these {kind_of_work} {done}:", rows)
                    lead = "And"
                if when_begun and not last:
                    yield from (f'    Then "{job.name}" runs or is refused' for job in step.work)
            case cases.JoinStep():
                word = "join:" if when_begun else ""
                yield from _table(f"{lead} these nodes {word}".rstrip() + ("" if word else ":"), map(_node, step.nodes))
            case cases.LeaveStep():
                yield f'    When node "{step.node}" leaves with its pods'
            case cases.ChangeStep():
                yield from _change(_queue(step.queue, unread_settings(case.policy)))
            case cases.CloseStep():
                yield f'    When queue "{step.queue}" is closed'
            case cases.CompleteStep():
                yield f"    When {_end_of(step.job, services, story)}"
            case cases.FailStep():
                yield f'    When pod "{step.pod}" fails with exit code 1'
            case cases.UseStep():
                yield f'    When the policy "{step.name}" is given'


def _end_of(job: str, services: set[str], story: Story) -> str:
    if job in services:
        return f'"{job}" is deleted'
    return f'"{job}" completes' + ("" if story.settled else " if it runs")


def _by_kind(work: Sequence[cases.Work], jobs: str) -> Iterator[tuple[str, list[cases.Work]]]:
    """Yield the jobs and the services of a step, each list with its kind of work."""
    for word, is_service in ((jobs, False), ("services", True)):
        if part := [job for job in work if job.is_service == is_service]:
            yield word, part


def _outcome(work: Sequence[cases.Work], settled: SettledState | None) -> str:
    placed = [len((settled.placed if settled else {}).get(job.name, ())) for job in work]
    if all(number == job.pods for number, job in zip(placed, work, strict=True)):
        return "run"
    return "wait" if not any(placed) else "are submitted"


def _node(node: cases.CaseNode) -> dict[str, str]:
    has = _columns(node.has)
    if number := int(has.pop(GPU_NUMBER, "0")):
        has |= {"shared gpus": str(number), "card memory": f"{int(has.pop(GPU_MEMORY, '0')) // number}Mi"}
    return {"node": node.name, **_NODE, **_with_model(has, node.card), **({"rack": node.rack} if node.rack else {})}


def _change(row: dict[str, str]) -> Iterator[str]:
    """Yield the change of a queue; nothing if the policy reads none of its columns."""
    if any(cell for column, cell in row.items() if column != "queue"):
        yield from _table("When these queues change:", [row])


def _queue(queue: cases.CaseQueue, unread: Collection[str]) -> dict[str, str]:
    """Return the row of a queue, without columns that the policy does not read."""
    return {column: cell for column, cell in _whole_queue(queue).items() if column not in unread}


def _whole_queue(queue: cases.CaseQueue) -> dict[str, str]:
    row = {"queue": queue.name}
    for name, usual in (("parent", ""), ("weight", 1), ("priority", 0)):
        if (value := getattr(queue, name)) != usual and not (name == "parent" and value == "root"):
            row[name] = str(value)
    for name in ("capability", "deserved", "guarantee"):
        if amounts := _columns(getattr(queue, name)):
            row[name] = ", ".join(f"{resource} {amount}" for resource, amount in amounts.items())
    if queue.cards:
        row["card quota"] = ", ".join(f"{model} {amount // 1000}" for model, amount in queue.cards)
    return row if queue.reclaimable else {**row, "reclaimable": "no"}


def _job(work: cases.Work, kind_of_work: str) -> dict[str, str]:
    row = {kind_of_work.removesuffix("s"): work.name}
    row |= {"queue": work.queue} if work.queue != "default" else {}
    row |= {"priority": work.priority} if work.priority else {}
    row |= {"replicas": str(work.pods)} if work.pods > 1 else {}
    row |= {"min available": str(work.minimum)} if work.minimum < work.pods and not work.is_service else {}
    requests = _with_model(_columns(work.requests), work.card)
    row |= {"gpu memory": f"{requests.pop(GPU_MEMORY)}Mi"} if GPU_MEMORY in requests else {}
    row |= requests
    row |= {work.rack: "rack"} if work.rack else {}
    row |= {"stop after": work.stop_after} if work.stop_after else {}
    return row if work.preemptable else {**row, "preemptable": "false"}


def _with_model(amounts: dict[str, str], card: str) -> dict[str, str]:
    """Return the amounts with the GPUs as cards of a model; a row without GPUs has no cards."""
    if not card or "gpus" not in amounts:
        return amounts
    return {name: amount for name, amount in amounts.items() if name != "gpus"} | {
        "cards": amounts["gpus"],
        "card": card,
    }


def _columns(amounts: cases.Amounts) -> dict[str, str]:
    return {_WORDS.get(name, name): amount for name, amount in quantities(amounts).items()}


def _table(sentence: str, rows: Iterable[Mapping[str, str]]) -> list[str]:
    found = list(rows)
    if not found:
        return []
    names = list(dict.fromkeys(name for row in found for name in row))
    cells = [names, *([row.get(name, "") for name in names] for row in found)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(names))]
    lines = [
        "      | " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in cells
    ]
    return [f"    {sentence}", *lines]


_LONGEST = 100
_UNQUOTABLE = re.compile(rf"""[ ("]*{cases.NAMESPACE}/|\"""")
"""What no sentence can contain: a name with the namespace of the case, and a quotation mark."""
_WAITS = {
    "gang-short": "too few of its pods find room",
    "namespace-quota": "the quota of its namespace is used up",
    "no-domain": "no topology domain has room for it",
    "no-node": "no node has room for it",
    "no-victims": "no pod may be evicted for it",
    "not-entitled": "its queue may not reclaim",
    "pods-missing": "some of its pods are missing",
    "queue-closed": "its queue is closed",
    "queue-limit": "its queue is at its limit",
}


def title_of(signature: Signature | RunningFate) -> str:
    match signature:
        case EvictedFate():
            whose = "its own queue" if signature.within_queue else "another queue"
            whole = "A gang" if signature.whole_gang else "A pod"
            why = f" by {signature.action} for a job of {whose}" if signature.action else ""
            return f"{whole} is evicted{why}"
        case WaitingFate():
            types = _types(signature)
            why = "; ".join(_WAITS.get(name, name) for name in types)
            return f"A job waits{': ' if why else ''}{why}"
        case RunningFate():
            return "A job runs"
        case DifferentFate():
            return f"{title_of(signature.fate)}, but not under another policy"
        case _:
            return f"A promise does not hold: {signature.name}"


def thens_of(case: cases.Case, signature: Signature | RunningFate, story: Story) -> list[str]:
    """Return the sentences that hold at the end of a case."""
    name = case.subject
    match signature:
        case EvictedFate():
            found = [f'"{name}" is evicted']
            preemptors = dict.fromkeys(
                eviction.reason.preemptor.rpartition("/")[2] for eviction in story.evictions if eviction.job == name
            )
            whole = {job.name: job.pods for job in case.jobs}
            numbers = {job: len(story.end.placed.get(job, ())) for job in preemptors}
            found += [f'"{job}" runs' for job, number in numbers.items() if number == whole.get(job)]
            some = {job: number for job, number in numbers.items() if 0 < number < whole.get(job, 0)}
            return found + [
                f'exactly {n} {"pod" if n == 1 else "pods"} of "{job}" {"runs" if n == 1 else "run"}'
                for job, n in some.items()
            ]
        case WaitingFate(reasons) if not reasons:
            return [f'"{name}" stays pending']
        case WaitingFate():
            texts = [render_why(reason) for reason in story.end.waits[name].items]
            parts = dict.fromkeys(filter(None, map(quotable, texts)))
            found = [] if story.end.placed.get(name) else [f'"{name}" stays pending']
            return [*found, *(f'"{name}" waits because of "{part}"' for part in parts)]
        case RunningFate():
            return [f'"{name}" runs']
        case DifferentFate():
            return thens_of(case, signature.fate, story)
        case _:
            return []


def _types(fate: WaitingFate) -> list[str]:
    """Return the types of the reasons, without what they name."""
    return sorted({reason.split()[0].rstrip(",") for reason in fate.reasons})


def quotable(text: str) -> str:
    """Return the part of a reason that a sentence can quote: without names of the case's namespace, and not too long.

    The part ends before such a name, a quotation mark, or the list that would make it too long.
    """
    text = _UNQUOTABLE.split(text)[0]
    while len(text) > _LONGEST and (end := max(text.rfind(mark) for mark in ("; ", ", ", " ("))) > 0:
        text = text[:end]
    return text.strip(" ;,") if len(text) <= _LONGEST else ""


def describe(fate: Fate) -> str:
    match fate:
        case EvictedFate():
            return f"evicted by {fate.action}"
        case WaitingFate():
            return f"waits: {'; '.join(_types(fate))}"
        case RunningFate():
            return "runs"
