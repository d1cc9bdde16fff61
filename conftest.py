"""What every run in this tree gets: the plugin, and all steps."""

from importlib import import_module
from pkgutil import iter_modules

import pytest

import steps

pytest_plugins = ["schedspec.plugin", "schedspec.plugin.monitor_plugin", "pytester"]


def pytest_configure(config: pytest.Config) -> None:
    """Every module of steps/ is a plugin; they may import each other, which `pytest_plugins` would not allow."""
    for module in iter_modules(steps.__path__, "steps."):
        config.pluginmanager.register(import_module(module.name), module.name)
