"""Votes on victims that are not asked for, or are asked too late.

The one rule: which plugins vote on the victims of an action follows from the hooks that they implement; nothing is
listed twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..policy.loader import Document
from ..policy.model import PluginOption, Policy
from ..policy.schema import PLUGINS

Found = Iterator[tuple[str, str, str]]
"""Field, text, remedy."""

EVICTING = {"reclaim": "enableReclaimable", "preempt": "enablePreemptable"}
"""The actions that evict, with the switch of a plugin's say in whom."""
UNIT_HOOKS = {"reclaim": "reclaim_unit", "preempt": "preempt_unit"}
"""The hooks that are asked in any tier: what they protect is protected whatever tier decides."""


def evicting(policy: Policy) -> list[str]:
    """The actions of a policy that evict."""
    return [action for action in policy.actions if action in EVICTING]


def _voters(policy: Policy, action: str) -> list[tuple[int, PluginOption]]:
    """The plugins with a say in whom the action evicts, each with its tier, from 0."""
    switch = EVICTING[action]
    return [
        (number, option)
        for number, tier in enumerate(policy.tiers)
        for option in tier
        if switch in PLUGINS[option.name].switches and option.enabled(switch)
    ]


def tiers(document: Document) -> Found:
    """Who in a lower tier is not asked, or is asked after gang."""
    for action in evicting(document.policy):
        say = _voters(document.policy, action)
        first = say[0][0] if say else 0
        above = [option.name for tier, option in say if tier == first]
        below = [option.name for tier, option in say if tier > first]
        if above == ["gang"]:
            continue
        if "gang" in above and below:
            below_decides = f"where gang permits nothing, tier {first + 2} decides without it"
            text = f"{action}: {below_decides}, and whole gangs may be evicted"
            remedy = f"to keep gangs whole and running, put gang and {below[0]} into one tier"
            yield document.places["gang"], text, remedy
        for name in below:
            if UNIT_HOOKS[action] not in PLUGINS[name].hooks:
                text = f"{action}: tier {first + 1} ({', '.join(above)}) decides, and {name} is not asked"
                yield document.places[name], text, f"put {name} into tier {first + 1}"
