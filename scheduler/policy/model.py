"""The policy: which actions run, which plugins have a say, in which tier, with which arguments.

The one rule: a :class:`Policy` is plain data and total (every plugin option answers for every switch); what a file
may not say is refused by :mod:`scheduler.policy.loader`, with line and field, before a Policy exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OFF_BY_DEFAULT = frozenset({"enableHierarchy", "EnabledClusterOrder"})
"""Switches that Volcano leaves off unless the file turns them on; every other one is on."""


@dataclass(frozen=True, slots=True)
class PluginOption:
    """One plugin of one tier. ``switches`` are those that the file sets, in Volcano's spelling."""

    name: str
    switches: Mapping[str, bool] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def enabled(self, switch: str) -> bool:
        return self.switches.get(switch, switch not in OFF_BY_DEFAULT)


@dataclass(frozen=True, slots=True)
class Policy:
    """``configurations`` are the arguments of actions, by action."""

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginOption, ...], ...]
    configurations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def plugin(self, name: str) -> PluginOption | None:
        """The option of a plugin, or None where the policy does not use it."""
        return next((option for tier in self.tiers for option in tier if option.name == name), None)
