"""The signature of an incident: what smaller cases must have in common, independent of names, numbers and texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from ...scheduler.reasons import QueueLimit
from .case import Amounts, Case, ChangeStep, SubmitStep, ancestors
from .play import PlayedEviction, Story, play


@dataclass(frozen=True, slots=True)
class EvictedFate:
    """The subject loses a pod to an action, for a job of its own queue or of another queue."""

    action: str
    within_queue: bool
    whole_gang: bool


@dataclass(frozen=True, slots=True)
class WaitingFate:
    """The subject waits at the end, for reasons of these types, about these queues, resources and reservations."""

    reasons: frozenset[str]


@dataclass(frozen=True, slots=True)
class Broken:
    """A promise or a rule of a monitor is broken. `judge` returns the names of all that a case breaks."""

    name: str
    judge: Callable[[Case], set[str]]


@dataclass(frozen=True, slots=True)
class RunningFate:
    """The subject runs at the end, and lost no pod."""


@dataclass(frozen=True, slots=True)
class DifferentFate:
    """The subject has another fate under another policy."""

    policy: str
    fate: EvictedFate | WaitingFate | RunningFate
    other: EvictedFate | WaitingFate | RunningFate


_GAP = 0.1
"""Seconds between the jobs of one step; more than a cycle."""

Fate = EvictedFate | WaitingFate | RunningFate
Signature = EvictedFate | WaitingFate | Broken | DifferentFate


def rule_of(signature: Signature) -> str:
    return signature.name if isinstance(signature, Broken) else ""


def of_eviction(found: PlayedEviction) -> EvictedFate:
    why = found.reason
    return EvictedFate(why.action, why.queue == why.preemptor_queue, why.whole_gang)


def of_wait(story: Story, case: Case, job: str) -> WaitingFate | None:
    """Return the signature of a job that waits at the end; None if it does not."""
    refusal = story.end.waits.get(job)
    if refusal is None:
        return None
    causes = (f"{reason_type(why)}{_origin_of_limit(why, case)}{_cause(why, case, job)}" for why in refusal.items)
    return WaitingFate(frozenset(causes))


def fate_of(story: Story, case: Case, job: str) -> Fate:
    """Return the fate of a job: its first eviction, or why it waits at the end, or that it runs."""
    evicted = next((of_eviction(eviction) for eviction in story.evictions if eviction.job == job), None)
    return evicted or of_wait(story, case, job) or RunningFate()


def of_difference(case: Case, policy: str) -> tuple[str, DifferentFate] | None:
    """Return the first job with another fate under another policy, and its fates; None if there is none.

    Jobs that are evicted under either policy come first.
    """
    mine, theirs = play(case), play(replace(case, policy=policy))
    fates = {
        work.name: DifferentFate(policy, fate_of(mine, case, work.name), fate_of(theirs, case, work.name))
        for work in case.jobs
    }
    found = [(job, difference) for job, difference in fates.items() if difference.fate != difference.other]
    return min(found, key=lambda pair: EvictedFate not in (type(pair[1].fate), type(pair[1].other)), default=None)


def reason_type(why: Any) -> str:
    """Return the type of a reason with the words that distinguish its cases, without names and numbers."""
    words = [str(type(why).__struct_config__.tag)]
    words += [str(value) for name in ("limit", "action", "rule") if (value := getattr(why, name, ""))]
    words += sorted({node_rule.rule for node_rule in getattr(why, "rules", ())})
    words += sorted({_type_of_denial(_rule_of(protected.why)) for protected in getattr(why, "spared", ())})
    return " ".join(words)


def _cause(why: Any, case: Case, job: str) -> str:
    """Return which queues a reason names, by their place seen from the job, which resources, and who reserves them."""
    own = next((work.queue for work in case.jobs if work.name == job), "")
    words = _queue_and_resource(why, case, own)
    words += sorted({rule.detail for rule in getattr(why, "rules", ()) if rule.rule == "resource"})
    words += ["reserved by admitted jobs"] if getattr(why, "inqueue", 0) else []
    words += ["guaranteed to others"] if getattr(why, "guaranteed_to_others", 0) else []
    protections = [_rule_of(protected.why) for protected in getattr(why, "spared", ())]
    words += sorted({" of ".join(_queue_and_resource(rule, case, own)) for rule in protections} - {""})
    return "".join(f", {word}" for word in words)


def _queue_and_resource(why: Any, case: Case, own: str) -> list[str]:
    words = []
    if queue := getattr(why, "queue", ""):
        place = "its queue" if queue == own else "a queue above" if queue in ancestors(case, own) else "another queue"
        words.append(place)
    return words + ([dimension] if (dimension := getattr(why, "dimension", "")) else [])


def _origin_of_limit(why: Any, case: Case) -> str:
    """Return ` of its own` for a limit that the queue's spec sets, below what the cluster has in total."""
    if not isinstance(why, QueueLimit):
        return ""
    queues = {queue.name: queue for queue in case.queues}
    queues |= {step.queue.name: step.queue for step in case.steps if isinstance(step, ChangeStep)}
    own: Amounts = getattr(queues.get(why.queue), why.limit, ())
    total = sum(dict(node.has).get(why.dimension, 0) for node in case.all_nodes)
    return " of its own" if dict(own).get(why.dimension) == why.amount < total else ""


def _rule_of(why: Any) -> Any:
    """Return the rule by which a pod is protected, which a veto contains."""
    return why if getattr(why, "why", None) is None else why.why


def _type_of_denial(rule: Any) -> str:
    tag = type(rule).__struct_config__.tag if isinstance(rule, msgspec.Struct) else ""
    return f"{tag}{':' + rule.by if hasattr(rule, 'by') else ''}"


def shows(case: Case, wanted: Signature) -> bool:
    """Whether a case shows the incident both with the jobs of a step created at once and with pauses between them."""
    if isinstance(wanted, Broken):
        return wanted.name in wanted.judge(case)
    together = any(isinstance(step, SubmitStep) and len(step.work) > 1 for step in case.steps)
    return all(_shows(case, wanted, gap) for gap in ((0.0, _GAP) if together else (0.0,)))


def _shows(case: Case, wanted: EvictedFate | WaitingFate | DifferentFate, gap: float) -> bool:
    if isinstance(wanted, DifferentFate):
        other = replace(case, policy=wanted.policy)
        fates = [fate_of(play(one, gap=gap), one, case.subject) for one in (case, other)]
        return fates == [wanted.fate, wanted.other]
    if isinstance(wanted, WaitingFate):
        return of_wait(play(case, gap=gap), case, case.subject) == wanted
    story = play(case, stop=lambda eviction: is_of_incident(eviction, case), gap=gap)
    return any(is_of_incident(eviction, case) and of_eviction(eviction) == wanted for eviction in story.evictions)


def is_of_incident(eviction: PlayedEviction, case: Case) -> bool:
    """Whether the subject of a case loses a pod, and for the preemptor of the case if it names one."""
    return eviction.job == case.subject and case.preemptor in ("", preemptor_of(eviction))


def preemptor_of(eviction: PlayedEviction) -> str:
    """Return the job for which a pod is evicted."""
    return eviction.reason.preemptor.rpartition("/")[2]
