"""Conformance levels of scenarios, as tags. The list is closed; each scenario of the suite has exactly one level."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, NamedTuple

from .. import distribution
from ..api.capabilities import Capability
from ..monitors.rules import Rules


class Issue(NamedTuple):
    """An issue of another scheduler."""

    url: str
    affected: str
    """The scheduler, with the version if the scenario was seen to fail with it."""
    repaired: str = ""
    """The version that fixes the issue; empty if no release does."""


_KUEUE: Final = "https://github.com/kubernetes-sigs/kueue/issues"
_VOLCANO: Final = "https://github.com/volcano-sh/volcano/issues"

ISSUES: Final[dict[str, Issue]] = {
    "kueue-issue-13479": Issue(f"{_KUEUE}/13479", "kueue", repaired="v0.19.1"),
    "kueue-issue-13607": Issue(f"{_KUEUE}/13607", "kueue", repaired="v0.19.1"),
    "kueue-issue-13662": Issue(f"{_KUEUE}/13662", "kueue", repaired="v0.19.2"),
    "volcano-issue-3673": Issue(f"{_VOLCANO}/3673", "volcano", repaired="v1.15.0"),
    "volcano-issue-4679": Issue(f"{_VOLCANO}/4679", "volcano v1.14.1"),
    "volcano-issue-4947": Issue(f"{_VOLCANO}/4947", "volcano v1.14.1"),
    "volcano-issue-5805": Issue(f"{_VOLCANO}/5805", "volcano v1.14.1"),
    "volcano-issue-5896": Issue(f"{_VOLCANO}/5896", "volcano v1.14.1"),
    "volcano-issue-5994": Issue(f"{_VOLCANO}/5994", "volcano"),
}


_BY_PLUGIN = {"capacity": Capability.AMOUNTS, "capacity-card": Capability.CARDS}
_BY_NAME = {"share-of-use": Capability.PAST_USE}
"""Policies that mean more than our file of this name says."""


def needs_of_policy(name: str) -> set[Capability]:
    """Return the capabilities that `templates/policies/NAME.yaml` needs; only POLICY if the name is unknown."""
    file = distribution.folder("templates") / "policies" / f"{name}.yaml"
    rules = Rules(file.read_text("utf-8") if file.is_file() else "")
    found = {Capability.POLICY, *([_BY_PLUGIN[rules.queue_plugin]] if rules.queue_plugin in _BY_PLUGIN else [])}
    found |= {Capability.ACTIONS} if file.is_file() and _changes_order(rules) else set()
    found |= {Capability.NODE_ORDER} if rules.has("binpack") or rules.has("nodegroup") else set()
    found |= {_BY_NAME[name]} if name in _BY_NAME else set()
    return found | {Capability.HIERARCHY} if rules.is_tree else found


def _changes_order(rules: Rules) -> bool:
    """Whether the policy leaves out backfill, reclaims before it allocates, or orders by waiting time."""
    before = rules.actions[: rules.actions.index("allocate")] if "allocate" in rules.actions else []
    return "backfill" not in rules.actions or "reclaim" in before or rules.has("sla")


class Level(StrEnum):
    """A level; the value is the tag."""

    CORE = "core"
    EXTENDED = "extended"
    DIALECT = "dialect"


MEANING: Final[dict[Level, str]] = {
    Level.CORE: "what every queue scheduler owes: all or none, quota as a ceiling, priority, no needless eviction",
    Level.EXTENDED: "what a scheduler with the capability owes: lending, reclaim, hierarchy, shares, gang preemption",
    Level.DIALECT: "behaviour of Volcano's objects and policies: phases, job policies, actions, tiers",
}
"""Description of each level for users."""


def of_tags(tags: Iterable[str]) -> Level | None:
    """Return the level among the tags of a scenario, or None if there is none or more than one."""
    found = {Level(tag) for tag in tags if tag in set(Level)}
    return found.pop() if len(found) == 1 else None
