"""Where sentences come from: ours, and those of the project that is tested.

A project has its own by pytest-bdd's usual ways, in a conftest or in a plugin, and in a folder `steps/` at its root,
each module of which is a plugin. They are registered after ours: of two that match, the project's is called.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

import pytest

from .. import distribution
from . import bdd

FOLDER = "steps"


def ours() -> Iterator[ModuleType]:
    """The modules of our steps, imported; they may import each other."""
    for module in iter_modules([str(distribution.folder(FOLDER))]):
        yield distribution.load(f"{FOLDER}.{module.name}")


def register_ours(manager: pytest.PytestPluginManager) -> None:
    """Before any conftest is, so that what a conftest says comes after."""
    for module in ours():
        if not manager.is_registered(module):
            manager.register(module, f"schedspec.{FOLDER}.{module.__name__.rpartition('.')[2]}")


def register_own(config: pytest.Config) -> None:
    """The modules of the project's folder `steps/`, if it has one that is not ours. Raises what an import raises."""
    folder = config.rootpath / FOLDER
    if not folder.is_dir() or folder == distribution.folder(FOLDER):
        return
    for file in sorted(folder.glob("*.py")):
        if file.stem != "__init__":
            config.pluginmanager.register(bdd.import_beside(file, config), f"{FOLDER}.{file.stem}")


def is_ours(definition: bdd.StepDefinition) -> bool:
    """True for a step of this distribution."""
    return Path(definition.path).is_relative_to(distribution.folder(FOLDER))
