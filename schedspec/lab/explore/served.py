"""Promises about the order and the limits of service: `order`, `admitted` and `lent`.

* `order`: of equal jobs of one queue, the job with the higher priority starts first, or else the older job; where only
  the queues differ, the job of the queue with the higher priority starts first.
* `admitted`: no job is admitted whose minimum exceeds the limit of its queue, and none is placed in a closed queue.
* `lent`: no queue holds what is guaranteed to other queues.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...scheduler.policy.model import Policy
from ..reduce.case import Case, CaseQueue, Work
from ..reduce.play import Happened, Story
from .timeline import Breach, Moment, Sums, closed_at, moments, steps_of, sum_of

_QUEUE_PLUGINS = ("capacity", "proportion")
_OTHER_ORDERS = ("sla", "resourcequota", "nodegroup", "network-topology-aware", "cdp")
"""Plugins for which equal jobs may differ."""


def out_of_order(case: Case, story: Story) -> Iterator[Breach]:
    """Yield jobs that wait although a job that comes after them in the order of service starts."""
    ended = case.completed | case.failed
    jobs = {work.name: work for work in case.jobs}
    ranks = case.priorities
    steps, known = steps_of(case), set[str]()
    for moment in moments(case, story):
        placed = {act.job for act in moment.acts_of(Happened.PLACED)}
        if any(moment.policy.plugin(name) is not None for name in _OTHER_ORDERS):
            known |= placed
            continue
        closed = closed_at(case, moment.step)
        placed_later = story.settled[moment.step].placed if moment.step < len(story.settled) else {}
        waiting = [
            work
            for name, work in jobs.items()
            if name not in known | placed | ended
            and work.queue not in closed
            and steps[name] <= moment.step
            and not placed_later.get(name)
        ]
        for late in (jobs[name] for name in sorted(placed - known) if name in jobs):
            for first in waiting:
                if _shape(first) != _shape(late) or steps[first.name] > steps[late.name]:
                    continue
                more = ranks.get(first.priority, 0) - ranks.get(late.priority, 0)
                is_earlier = steps[first.name] < steps[late.name]
                if first.queue == late.queue and (more > 0 or (more == 0 and is_earlier)):
                    why = "its priority is higher" if more > 0 else "it is older"
                    yield Breach("job", f"{late.name} starts before {first.name}, although {why}", first.name)
                elif first.queue != late.queue and _is_later_queue(moment, first, late, waiting, story):
                    text = f"{late.name} starts before {first.name}, whose queue has a higher priority"
                    yield Breach("queue", text, first.name)
        known |= placed


def _shape(work: Work) -> Work:
    return replace(work, name="", queue="", priority="", preemptable=True)


def _is_later_queue(moment: Moment, first: Work, late: Work, waiting: list[Work], story: Story) -> bool:
    """Whether the priorities of two queues alone put `first` before the equal job `late`."""
    plugin, queues = moment.policy.plugin("capacity"), moment.queues
    one, other = queues.get(first.queue), queues.get(late.queue)
    if plugin is None or one is None or other is None or moment.policy.plugin("overcommit") is not None:
        return False
    is_plain = plugin.enabled("enableQueueOrder") and not plugin.enabled("enableHierarchy") and not one.capability
    is_alone = sum(work.queue == first.queue for work in waiting) == 1
    is_quiet = not any(act.what is Happened.EVICTED for act in story.acts if act.step == moment.step)
    is_free = not any(queue.guarantee for queue in queues.values())
    return is_plain and is_alone and is_quiet and is_free and one.priority > other.priority


def admitted_above_limits(case: Case, story: Story) -> Iterator[Breach]:
    """Yield admitted jobs whose minimum alone exceeds the limit of their queue."""
    jobs = {work.name: work for work in case.jobs}
    for moment in moments(case, story):
        if not _limits_hold(moment.policy, "enableJobEnqueued") or "enqueue" not in moment.policy.actions:
            continue
        for act in moment.acts_of(Happened.ADMITTED):
            work = jobs[act.job]
            queue = moment.queues.get(work.queue)
            limit = _limit(moment, queue, dict(queue.capability)) if queue is not None else {}
            for name, amount in work.requests:
                if amount * work.minimum > limit.get(name, amount * work.minimum):
                    text = f"{work.name} is admitted although its minimum exceeds the limit of queue {work.queue}"
                    yield Breach("limit", text, work.name)
                    break


def served_in_closed_queues(case: Case, story: Story) -> Iterator[Breach]:
    """Yield pods that are placed although their queue is closed. Only queue plugins keep a queue closed."""
    queues = {work.name: work.queue for work in case.jobs}
    for moment in moments(case, story) if closed_at(case, len(case.steps)) else ():
        if any(moment.policy.plugin(name) is not None for name in (*_QUEUE_PLUGINS, "capacity-card")):
            closed = closed_at(case, moment.step)
            placed = (act for act in moment.acts_of(Happened.PLACED) if queues.get(act.job) in closed)
            yield from (Breach("closed", f"{act.pod} is placed in a closed queue", act.job) for act in placed)


def lent_guarantees(case: Case, story: Story) -> Iterator[Breach]:
    """Yield placements by which a queue holds what is guaranteed to other queues."""
    jobs = {work.name: work for work in case.jobs}
    for moment in moments(case, story):
        if not _limits_hold(moment.policy, "enabledAllocatable"):
            continue
        evicted = {act.pod for act in moment.acts_of(Happened.EVICTED)}
        acts = [act for act in moment.acts_of(Happened.PLACED) if act.pod not in evicted]
        placed = [jobs[act.job] for act in acts if act.job in jobs]
        for queue in {work.queue: moment.queues.get(work.queue) for work in placed}.values():
            if queue is None or not any(one.guarantee for one in moment.queues.values() if one is not queue):
                continue
            own = [work.requests for work in placed if work.queue == queue.name]
            held = sum_of([*own, tuple(moment.least_held(queue.name).items())])
            limit = _limit(moment, queue, {})
            over = [name for name, _ in own[0] if held[name] > limit.get(name, held[name])]
            if over:
                text = f"queue {queue.name} holds {', '.join(over)} that other queues are guaranteed"
                yield Breach("guarantee", text, next(work.name for work in placed if work.queue == queue.name))


def _limits_hold(policy: Policy, switch: str) -> bool:
    """Whether only the amounts of flat queues limit their work, and no other plugin does."""
    if any(policy.plugin(name) is not None for name in ("capacity-card", "overcommit", "resourcequota", "sla")):
        return False
    plugins = [plugin for name in _QUEUE_PLUGINS if (plugin := policy.plugin(name)) is not None]
    return len(plugins) == 1 and plugins[0].enabled(switch) and not plugins[0].enabled("enableHierarchy")


def _limit(moment: Moment, queue: CaseQueue, most: Mapping[str, int]) -> Sums:
    """Return what a queue may hold: all nodes without the guarantees of other queues, and at most `most`."""
    kept = sum_of(other.guarantee for other in moment.queues.values() if other.name != queue.name)
    own = dict(queue.guarantee)
    limit = {name: max(amount - kept.get(name, 0), own.get(name, 0)) for name, amount in moment.total.items()}
    return {name: min(amount, most.get(name, amount)) for name, amount in limit.items()}
