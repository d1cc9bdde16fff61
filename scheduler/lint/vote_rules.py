"""Report votes on victims that a policy ignores, or counts too late.

The plugins that vote on the victims of an action follow from the hooks that they implement; there is no second list.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..policy.loader import Document
from ..policy.model import PluginOption, Policy
from ..policy.schema import EVICTING, PLUGINS

Found = Iterator[tuple[str, str, str]]
"""Field, text, remedy."""

UNIT_HOOKS = {"reclaim": "reclaim_unit", "preempt": "preempt_unit"}
"""The hooks whose protections hold in every tier, whichever tier decides."""


def evicting(policy: Policy) -> list[str]:
    """Return the actions of a policy that evict."""
    return [action for action in policy.actions if action in EVICTING]


def voters(policy: Policy, action: str) -> list[tuple[int, PluginOption]]:
    """Return the plugins that vote on the victims of an action, each with its tier, from 0."""
    switch = EVICTING[action]
    return [
        (number, option)
        for number, tier in enumerate(policy.tiers)
        for option in tier
        if switch in PLUGINS[option.name].switches and option.enabled(switch)
    ]


def tiers(document: Document) -> Found:
    """Report plugins in lower tiers whose votes are ignored, or counted after gang's."""
    for action in evicting(document.policy):
        votes = voters(document.policy, action)
        first = votes[0][0] if votes else 0
        above = [option.name for tier, option in votes if tier == first]
        below = [option.name for tier, option in votes if tier > first]
        if above == ["gang"]:
            continue
        if "gang" in above and below:
            below_decides = f"where gang permits nothing, tier {first + 2} decides without it"
            text = f"{action}: {below_decides}, and whole gangs may be evicted"
            others = ", ".join(["gang", *below[:-1]])
            remedy = f"to keep gangs whole and running, put {others} and {below[-1]} into one tier"
            yield document.places["gang"], text, remedy
        for name in below:
            if UNIT_HOOKS[action] not in PLUGINS[name].hooks:
                text = f"{action}: tier {first + 1} ({', '.join(above)}) decides, and the vote of {name} is ignored"
                yield document.places[name], text, f"put {name} into tier {first + 1}"
