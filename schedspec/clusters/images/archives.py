"""Archives of images that were made here, kept in the cache whole or not at all.

One process at a time makes one. The two newest of each family stay: a node image is nearly a gigabyte.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from ..paths import cache_root
from ..protocol import Progress

_WAIT_TICK = 5.0


def place(name: str) -> Path:
    """Where an archive of that name is, if it is. The name changes with everything that the image is made from."""
    folder = cache_root() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def kept(name: str, make: Callable[[Path], None], progress: Progress) -> Path:
    """The archive, made by `make(path)` if it is not there. An interrupted `make` leaves nothing that looks whole."""
    archive = place(name)
    if archive.is_file():
        return archive
    lock = FileLock(archive.with_suffix(".lock"))
    waited = 0.0
    while True:
        try:
            lock.acquire(timeout=_WAIT_TICK)
            break
        except Timeout:
            waited += _WAIT_TICK
            progress(f"{name}: another run is making it, {waited:.0f} s")
    try:
        if not archive.is_file():
            new = archive.with_suffix(".new")
            new.unlink(missing_ok=True)
            make(new)
            new.replace(archive)
            _prune(archive)
    finally:
        lock.release()
    return archive


def _prune(newest: Path) -> None:
    """Remove the archives that were made from what nobody has any more: all of the family but the two newest."""
    family = newest.name.partition("-")[0]
    archives = sorted(newest.parent.glob(f"{family}-*.tar"), key=lambda path: path.stat().st_mtime)
    for old in archives[:-2]:
        old.unlink(missing_ok=True)
