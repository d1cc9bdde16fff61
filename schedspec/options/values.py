"""Read the value of one option: from the command line, else from the ini file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from .flags import NOT_GIVEN, ini_name


def value(config: pytest.Config, flag: str) -> Any:
    """Return the value of the command line; if it has none (for a switch: False), the value of the ini file."""
    given = config.getoption(ini_name(flag))
    return config.getini(ini_name(flag)) if given is NOT_GIVEN or given is False else given


def text(config: pytest.Config, flag: str) -> str | None:
    """Return the value as a text, or None if it is empty or not given."""
    given = value(config, flag)
    return str(given).strip() or None if given is not None else None


def path(config: pytest.Config, flag: str) -> Path | None:
    """Return a path: relative to the working directory on the command line, to the ini file's folder in that file."""
    named = text(config, flag)
    if not named:
        return None
    given = config.getoption(ini_name(flag)) is not NOT_GIVEN
    return absolute(config, named) if given else (home(config) / named).absolute()


def home(config: pytest.Config) -> Path:
    """Return the folder of the ini file, else the root of the run."""
    return config.inipath.parent if config.inipath is not None else config.rootpath


def absolute(config: pytest.Config, relative: str) -> Path:
    """Return the absolute path of a path on the command line."""
    return (config.invocation_params.dir / relative).absolute()


def file(config: pytest.Config, flag: str) -> Path | None:
    """Return the path of an existing file. Raises pytest.UsageError."""
    named = path(config, flag)
    if named is not None and not named.is_file():
        raise refusal(flag, str(named), "is not a file", "name a file that exists")
    return named


def folder(config: pytest.Config, flag: str) -> Path | None:
    """Return the path of an existing folder. Raises pytest.UsageError."""
    named = path(config, flag)
    if named is not None and not named.is_dir():
        raise refusal(flag, str(named), "is not a folder", "name a folder that exists")
    return named


def refusal(flag: str, given: str, what: str, do_next: str) -> pytest.UsageError:
    """Return the error about an invalid value: what is wrong, where, and what to do next."""
    problem = what if repr(given) in what else f"{given!r} {what}"
    return pytest.UsageError(f"{problem}\n  where: --{flag} ({ini_name(flag)} in the ini file)\n  do next: {do_next}")
