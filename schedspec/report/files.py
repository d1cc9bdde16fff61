"""The files of a run: for its user alone, in a folder that no other run writes into.

They hold every object that was seen, so they are 0600 in folders that are 0700. Where a run names no folder and another
one writes into the usual one, it takes the next name; a folder that was named is refused while another run has it.
"""

from __future__ import annotations

from pathlib import Path

import filelock

from ..api.errors import HarnessError

PAGE = "report.html"
"""The page of a run, in its folder."""
RECORDS = "**/scenarios/*/*.json"
"""The records of a run, below its folder."""

_MOST = 100


class FolderTakenError(HarnessError):
    """Another run writes into the folder that this one was told to write into."""


class Claim:
    """A folder that is this run's until :meth:`release`, or until its process ends."""

    def __init__(self, folder: Path, *, named: bool) -> None:
        """Take ``folder``, or ``folder-2`` and so on if it was not ``named``. Raises FolderTakenError, OSError."""
        folder.parent.mkdir(parents=True, exist_ok=True)
        names = [folder] if named else [folder, *(folder.with_name(f"{folder.name}-{n}") for n in range(2, _MOST))]
        for self.folder in names:
            self._lock = filelock.FileLock(folder.parent / f".{self.folder.name}.lock", timeout=0)
            try:
                self._lock.acquire()
            except filelock.Timeout:
                continue
            return
        raise FolderTakenError(
            f"another run writes into {folder} now; do next: wait for its end, or name another by --out or --junitxml"
        )

    def release(self) -> None:
        """Let others have it. The second call does nothing."""
        self._lock.release()


def make_folder(folder: Path) -> Path:
    """A folder for this user alone. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder


def write(path: Path, content: bytes | str) -> Path:
    """Write a file for this user alone. Raises OSError."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
