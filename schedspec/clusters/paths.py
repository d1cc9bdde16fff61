"""Folders on this machine: cache, state, homes of clusters. Only this module chooses paths that no caller passed."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import platformdirs

from .. import distribution
from .protocol import SettingsError

_MIN_TMPFS_FREE = 1 << 30
"""Bytes. etcd allocates some 130 MB at once and grows; a container's default /dev/shm of 64 MB would break it."""


def kind_config() -> Path:
    """Return the folder kind-config/: pinned modules, KWOK's stages, configurations.

    Raises:
        SettingsError: the folder is missing.
    """
    return part("kind-config")


def part(name: str) -> Path:
    """Return a folder of this distribution.

    Raises:
        SettingsError: the folder is missing.
    """
    found = distribution.folder(name)
    if not found.is_dir():
        raise SettingsError(
            f"the folder {name}/ is missing", str(found), "use a complete checkout, or install the package again"
        )
    return found


def cache_root() -> Path:
    """Return the folder of programs and images, which are expensive to make and kept between runs.

    $SCHEDSPEC_CACHE overrides.
    """
    return _overridable("SCHEDSPEC_CACHE", platformdirs.user_cache_path("schedspec"))


def state_root() -> Path:
    """Return the folder with one record for each cluster that runs on this machine. $SCHEDSPEC_STATE overrides."""
    return _overridable("SCHEDSPEC_STATE", platformdirs.user_state_path("schedspec"))


def new_home(name: str) -> Path:
    """Create a directory for a cluster's files, in memory if etcd has enough space there."""
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
            f"cannot create the folder: {error.strerror}", str(path), f"set {variable} to a writable folder"
        ) from error
    return path
