"""Describe the outcome of a reduced case in sentences of features."""

from __future__ import annotations

from ..reasons import render_why
from .case import NAMESPACE, Case
from .play import Story
from .signature import Differs, Evicted, Fate, Runs, Signature, Waits

_LONGEST = 100


def title_of(signature: Signature | Runs) -> str:
    """Return a title for a feature."""
    match signature:
        case Evicted():
            whose = "its own queue" if signature.within_queue else "another queue"
            whole = "A gang" if signature.whole_gang else "A pod"
            return f"{whole} is evicted by {signature.action} for a job of {whose}"
        case Waits():
            return f"A job waits: {'; '.join(sorted(it.split()[0] for it in signature.reasons))}"
        case Runs():
            return "A job runs"
        case Differs():
            return f"{title_of(signature.fate)}, and under another policy not"
        case _:
            return f"A promise does not hold: {signature.name}"


def thens_of(case: Case, signature: Signature | Runs, story: Story) -> list[str]:
    """Return the sentences that hold at the end of a case."""
    name = case.subject
    match signature:
        case Evicted():
            found = [f'"{name}" is evicted']
            preemptors = dict.fromkeys(
                it.reason.preemptor.rpartition("/")[2] for it in story.evictions if it.job == name
            )
            whole = {it.name: it.pods for it in case.jobs}
            placed = story.end.placed
            return found + [f'"{it}" runs' for it in preemptors if len(placed.get(it, ())) == whole.get(it)]
        case Waits():
            texts = [render_why(it) for it in story.end.waits[name].items]
            fit = [it for it in texts if len(it) <= _LONGEST and not any(bad in it for bad in ('"', NAMESPACE + "/"))]
            found = [] if story.end.placed.get(name) else [f'"{name}" stays pending']
            return [*found, f'"{name}" waits because of "{fit[0]}"'] if fit else found
        case Runs():
            return [f'"{name}" runs']
        case Differs():
            return thens_of(case, signature.fate, story)
        case _:
            return []


def describe(fate: Fate) -> str:
    """Return what becomes of a job in a few words."""
    match fate:
        case Evicted():
            return f"evicted by {fate.action}"
        case Waits():
            return f"waits: {'; '.join(sorted(it.split()[0] for it in fate.reasons))}"
        case Runs():
            return "runs"
