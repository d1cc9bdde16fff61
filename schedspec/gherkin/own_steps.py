"""Register the sentences of the project under test.

A project adds sentences in pytest-bdd's usual ways, in a conftest or in a plugin, or in files and folders that the
setting `schedspec_steps` names: each module of them is a plugin. Nothing of a project is imported unless a setting
names it. The project's modules are registered after ours: if two sentences match, pytest-bdd calls the project's.
"""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest

from .. import distribution
from . import bdd


def register_own(config: pytest.Config, named: Sequence[Path]) -> None:
    """Register the modules of these files and folders.

    Raises:
        pytest.UsageError: A module cannot be imported.
    """
    for path in named:
        for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
            if file.stem != "__init__" and not file.resolve().is_relative_to(distribution.folder("steps")):
                config.pluginmanager.register(_imported(file, config), f"steps.{file.stem}")


def _imported(file: Path, config: pytest.Config) -> ModuleType:
    try:
        return bdd.import_beside(file, config)
    except ImportError as problem:
        what, do_next = str(problem), "install the module that is missing, or remove the file from schedspec_steps"
    except SyntaxError as problem:
        what, do_next = f"line {problem.lineno}: {problem.msg}", "correct the file"
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - any error in a project's file is one of its own
        lines = [frame.lineno for frame in traceback.extract_tb(problem.__traceback__) if frame.filename == str(file)]
        what = f"line {lines[-1] if lines else 1}: {type(problem).__name__}: {problem}"
        do_next = "correct the file"
    raise pytest.UsageError(f"{file}: {what}\n  where: schedspec_steps in the ini file\n  do next: {do_next}")
