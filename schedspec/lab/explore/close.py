"""Promise `close`: a gang that prefers a rack is in one rack, if a rack could hold all of its pods.

Only gangs whose pods all start at one moment, while no pod terminates, are judged. A rack offers the capacity of its
nodes that no pod holds; pods of other jobs that are placed at the same moment count as pods on the nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..reduce.case import PREFERRED, Case, Work
from ..reduce.play import Happened, Story
from .timeline import Breach, Moment, idle_of, moments, racks_at, slots

_PLUGIN, _SWITCH = "network-topology-aware", "enabledHyperNodeGradient"
_OTHER_PLACES = ("nodegroup", "deviceshare", "capacity-card")
"""Plugins that choose among nodes for other reasons."""


def spread_gangs(case: Case, story: Story) -> Iterator[Breach]:
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
                yield Breach("rack", f"{name} is spread over racks although {rack} could hold all of its pods", name)


def _sufficient_rack(case: Case, moment: Moment, work: Work, racks: dict[str, str]) -> str:
    """Return a rack that could hold all pods of a job beside all other pods; empty if there is none."""
    requests = {job.name: job.requests for job in case.jobs}
    holding = [(held.node, held.job.requests) for held in moment.held.values()]
    holding += [(act.node, requests[act.job]) for act in moment.acts_of(Happened.PLACED) if act.job != work.name]
    fitting = Counter[str]()
    for node, idle in idle_of(moment.nodes, holding).items():
        fitting[racks[node]] += slots(idle, work.requests)
    return next((rack for rack, pods in sorted(fitting.items()) if rack and pods >= work.pods), "")
