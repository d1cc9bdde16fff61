"""Find the parts of this distribution: beside this package in a checkout, inside of it in an installed wheel.

Only this module knows where the scheduler and the steps are. It finds them by name and never imports them statically,
because the harness and the scheduler under test meet through Kubernetes only. A wheel installs no top-level package
called `steps` or `scheduler`, so that a user's own packages of these names keep working.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module, metadata
from pathlib import Path
from types import ModuleType

_PACKAGE = Path(__file__).resolve().parent
INSTALLED = (_PACKAGE / "scheduler").is_dir()
"""True in an installed wheel, False in a checkout."""
_ROOT = _PACKAGE if INSTALLED else _PACKAGE.parent


def folder(name: str) -> Path:
    """Return the folder `templates`, `kind-config`, `scheduler`, `steps`, `deploy` or `features`. It may be missing."""
    return _ROOT / name


def module(name: str) -> str:
    """Return the import name of a module of `scheduler` or `steps`: `schedspec.scheduler.lint` in a wheel."""
    return f"{__package__}.{name}" if INSTALLED else name


def load(name: str) -> ModuleType:
    """Import a module of our `scheduler` or `steps`, in a checkout and in a wheel. Raises ImportError."""
    if not INSTALLED and str(_ROOT) not in sys.path:
        sys.path.insert(0, str(_ROOT))
    return import_module(module(name))


def scheduler_command() -> tuple[str, ...]:
    """Return our scheduler's command, without its arguments; with `environment` it works in any folder."""
    return (sys.executable, "-P", "-m", module("scheduler"))


def environment() -> dict[str, str]:
    """Return the environment of a Python process that imports schedspec from any working directory."""
    if INSTALLED:
        return dict(os.environ)
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def version() -> str:
    """Return the version of schedspec; empty in a checkout that is not installed."""
    try:
        return metadata.version("schedspec")
    except metadata.PackageNotFoundError:
        return ""


def prompt() -> str:
    """Return the command that starts our command line in this installation."""
    return "schedspec" if INSTALLED else "python -m schedspec"
