"""Reserve the folder of a run and write its files; no other run writes into the folder.

The files are readable by others (0644 in folders with 0755), so that a web server or another user can show them. On a
shared cluster the files may contain objects of other namespaces; they are private then (0600 in 0700).

If the user names no folder and another run uses the default one, the run takes the next name. A named folder is refused
while another run uses it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import filelock

from ..api.errors import HarnessError

PAGE = "report.html"
RUN = "run.json"
"""The file with the start time of the last run in a folder."""
RECORDS = "**/scenarios/*/*.json"
"""The records of a run, below its folder."""

_MAX = 100


class FolderTakenError(HarnessError):
    """Another run writes into the folder that the user named."""


class Claim:
    """Reserves a folder for this run until `release`, or until its process ends."""

    def __init__(self, folder: Path, *, named: bool) -> None:
        """Reserve `folder`, or `folder-2` and so on if it is not `named`. Raises FolderTakenError, OSError."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        names = [folder] if named else [folder, *(folder.with_name(f"{folder.name}-{n}") for n in range(2, _MAX))]
        for self.folder in names:
            self._lock = filelock.FileLock(folder.parent / f".{self.folder.name}.lock", timeout=0)
            try:
                self._lock.acquire()
            except filelock.Timeout:
                continue
            return
        raise FolderTakenError(
            f"another run writes into {folder} now; do next: wait for its end, or name another with --out or --junitxml"
        )

    def release(self) -> None:
        """Release the folder. A second call does nothing."""
        self._lock.release()


def keep_private(add_cleanup: Callable[[Callable[[], None]], None], junit: str | None) -> None:
    """Create all files of this process and its children for this user only, until the clean-up.

    On a shared cluster a run sees objects of other users: they appear in JUnit files, results and logs.
    """
    before = os.umask(0o077)

    def restore() -> None:
        os.umask(before)

    add_cleanup(restore)
    if junit is not None and Path(junit).is_file():
        Path(junit).chmod(0o600)  # left by an earlier run


def make_folder(folder: Path, *, private: bool = False) -> Path:
    """Make a folder, for this user only if `private`. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700 if private else 0o755)
    return folder


def write(path: Path, content: bytes | str, *, private: bool = False) -> Path:
    """Write a file, for this user only if `private`. Raises OSError."""
    before = os.umask(0o077)  # a mask is read by setting it
    os.umask(before)
    mode = 0o600 if private else 0o644 & ~before
    path.touch(mode=mode)
    path.chmod(mode)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
