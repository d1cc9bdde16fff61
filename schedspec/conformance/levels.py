"""Conformance levels of scenarios, as tags. The list is closed; each scenario of the suite has exactly one level."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final


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
