"""Register plugins for one test only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from schedspec.scheduler.plugins import PLUGINS
from schedspec.scheduler.policy import schema

Registrable = Callable[[str], None]


@pytest.fixture
def registrable(monkeypatch: pytest.MonkeyPatch) -> Registrable:
    """Return a function to call with a plugin's name before its class is defined; the test's end removes the plugin."""

    def announce(name: str) -> None:
        registries: tuple[dict[str, Any], ...] = (PLUGINS, schema.PLUGINS)
        for registry in registries:
            monkeypatch.setitem(registry, name, None)
            del registry[name]

    return announce
