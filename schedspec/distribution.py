"""Find the folders of this distribution: beside this package in a checkout, inside of it in an installed wheel.

`scheduler` and `steps` stand at the top of a checkout. There, links in this package give their modules the names that
they have in a wheel (`schedspec.scheduler.lint`), so that every import is one statement. A wheel installs no top-level
package called `steps` or `scheduler`, so that a user's own packages of these names keep working.
"""

from __future__ import annotations

import os
import sys
from importlib import metadata
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
INSTALLED = not (_PACKAGE / "scheduler").is_symlink()
"""True in an installed wheel, False in a checkout."""
_ROOT = _PACKAGE if INSTALLED else _PACKAGE.parent


def folder(name: str) -> Path:
    """Return the folder `templates`, `kind-config`, `scheduler`, `steps`, `deploy` or `features`. It may be missing."""
    return _ROOT / name


def is_of_project(file: Path) -> bool:
    """Whether a file of a traceback is the project's, and not of schedspec, an installed package or Python."""
    ours = (_PACKAGE, folder("scheduler"), folder("steps"))
    installed = {"site-packages", "dist-packages"} & set(file.parts)
    of_python = file.is_relative_to(Path(os.__file__).parent) or file.name.startswith("<")
    return not (installed or of_python or any(file.is_relative_to(folder) for folder in ours))


def scheduler_command() -> tuple[str, ...]:
    """Return our scheduler's command, without its arguments; with `environment` it works in any folder."""
    return (sys.executable, "-P", "-m", f"{__package__}.scheduler")


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
