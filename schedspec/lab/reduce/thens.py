"""Describe the outcome of a reduced case in sentences of features."""

from __future__ import annotations

import re

from ...scheduler.reasons import render_why
from .case import NAMESPACE, Case
from .play import Story
from .signature import Differs, EvictedFate, Fate, RunningFate, Signature, WaitingFate

_LONGEST = 100
_UNQUOTABLE = re.compile(rf"""[ ("]*{NAMESPACE}/|\"""")
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
"""Why a job waits, by the type of the reason."""


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
        case Differs():
            return f"{title_of(signature.fate)}, but not under another policy"
        case _:
            return f"A promise does not hold: {signature.name}"


def thens_of(case: Case, signature: Signature | RunningFate, story: Story) -> list[str]:
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
        case Differs():
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
