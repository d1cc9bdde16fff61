"""Redact a policy: keep what influences decisions, and replace the labels that its rules name.

Comments, sources of metrics, arguments without effect, and everything around the policy in its file are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import yaml

from ...scheduler import plugins as _plugins  # noqa: F401 - importing them declares their arguments
from ...scheduler.policy.loader import WRAPPER, plain_text
from ...scheduler.policy.schema import PLUGINS, RULES, Argument

_KEPT = ("actions", "configurations", "tiers")
Labels = dict[str, str]


class PolicyText:
    """A policy as plain data, for redaction."""

    def __init__(self, text: str) -> None:
        found: Any = yaml.safe_load(plain_text(text))
        found = found.get(WRAPPER, found)
        self._fields = {name: value for name, value in found.items() if name in _KEPT}

    def rules(self) -> Iterator[Labels]:
        """Yield the labels of each rule about pods with certain labels."""
        for arguments, name, rule in self._arguments():
            if rule.kind == RULES:
                yield from arguments[name]

    def redacted(self, replaced: Callable[[Labels], Labels]) -> str:
        """Return the policy with replaced labels in its rules. This object must not be used afterwards."""
        for arguments, name, rule in [*self._arguments()]:
            if rule.ignored:
                del arguments[name]
            elif rule.kind == RULES:
                arguments[name] = [replaced(labels) for labels in arguments[name]]
        dumped: str = yaml.safe_dump(self._fields, sort_keys=False)
        return dumped

    def _arguments(self) -> Iterator[tuple[dict[str, Any], str, Argument]]:
        """Yield, for each known argument, the arguments of its plugin, its name and its rule."""
        for plugin in (plugin for tier in self._fields.get("tiers") or () for plugin in tier.get("plugins") or ()):
            known = PLUGINS.get(plugin["name"])
            arguments = plugin.get("arguments") or {}
            for name in arguments:
                rule = known.argument(name) if known is not None else None
                if rule is not None:
                    yield arguments, name, rule
