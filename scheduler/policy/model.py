"""The policy: the actions that run, and the plugins with their tiers, switches and arguments.

A `Policy` is complete: `PluginOption.enabled` also has a value for switches that the file does not set. For an invalid
file, no `Policy` is created: `scheduler.policy.loader` rejects the file with line and field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

OFF_BY_DEFAULT = frozenset({"enableHierarchy", "EnabledClusterOrder"})
"""Switches that are off by default, as in Volcano. All others are on by default."""


@dataclass(frozen=True, slots=True)
class PluginOption:
    """One plugin of one tier. `switches` has only the switches that the file sets, in Volcano's spelling."""

    name: str
    switches: Mapping[str, bool] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def enabled(self, switch: str) -> bool:
        return self.switches.get(switch, switch not in OFF_BY_DEFAULT)


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy; `configurations` are the arguments of actions, by action."""

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginOption, ...], ...]
    configurations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def plugin(self, name: str) -> PluginOption | None:
        """Return the option of a plugin, or None if the policy does not use it."""
        return next((option for tier in self.tiers for option in tier if option.name == name), None)
