"""Entry point that pytest loads in every run: import the schedspec plugin only in runs that use schedspec.

The one rule: a run that does not use schedspec is the same with and without the installed wheel. It has no option,
no marker, no fixture, no file and no import of ours but this module. A run uses schedspec if

1. its ini file sets an option `schedspec_…`,
2. its command line names a feature file, or
3. it names this plugin: `-p schedspec.plugin` (as `schedspec test` does), `PYTEST_PLUGINS`, or `pytest_plugins` of a
   conftest.

The plugin itself is `run_plugin`: its hooks call the other modules.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pytest

NAME = __name__
_RUN = f"{__name__}.run_plugin"


def pytest_addoption(pluginmanager: pytest.PytestPluginManager) -> None:
    """Load the plugin early enough to declare its options; no conftest is loaded yet."""
    config: Any = pluginmanager.get_plugin("pytestconfig")
    if config is None or _is_used(config):
        load(pluginmanager)


def pytest_plugin_registered(plugin: object, manager: pytest.PytestPluginManager) -> None:
    """Load the plugin for a conftest or another plugin that names it."""
    named = getattr(plugin, "pytest_plugins", ())
    if NAME in ([named] if isinstance(named, str) else named):
        load(manager)


def load(manager: pytest.PytestPluginManager) -> None:
    """Import and register the plugin, once."""
    if not manager.has_plugin(_RUN):
        from . import run_plugin  # noqa: PLC0415 - only in runs that use schedspec

        manager.register(run_plugin, _RUN)


def _is_used(config: Any) -> bool:
    options = getattr(config, "known_args_namespace", config.option)
    named = [*(getattr(options, "plugins", None) or ()), *os.environ.get("PYTEST_PLUGINS", "").split(",")]
    settings = config._inicfg if hasattr(config, "_inicfg") else config.inicfg  # pytest warns about the second one
    return (
        NAME in map(str.strip, named)
        or any(str(name).startswith("schedspec_") for name in settings)
        or any(names_feature(argument) for argument in getattr(options, "file_or_dir", None) or ())
        or hasattr(config.option, "schedspec_cluster")  # a worker of xdist, whose controller has the plugin
    )


def names_feature(argument: str) -> bool:
    """Whether an argument is a feature file, or a line or a scenario of one."""
    return str(argument).partition("::")[0].rstrip(":0123456789").endswith(".feature")
