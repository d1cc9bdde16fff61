"""The plugins, by the name that a policy calls them. Each is a class, one module each (see ``docs/plugins.md``)."""

from __future__ import annotations

from typing import Any

PLUGINS: dict[str, type[Any]] = {}
