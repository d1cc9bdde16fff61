"""Where things are on this machine. The only module that decides a path outside of the one it is given."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import platformdirs

from .. import distribution
from .protocol import SettingsError

_MIN_TMPFS_FREE = 1 << 30
"""etcd allocates some 130 MB at once and grows; a container's default /dev/shm of 64 MB would break it."""


def kind_config() -> Path:
    """The folder kind-config/: pinned modules, KWOK's stages, configurations. Raises SettingsError."""
    return part("kind-config")


def part(name: str) -> Path:
    """A folder of this distribution. Raises SettingsError where it is not there."""
    found = distribution.folder(name)
    if not found.is_dir():
        raise SettingsError(
            f"the folder {name}/ is not there", str(found), "take a complete checkout, or install the package again"
        )
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
