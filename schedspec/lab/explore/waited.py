"""Promise `waited`: under `sla`, a job that has waited its time keeps the capacity that it has reserved.

A gang that does not fit yet reserves the idle capacity until the rest becomes free. No later job of its queue may start
on reserved capacity. A later job may start on what is released at that moment, which its victims held. The promise is
judged where only one job waits before a step, and no plugin limits queues: all idle capacity on which pods of the gang
fit is then reserved for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...scheduler.model.times import duration
from ...scheduler.policy.model import Policy
from ..reduce.case import Amounts, Case, Work
from ..reduce.play import PAUSE, Happened, Story, policy_of
from .owed import needs_one_place
from .timeline import Breach, Moment, Sums, add, closed_at, idle_of, moments, slots, steps_of

_LIMITING = ("capacity", "proportion", "capacity-card", "resourcequota", "nodegroup", "network-topology-aware", "cdp")
"""Plugins that may keep a job off a node."""


def lost_holds(case: Case, story: Story) -> Iterator[Breach]:
    """Yield jobs that start on capacity that an earlier job has reserved."""
    waiting_time = _waiting_time(policy_of(case.policy))
    if waiting_time is None or len(case.policies) > 1:
        return
    jobs, steps = {work.name: work for work in case.jobs}, steps_of(case)
    for moment in moments(case, story):
        holder = _holder(case, story, moment.step, steps)
        if holder is None or PAUSE * (moment.step - steps[holder.name]) < waiting_time:
            continue
        idle = idle_of(moment.nodes, ((pod.node, pod.job.requests) for pod in moment.held.values()))
        released = _released(moment)
        for act in moment.acts_of(Happened.PLACED):
            if act.node not in idle or act.job not in jobs:
                continue
            before = _fitting(idle, holder)
            _use(released.get(act.node, {}), idle[act.node], jobs[act.job].requests)
            is_later = steps[act.job] > steps[holder.name] and jobs[act.job].queue == holder.queue
            if is_later and _fitting(idle, holder) < min(before, holder.minimum):
                text = f"{act.pod} starts on capacity of {act.node} that {holder.name} has reserved"
                yield Breach("hold", text, act.job)


def _waiting_time(policy: Policy) -> float | None:
    """Return the seconds after which waiting jobs, the oldest first, reserve capacity; None if this is not judged."""
    first = policy.tiers[0][0]
    if first.name != "sla" or any(policy.plugin(name) is not None for name in _LIMITING):
        return None
    switches = ("enableJobOrder", "enableJobPipelined", "enableJobEnqueued")
    is_alone = all(option.name != "gang" for option in policy.tiers[0])
    if not is_alone or "allocate" not in policy.actions or not all(first.enabled(switch) for switch in switches):
        return None
    return duration(str(first.arguments.get("sla-waiting-time", ""))) or None


def _holder(case: Case, story: Story, step: int, steps: dict[str, int]) -> Work | None:
    """Return the gang that alone waits at the end of the step before, admitted and without any pod on a node."""
    if not 0 < step <= len(story.settled):
        return None
    before, closed = story.settled[step - 1], closed_at(case, step)
    placed = before.placed
    over = case.completed | case.failed
    waiting = [work for work in case.jobs if steps[work.name] < step and len(placed.get(work.name, ())) < work.pods]
    if len(waiting) != 1:
        return None
    (work,) = waiting
    if work.name in over or placed.get(work.name) or work.queue in closed or needs_one_place(work):
        return None
    is_admitted = "enqueue" not in policy_of(case.policy).actions or before.phases.get(work.name) == "Inqueue"
    return work if is_admitted and any(amount for _, amount in work.requests) else None


def _released(moment: Moment) -> dict[str, Sums]:
    """Return what the pods held that end at a moment, by node."""
    found: dict[str, Sums] = {}
    for pod in (moment.held[act.pod] for act in moment.acts_of(Happened.RELEASED) if act.pod in moment.held):
        add(found.setdefault(pod.node, {}), pod.job.requests)
    return found


def _use(released: Sums, idle: Sums, requests: Amounts) -> None:
    """Subtract what a pod requests from what is released on its node, and the rest from what is idle there."""
    for name, amount in requests:
        used = min(amount, released.get(name, 0))
        add(released, ((name, used),), -1)
        add(idle, ((name, amount - used),), -1)


def _fitting(idle: dict[str, Sums], work: Work) -> int:
    return sum(slots(amounts, work.requests) for amounts in idle.values())
