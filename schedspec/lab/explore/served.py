"""Promises about the order, the limits and the places of service.

* `order`: of equal jobs of one queue, the job with the higher priority starts first, or else the older job; where only
  the queues differ, the job of the queue with the higher priority starts first.
* `admitted`: no job is admitted whose minimum exceeds the limit of its queue, and none is placed in a closed queue.
* `lent`: no queue holds what is guaranteed to other queues.
* `waited`: under `sla`, no later job of its queue starts on capacity that a gang which does not fit yet has reserved. A
  later job may start on what is released at that moment, which its victims held. Judged where only one job waits before
  a step, and no plugin limits queues: all idle capacity on which pods of the gang fit is then reserved for it.
* `close`: a gang that prefers a rack is in one rack, if a rack could hold all of its pods. Judged where all of its pods
  start at one moment, while no pod terminates; pods placed at the same moment count as pods on the nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from ...scheduler.model.times import duration
from ...scheduler.policy.model import Policy
from ..reduce.case import PREFERRED, Amounts, Case, CaseQueue, Work
from ..reduce.play import PAUSE, Happened, Story, policy_of
from .owed import needs_one_place
from .timeline import Moment, RuleViolation, Sums, add, closed_at, idle_of, moments, racks_at, slots, steps_of, sum_of

_QUEUE_PLUGINS = ("capacity", "proportion")
_OTHER_ORDERS = ("sla", "resourcequota", "nodegroup", "network-topology-aware", "cdp")
"""Plugins for which equal jobs may differ."""


def out_of_order(case: Case, story: Story) -> Iterator[RuleViolation]:
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
                    yield RuleViolation("job", f"{late.name} starts before {first.name}, although {why}", first.name)
                elif first.queue != late.queue and _is_later_queue(moment, first, late, waiting, story):
                    text = f"{late.name} starts before {first.name}, whose queue has a higher priority"
                    yield RuleViolation("queue", text, first.name)
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


def admitted_above_limits(case: Case, story: Story) -> Iterator[RuleViolation]:
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
                    yield RuleViolation("limit", text, work.name)
                    break


def served_in_closed_queues(case: Case, story: Story) -> Iterator[RuleViolation]:
    """Yield pods that are placed although their queue is closed. Only queue plugins keep a queue closed."""
    queues = {work.name: work.queue for work in case.jobs}
    for moment in moments(case, story) if closed_at(case, len(case.steps)) else ():
        if any(moment.policy.plugin(name) is not None for name in (*_QUEUE_PLUGINS, "capacity-card")):
            closed = closed_at(case, moment.step)
            placed = (act for act in moment.acts_of(Happened.PLACED) if queues.get(act.job) in closed)
            yield from (RuleViolation("closed", f"{act.pod} is placed in a closed queue", act.job) for act in placed)


def lent_guarantees(case: Case, story: Story) -> Iterator[RuleViolation]:
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
                yield RuleViolation("guarantee", text, next(work.name for work in placed if work.queue == queue.name))


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


_PLUGIN, _SWITCH = "network-topology-aware", "enabledHyperNodeGradient"
_OTHER_PLACES = ("nodegroup", "deviceshare", "capacity-card")
"""Plugins that choose among nodes for other reasons."""


def spread_gangs(case: Case, story: Story) -> Iterator[RuleViolation]:
    """Yield gangs that are spread over racks although one rack could hold them."""
    jobs = {work.name: work for work in case.jobs if work.rack == PREFERRED and work.pods == work.minimum}
    for moment in moments(case, story) if jobs else ():
        plugin = moment.policy.plugin(_PLUGIN)
        prefers_one_rack = plugin is not None and plugin.enabled(_SWITCH)
        is_quiet = not moment.leaving and not any(moment.acts_of(Happened.EVICTED))
        if not (prefers_one_rack and is_quiet) or any(moment.policy.plugin(name) is not None for name in _OTHER_PLACES):
            continue
        racks = racks_at(case, moment.step)
        for name in sorted({act.job for act in moment.acts_of(Happened.PLACED)} & jobs.keys()):
            own = {racks[act.node] for act in moment.acts_of(Happened.PLACED) if act.job == name}
            whole = sum(act.job == name for act in moment.acts_of(Happened.PLACED)) == jobs[name].pods
            if whole and len(own) > 1 and (rack := _sufficient_rack(case, moment, jobs[name], racks)):
                yield RuleViolation(
                    "rack", f"{name} is spread over racks although {rack} could hold all of its pods", name
                )


def _sufficient_rack(case: Case, moment: Moment, work: Work, racks: dict[str, str]) -> str:
    """Return a rack that could hold all pods of a job beside all other pods; empty if there is none."""
    requests = {job.name: job.requests for job in case.jobs}
    holding = [(held.node, held.job.requests) for held in moment.held.values()]
    holding += [(act.node, requests[act.job]) for act in moment.acts_of(Happened.PLACED) if act.job != work.name]
    fitting = Counter[str]()
    for node, idle in idle_of(moment.nodes, holding).items():
        fitting[racks[node]] += slots(idle, work.requests)
    return next((rack for rack, pods in sorted(fitting.items()) if rack and pods >= work.pods), "")


_LIMITING = ("capacity", "proportion", "capacity-card", "resourcequota", "nodegroup", "network-topology-aware", "cdp")
"""Plugins that may keep a job off a node."""


def lost_holds(case: Case, story: Story) -> Iterator[RuleViolation]:
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
                yield RuleViolation("hold", text, act.job)


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
