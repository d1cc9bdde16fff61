"""Where things are on this machine. The only module that decides a path outside of the one it is given."""

from __future__ import annotations

import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import platformdirs

from .protocol import SettingsError

_MIN_TMPFS_FREE = 1 << 30
"""etcd allocates some 130 MB at once and grows; a container's default /dev/shm of 64 MB would break it."""


@cache
def kind_config() -> Path:
    """The folder kind-config/: beside the packages in a checkout, inside `harness` in an installed wheel."""
    here = Path(__file__).resolve()
    for candidate in (here.parents[2] / "kind-config", here.parents[1] / "kind-config"):
        if (candidate / "tools").is_dir():
            return candidate
    raise SettingsError(
        "the folder kind-config (pinned modules, KWOK stages) is not there",
        str(here.parents[2]),
        "run from a complete checkout, or reinstall the package",
    )


def checkout(folder: str) -> Path:
    """A top folder of the checkout that no installed wheel has. Raises SettingsError where it is not there."""
    found = Path(__file__).resolve().parents[2] / folder
    if not found.is_dir():
        raise SettingsError(f"the folder {folder}/ is not there", str(found), "run from a complete checkout")
    return found


def cache_root() -> Path:
    """Programs and images: expensive to make, kept between runs. $SCHEDSPEC_CACHE overrides."""
    return _overridable("SCHEDSPEC_CACHE", platformdirs.user_cache_path("schedspec"))


def state_root() -> Path:
    """What runs on this machine: one record a cluster. $SCHEDSPEC_STATE overrides."""
    return _overridable("SCHEDSPEC_STATE", platformdirs.user_state_path("schedspec"))


def new_home(name: str) -> Path:
    """A new directory for a cluster's files: in memory where there is room for etcd, else with the temporary files."""
    memory = Path("/dev/shm")  # noqa: S108 - a tmpfs is the point
    in_memory = memory.is_dir() and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free >= _MIN_TMPFS_FREE
    return Path(tempfile.mkdtemp(prefix=f"schedspec-{name}-", dir=memory if in_memory else None))


def _overridable(variable: str, default: Path) -> Path:
    named = os.environ.get(variable)
    path = Path(named).expanduser().absolute() if named else default
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingsError(
            f"cannot make the folder: {error.strerror}", str(path), f"set {variable} to a folder that you may write to"
        ) from error
    return path
