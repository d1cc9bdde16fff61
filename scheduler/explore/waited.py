"""Promise `waited`: under `sla`, a job that has waited its time keeps the room that it has found.

A gang needs more room than there is, and holds what it found until the rest follows. No job of its queue that is
submitted later may start on that room. The promise is judged where only one job waits before a step, and no plugin
limits queues, so that all idle room in which the pods of the gang fit is its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..incident.case import Case, Work
from ..incident.play import PAUSE, Happened, Story, policy_of
from ..model.times import duration
from ..policy.model import Policy
from .timeline import Breach, Sums, add, closed_at, idle_of, moments, slots, steps_of

_LIMITING = ("capacity", "proportion", "capacity-card", "resourcequota", "nodegroup", "network-topology-aware", "cdp")
"""Plugins that may keep a job from room on a node."""


def lost_holds(case: Case, story: Story) -> Iterator[Breach]:
    """Yield jobs that start on room which an earlier job holds."""
    patience = _waiting_time(policy_of(case.policy))
    if patience is None or len(case.policies) > 1:
        return
    jobs, steps = {work.name: work for work in case.jobs}, steps_of(case)
    for moment in moments(case, story):
        held = _holder(case, story, moment.step, steps)
        if held is None or PAUSE * (moment.step - steps[held.name]) < patience:
            continue
        idle = idle_of(moment.nodes, ((pod.node, pod.job.requests) for pod in moment.held.values()))
        for act in moment.acts_of(Happened.PLACED):
            if act.node not in idle or act.job not in jobs:
                continue
            before = _fitting(idle, held)
            add(idle[act.node], jobs[act.job].requests, -1)
            is_later = steps[act.job] > steps[held.name] and jobs[act.job].queue == held.queue
            if is_later and _fitting(idle, held) < min(before, held.minimum):
                yield Breach("hold", f"{act.pod} takes room on {act.node} that {held.name} holds", act.job)


def _waiting_time(policy: Policy) -> float | None:
    """Return after how many seconds jobs hold room in the order of their age; None if they do not."""
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
    if not 0 < step <= len(story.rests):
        return None
    before, closed = story.rests[step - 1], closed_at(case, step)
    placed = before.placed
    over = case.completed | case.failed
    waiting = [work for work in case.jobs if steps[work.name] < step and len(placed.get(work.name, ())) < work.pods]
    if len(waiting) != 1 or waiting[0].name in over or placed.get(waiting[0].name) or waiting[0].queue in closed:
        return None
    is_admitted = "enqueue" not in policy_of(case.policy).actions or before.phases.get(waiting[0].name) == "Inqueue"
    return waiting[0] if is_admitted and any(amount for _, amount in waiting[0].requests) else None


def _fitting(idle: dict[str, Sums], work: Work) -> int:
    """Return how many pods of a job fit on idle room."""
    return sum(slots(one, work.requests) for one in idle.values())
