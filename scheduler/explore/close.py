"""Promise `close`: a gang that prefers a rack is in one rack, if a rack had room for all of its pods.

Only gangs are judged that start whole at a moment in which no pod leaves. The room of a rack is what its nodes have
less what their pods hold, those included that are placed at the same moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..incident.case import PREFERRED, Case, Work
from ..incident.play import Happened, Story
from .timeline import Breach, Moment, idle_of, moments, racks_at, slots

_PLUGIN, _SWITCH = "network-topology-aware", "enabledHyperNodeGradient"
_OTHER_PLACES = ("nodegroup", "deviceshare", "capacity-card")
"""Plugins that choose among nodes for other reasons."""


def spread_gangs(case: Case, story: Story) -> Iterator[Breach]:
    """Yield gangs that are spread over racks, although one rack had room for them."""
    jobs = {work.name: work for work in case.jobs if work.rack == PREFERRED and work.pods == work.minimum}
    for moment in moments(case, story) if jobs else ():
        plugin = moment.policy.plugin(_PLUGIN)
        is_closest = plugin is not None and plugin.enabled(_SWITCH)
        is_quiet = not moment.leaving and not any(moment.acts_of(Happened.EVICTED))
        if not (is_closest and is_quiet) or any(moment.policy.plugin(name) is not None for name in _OTHER_PLACES):
            continue
        racks = racks_at(case, moment.step)
        for name in sorted({act.job for act in moment.acts_of(Happened.PLACED)} & jobs.keys()):
            own = {racks[act.node] for act in moment.acts_of(Happened.PLACED) if act.job == name}
            whole = sum(act.job == name for act in moment.acts_of(Happened.PLACED)) == jobs[name].pods
            if whole and len(own) > 1 and (rack := _rack_with_room(case, moment, jobs[name], racks)):
                yield Breach("rack", f"{name} is spread over racks, although {rack} had room for all of its pods", name)


def _rack_with_room(case: Case, moment: Moment, work: Work, racks: dict[str, str]) -> str:
    """Return a rack that has room for all pods of a job beside all other pods; empty if none has."""
    requests = {job.name: job.requests for job in case.jobs}
    taken = [(held.node, held.job.requests) for held in moment.held.values()]
    taken += [(act.node, requests[act.job]) for act in moment.acts_of(Happened.PLACED) if act.job != work.name]
    rooms = Counter[str]()
    for node, idle in idle_of(moment.nodes, taken).items():
        rooms[racks[node]] += slots(idle, work.requests)
    return next((rack for rack, room in sorted(rooms.items()) if rack and room >= work.pods), "")
