"""Where a cluster's programs come from: a folder that the user names, the cache, the official release, a build with Go.

In that order, one program after the other; whoever waits is told which one, how many are left and how long it takes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..paths import cache_root
from ..protocol import Progress, SettingsError
from . import build
from .cache import Cache
from .download import DownloadError, Downloads
from .pinned import Program, programs


@dataclass(frozen=True, slots=True)
class Binary:
    name: str
    path: Path
    version: str
    origin: str
    """`folder`, `release` or `built with Go`."""

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.origin})"


def provide(
    names: Iterable[str], *, folder: Path | None, progress: Progress, kubernetes: str | None = None
) -> dict[str, Binary]:
    """Every program by name, ready to run; see programs.py for the names. Takes minutes where Go has to build.

    `folder` (or $SCHEDSPEC_BINARIES) wins over all else; what is not in it comes from the cache. Raises ClusterError.
    """
    provider = Provider(Cache(cache_root()), Downloads(), named_folder(folder), progress)
    return provider.provide(programs(names, kubernetes))


def named_folder(folder: Path | None) -> Path | None:
    """The folder of the settings, else that of $SCHEDSPEC_BINARIES. Raises SettingsError if it is none."""
    named = folder or (Path(said) if (said := os.environ.get("SCHEDSPEC_BINARIES")) else None)
    if named is not None and not named.is_dir():
        raise SettingsError(
            "the folder of programs is not a folder", str(named), "name a folder that has them, or leave it out"
        )
    return named


class Provider:
    def __init__(self, cache: Cache, downloads: Downloads, folder: Path | None, progress: Progress) -> None:
        self._cache = cache
        self._downloads = downloads
        self._folder = folder
        self._progress = progress
        self._start = time.monotonic()

    def provide(self, wanted: list[Program]) -> dict[str, Binary]:
        found = {program.name: self._at_hand(program) for program in wanted}
        missing = [program for program in wanted if found[program.name] is None]
        for index, program in enumerate(missing):
            left = len(missing) - index - 1
            with self._cache.adding(lambda s, p=program: self._say(p, "another run is making programs", left, s)):  # type: ignore[misc] # noqa: B023
                found[program.name] = self._at_hand(program) or self._make(program, left)
        return {name: binary for name, binary in found.items() if binary is not None}

    def missing(self, wanted: list[Program]) -> list[Program]:
        """What would have to be downloaded or built."""
        return [program for program in wanted if self._at_hand(program) is None]

    def _at_hand(self, program: Program) -> Binary | None:
        if self._folder is not None:
            path = self._folder / program.name
            if os.access(path, os.X_OK) and path.is_file():
                return Binary(program.name, path.absolute(), program.version, "folder")
        entry = self._cache.find(program)
        return Binary(program.name, entry.path, program.version, entry.origin) if entry else None

    def _make(self, program: Program, left: int) -> Binary:
        def make(path: Path) -> str:
            if program.release is not None:
                try:
                    self._downloads.fetch(
                        program.release, path, lambda s: self._say(program, "downloading the release", left, s)
                    )
                    return "release"
                except DownloadError as why:
                    self._progress(f"{program.name} {program.version}: no release to be had ({why}); Go builds it")
            self._say(program, "building with Go", left, 0)
            build.build(program, path, lambda s: self._say(program, "building with Go", left, s))
            return "built with Go"

        entry = self._cache.add(program, make)
        return Binary(program.name, entry.path, program.version, entry.origin)

    def _say(self, program: Program, what: str, left: int, seconds: float) -> None:
        total = time.monotonic() - self._start
        self._progress(
            f"{program.name} {program.version}: {what}, {seconds:.0f} s; {left} more after it; {total:.0f} s in all"
        )
