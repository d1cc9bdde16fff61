"""Keep archives of images in the cache.

An archive is complete or absent: `kept` renames a finished file. A file lock lets one process at a time make an
archive. The two newest archives of each family are kept, because a node image takes nearly a gigabyte.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from ..paths import cache_root
from ..protocol import Progress

_WAIT_TICK = 5.0


def place(name: str) -> Path:
    """Return the path of an archive in the cache. The file may be missing.

    Args:
        name: `<family>-<key>.tar`; the key changes with everything that the image is made from.
    """
    folder = cache_root() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def newest(family: str) -> Path | None:
    """Return the archive of a family that was made or requested last, or None."""
    return max(place("").glob(f"{family}-*.tar"), key=lambda file: file.stat().st_mtime, default=None)


def kept(name: str, make: Callable[[Path], None], progress: Progress) -> Path:
    """Return the path of an archive. If the archive is missing, `make(path)` writes it."""
    archive = place(name)
    if archive.is_file():
        archive.touch()  # `newest` prefers the archive that was requested last
        return archive
    lock = FileLock(archive.with_suffix(".lock"))
    waited = 0.0
    while True:
        try:
            lock.acquire(timeout=_WAIT_TICK)
            break
        except Timeout:
            waited += _WAIT_TICK
            progress(f"{name}: waiting for another run that is making it, {waited:.0f} s")
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
    """Remove all archives of the family except the two newest."""
    family = newest.name.partition("-")[0]
    archives = sorted(newest.parent.glob(f"{family}-*.tar"), key=lambda file: file.stat().st_mtime)
    for old in archives[:-2]:
        old.unlink(missing_ok=True)
