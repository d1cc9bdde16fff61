"""Cache of programs. An entry is complete or absent.

An entry is a folder with a program and its checksum. A rename makes the folder visible once it is complete. A program
that does not match its checksum is ignored. One process at a time adds entries; other processes wait.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from ..subprocess_run import Tick, silent
from .download import sha256
from .pinned import Program

_RECORD = "origin.json"
_WAIT_TICK = 5.0


@contextmanager
def locked(file: Path, waiting: Tick) -> Iterator[None]:
    """Hold the lock of a file. `waiting` is called with the seconds waited, every five seconds, until it is free."""
    lock = FileLock(file)
    waited = 0.0
    while True:
        try:
            lock.acquire(timeout=_WAIT_TICK if waited else 0)
            break
        except Timeout:
            waiting(waited)
            waited += _WAIT_TICK
    try:
        yield
    finally:
        lock.release()


@dataclass(frozen=True, slots=True)
class CacheEntry:
    path: Path
    """The program."""
    origin: str
    """Source of the program: `release`, `built with Go`, or the image with its digest."""

    @property
    def definitions(self) -> Path:
        """The folder of the definitions that came with the program; absent where none did."""
        return self.path.with_name("crds")


class Cache:
    def __init__(self, root: Path) -> None:
        self.root = root / "programs"
        self.root.mkdir(parents=True, exist_ok=True)

    def find(self, program: Program) -> CacheEntry | None:
        """Return the program's entry if it is present and undamaged."""
        folder = self._folder(program)
        try:
            record = json.loads((folder / _RECORD).read_text("utf-8"))
            path = folder / program.name
            return CacheEntry(path, str(record["origin"])) if sha256(path) == record["sha256"] else None
        except (OSError, ValueError, KeyError):
            return None

    def adding(self, waiting: Tick = silent) -> AbstractContextManager[None]:
        """Hold the lock for adding entries. `waiting` is called every five seconds until the lock is free."""
        return locked(self.root / "adding.lock", waiting)

    def add(self, program: Program, make: Callable[[Path], str]) -> CacheEntry:
        """Store the program that `make(path)` writes at `path`. Call only inside `adding`.

        If `make` fails or is killed, nothing is stored. Leftovers of a killed process are removed first.

        Args:
            program: The program.
            make: Writes the program and returns its origin.
        """
        for leftover in self.root.glob(f".new-{program.name}-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        new = Path(tempfile.mkdtemp(prefix=f".new-{program.name}-", dir=self.root))
        try:
            made = new / program.name
            origin = make(made)
            record = {"origin": origin, "sha256": sha256(made), "version": program.version}
            (new / _RECORD).write_text(json.dumps(record, indent=1) + "\n", "utf-8")
            folder = self._folder(program)
            if folder.exists():  # damaged: `find` did not accept it
                shutil.rmtree(folder)
            new.rename(folder)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        return CacheEntry(folder / program.name, origin)

    def _folder(self, program: Program) -> Path:
        return self.root / f"{program.name}-{program.version}-{program.key}"
