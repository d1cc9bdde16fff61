"""Monitor: no pod is evicted twice for the same cause.

A violation is a re-created pod that starts again and is evicted again for the same preemptor without a new cause. A
new cause has two parts. First, the preemptor has lost the capacity, but not to the victim, or needs more for another of
its pods. Second, something changed from outside in between (a node, a queue, another job, a pod that ended by itself),
or a third job evicted the preemptor for the first time and kept the capacity. Only the first time counts, because jobs
that evict each other in turn would otherwise excuse each other.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...api.kinds import Kind
from ...observe.view import QUEUED
from ..ledger import Act, Ledger, Violation
from ..object_state import generation_of, group_of, holds, is_over, key_of, waits
from ..rules import Rules

NAME = "repeated-eviction"


def judge(ledger: Ledger, rules: Rules) -> Iterator[Violation]:
    """Yield repeated evictions.

    The cause is the scheduler's message without its details. Pods with one name count as one pod and its successors.
    """
    del rules
    seen: dict[tuple[str, str], Act] = {}
    for act in ledger.evictions():
        cause = (act.name, act.cause)
        first = seen.get(cause, act)
        if act.message and first.uid != act.uid and not _has_new_cause(ledger, first, act):
            yield act.violation(NAME, f"evicted again for the same cause: {act.message}")
        seen[cause] = act


def _has_new_cause(ledger: Ledger, first: Act, second: Act) -> bool:
    """Whether the second eviction has a new cause. Other evictions of the same decision may be written later."""
    acts = [act for act in ledger.acts if first.position < act.position < second.position]
    acts += [act for act in ledger.evictions_at(second.time) if act.position > second.position]
    victim, named = first.group, ledger.preemptors(first)
    served = [act for act in acts if act.kind == "bind" and act.group in named]
    losses = [act for act in acts if act.kind == "evict" and act.group in named]
    if not served or any(victim in loss.cause.split() for loss in losses):
        return False
    still_there = (ledger.pod_of(second.position, bind) for bind in served)
    has_lost = bool(losses) or not all(pod is not None and holds(pod) for pod in still_there)
    preemptors = {bind.group for bind in served}
    claims_more = any(waits(pod) for group in preemptors for pod in ledger.members(second.position, group))
    evicted = {act.group for act in (first, *acts) if act.kind == "evict"}
    own = {victim, *preemptors}
    between = range(first.position + 1, second.position)
    return is_new_cause(
        needs_more=has_lost or claims_more,
        has_changed=any(_is_from_outside(ledger, position, own, evicted) for position in between),
        third_keeps=any(_is_for_third_job(ledger, loss, first, second) for loss in losses),
    )


def is_new_cause(*, needs_more: bool, has_changed: bool, third_keeps: bool) -> bool:
    """Whether a job may evict a pod again, by the two parts of a new cause (see above)."""
    return needs_more and (has_changed or third_keeps)


def _is_for_third_job(ledger: Ledger, loss: Act, first: Act, second: Act) -> bool:
    """Whether an eviction of the preemptor was the first one for a third job, which is then bound and not evicted.

    The second eviction may be part of the same decision; the third job is then bound later.

    Args:
        ledger: The history.
        loss: The eviction of the preemptor.
        first: The first eviction of the victim.
        second: The second eviction of the victim.
    """
    groups = ledger.preemptors(loss)
    of_third = [act for group in groups for act in ledger.acts_on(group) if act.position > loss.position]
    is_served = any(act.kind == "bind" for act in of_third)
    is_evicted = any(act.kind == "evict" and act.position < second.position for act in of_third)
    known = (act for act in ledger.evictions_of(loss.cause) if act.position < first.position)
    return is_served and not is_evicted and all(act.group != loss.group for act in known)


def _is_from_outside(ledger: Ledger, position: int, own: set[str], evicted: set[str]) -> bool:
    """Whether a version shows a change that no eviction explains.

    Args:
        ledger: The history.
        position: The position of the version.
        own: The groups of the preemptor and of the victim.
        evicted: The groups that lost pods to evictions; their other pods may end as a consequence.
    """
    seen = ledger.versions[position]
    name = key_of(seen.object)
    before, is_gone = ledger.at(position - 1, seen.ref.kind, name), seen.change == "gone"
    if seen.ref.kind == Kind.POD:
        ends = before is not None and not is_over(before) and (is_gone or is_over(seen.object))
        return ends and bool(seen.object["spec"].get("nodeName")) and group_of(seen.object) not in evicted
    if seen.ref.kind in QUEUED:
        return name not in own and (before is None or is_gone)
    if seen.ref.kind in (Kind.NODE, Kind.QUEUE):
        return before is None or is_gone or generation_of(before) != generation_of(seen.object)
    return False
