"""What a policy file lets its plugins say, as far as a monitor must know it.

The one rule: read the file as the user wrote it; the scheduler's own reading of it is what is under test.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

QUEUE_PLUGINS = ("capacity", "proportion", "capacity-card")


class Rules:
    """A policy as the monitors see it: which plugin is there, with which switches and arguments."""

    def __init__(self, text: str) -> None:
        document: Any = yaml.safe_load(text) or {}
        document = document.get("default_scheduler_conf", document)
        tiers = document.get("tiers") or []
        self._plugins: dict[str, Mapping[str, Any]] = {
            str(plugin["name"]): plugin for tier in tiers for plugin in (tier or {}).get("plugins") or []
        }
        self.actions = [name.strip() for name in str(document.get("actions", "")).split(",")]

    def has(self, plugin: str) -> bool:
        return plugin in self._plugins

    def has_say(self, plugin: str, switch: str) -> bool:
        """Whether the plugin is there and its switch (``enableReclaimable``) is not off."""
        option = self._plugins.get(plugin)
        return option is not None and option.get(switch, True) is not False

    def argument(self, plugin: str, name: str) -> Any:
        return ((self._plugins.get(plugin) or {}).get("arguments") or {}).get(name)

    @property
    def queue_plugin(self) -> str:
        """The plugin that governs queues, or empty."""
        return next((name for name in QUEUE_PLUGINS if name in self._plugins), "")

    @property
    def is_tree(self) -> bool:
        """Whether queues form a tree."""
        return (self._plugins.get("capacity") or {}).get("enableHierarchy") is True
