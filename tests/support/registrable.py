"""Plugins that exist for one test only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from scheduler.plugins import PLUGINS
from scheduler.policy import schema

Registrable = Callable[[str], None]


@pytest.fixture
def registrable(monkeypatch: pytest.MonkeyPatch) -> Registrable:
    """Call it with the name of a plugin before its class is made: the plugin is forgotten when the test ends."""

    def announce(name: str) -> None:
        registries: tuple[dict[str, Any], ...] = (PLUGINS, schema.PLUGINS)
        for registry in registries:
            monkeypatch.setitem(registry, name, None)
            del registry[name]

    return announce
