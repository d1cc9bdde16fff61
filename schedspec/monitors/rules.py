"""Read the parts of a policy file that monitors need: its plugins, their switches and arguments.

The monitors parse the file themselves, because the scheduler's own reading is under test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

ROOT = "root"
"""The queue above all queues of a tree. It has neither limits nor guarantees."""
CARD_PLUGIN = "capacity-card"
QUEUE_PLUGINS = ("capacity", "proportion", CARD_PLUGIN)


class Rules:
    """The plugins of a policy with their switches and arguments."""

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

    def is_enabled(self, plugin: str, switch: str) -> bool:
        """Whether the policy has the plugin and its switch (for instance `enableReclaimable`) is not off."""
        option = self._plugins.get(plugin)
        return option is not None and option.get(switch, True) is not False

    def argument(self, plugin: str, name: str) -> Any:
        return ((self._plugins.get(plugin) or {}).get("arguments") or {}).get(name)

    @property
    def queue_plugin(self) -> str:
        """The plugin that manages queues, or an empty text."""
        return next((name for name in QUEUE_PLUGINS if name in self._plugins), "")

    @property
    def counts_guarantees(self) -> bool:
        """Whether guarantees also lower the limits of other queues and bound reclaim; each queue plugin keeps them."""
        return self.queue_plugin in ("capacity", "proportion")

    @property
    def are_cards_unlimited(self) -> bool:
        """Whether pods with a card need no quota of cpu and memory."""
        return bool(self.argument(CARD_PLUGIN, "cardUnlimitedCpuMemory"))

    @property
    def is_tree(self) -> bool:
        """Whether queues form a tree."""
        return (self._plugins.get("capacity") or {}).get("enableHierarchy") is True

    def lineage(self, queue: str, parent_of: Callable[[str], object]) -> Iterator[str]:
        """Yield a queue and, where queues form a tree, its ancestors below the root."""
        return (name for name in (lineage(queue, parent_of) if self.is_tree else (queue,)) if name not in ("", ROOT))


def lineage(queue: str, parent_of: Callable[[str], object]) -> Iterator[str]:
    """Yield a queue and all of its ancestors; a circle of parents ends where it closes."""
    seen: set[str] = set()
    while queue and queue not in seen:
        yield queue
        seen.add(queue)
        queue = str(parent_of(queue) or "")
