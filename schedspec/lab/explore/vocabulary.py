"""Limit a case to what a scheduler supports, so that the scheduler is judged by nothing else."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..reduce.case import Case, CaseQueue, ChangeStep, CloseStep, FailStep, Step, SubmitStep, UseStep, Work

_PLAIN = CaseQueue("")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The parts of the language of cases that a case may use; by default all of them.

    Attributes:
        columns: The fields of queues that a case may set, in addition to the name; None for all.
        has_queues: Whether there are other queues than `default`.
        has_spare_pods: Whether a job may run with less than all of its pods.
        has_protection: Whether pods and queues may be protected from evictions.
        has_policy_files: Whether a policy may be changed, which needs a file instead of a name.
        has_policy_changes: Whether another policy may come into force.
        has_failures: Whether a pod may fail.
        has_closing: Whether a queue may be closed.
        has_card_quotas: Whether there are services, and queues with quotas of cards by model.
        has_shared_cards: Whether pods may share cards by memory.
        has_racks: Whether nodes are in racks, of which jobs may require or prefer one.
    """

    columns: frozenset[str] | None = None
    has_queues: bool = True
    has_spare_pods: bool = True
    has_protection: bool = True
    has_policy_files: bool = True
    has_policy_changes: bool = True
    has_failures: bool = True
    has_closing: bool = True
    has_card_quotas: bool = True
    has_shared_cards: bool = True
    has_racks: bool = True


EVERYTHING = Vocabulary()


def limited(case: Case, may: Vocabulary) -> Case:
    """Return the case without what the vocabulary lacks; policy files and hardware are limited when they are drawn."""
    if may == EVERYTHING:
        return case
    steps = tuple(_step(step, may) for step in case.steps if not _is_left_out(step, may))
    queues = tuple(_queue(queue, may) for queue in case.queues) if may.has_queues else ()
    return replace(case, queues=queues, steps=steps)


def _is_left_out(step: Step, may: Vocabulary) -> bool:
    match step:
        case UseStep():
            return not may.has_policy_changes
        case FailStep():
            return not may.has_failures
        case CloseStep():
            return not may.has_queues or not may.has_closing
        case ChangeStep():
            return not may.has_queues or _queue(step.queue, may) == replace(_PLAIN, name=step.queue.name)
        case _:
            return False


def _step(step: Step, may: Vocabulary) -> Step:
    match step:
        case SubmitStep():
            return SubmitStep(tuple(_work(work, may) for work in step.work))
        case ChangeStep():
            return ChangeStep(_queue(step.queue, may))
        case _:
            return step


def _queue(queue: CaseQueue, may: Vocabulary) -> CaseQueue:
    fields = ("parent", "weight", "priority", "capability", "deserved", "guarantee") if may.columns is not None else ()
    plain: dict[str, Any] = {name: getattr(_PLAIN, name) for name in fields if name not in (may.columns or ())}
    return replace(queue, **plain, reclaimable=queue.reclaimable or not may.has_protection)


def _work(work: Work, may: Vocabulary) -> Work:
    return replace(
        work,
        queue=work.queue if may.has_queues else "default",
        minimum=work.minimum if may.has_spare_pods else work.pods,
        preemptable=work.preemptable or not may.has_protection,
    )
