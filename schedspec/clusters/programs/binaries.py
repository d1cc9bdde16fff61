"""Provide programs: from the user's folder, the cache, the official release, a build with Go, or the release image.

Sources are tried in this order, one program after the other. The progress line names the program, its duration so far
and how many programs remain.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..paths import cache_root
from ..protocol import BinaryError, Progress, SettingsError
from . import build
from .cache import Cache
from .download import DownloadError, Downloads
from .pinned import Program, programs
from .registries import ImageError, Registries


@dataclass(frozen=True, slots=True)
class Binary:
    name: str
    path: Path
    version: str
    origin: str
    """`folder`, `release`, `built with Go`, or the image with its digest."""

    def __str__(self) -> str:
        return f"{self.name} {self.version} ({self.origin})"


def provide(
    names: Iterable[str], *, folder: Path | None, progress: Progress, kubernetes: str | None = None, version: str = ""
) -> dict[str, Binary]:
    """Provide programs by name, ready to run. Takes minutes if Go has to build.

    Args:
        names: Names from `pinned.program`.
        folder: The user's folder ($SCHEDSPEC_BINARIES by default); its programs take precedence.
        progress: Receives a line of progress.
        kubernetes: Minor version of Kubernetes.
        version: Version, for a scheduler's program; empty for the default.

    Raises:
        ClusterError: a program could not be provided.
    """
    provider = Provider(Cache(cache_root()), Downloads(), named_folder(folder), progress)
    return provider.provide(programs(names, kubernetes, version))


def require(
    names: Sequence[str],
    *,
    folder: Path | None,
    progress: Progress,
    option: str,
    kubernetes: str | None = None,
    version: str = "",
) -> None:
    """Check that every program is present or can be built. Download those that Go cannot build.

    Args:
        names: Names from `pinned.program`.
        folder: The user's folder ($SCHEDSPEC_BINARIES by default).
        progress: Receives a line of progress.
        option: The option that names the folder, for the error.
        kubernetes: Minor version of Kubernetes.
        version: Version, for a scheduler's program; empty for the default.

    Raises:
        SettingsError: `folder` is not a folder.
        BinaryError: programs can be neither found, downloaded nor built; the text names all of them.
    """
    folder = named_folder(folder)
    provider = Provider(Cache(cache_root()), Downloads(), folder, progress)
    lacking, whys = [], []
    for program in provider.missing(programs(names, kubernetes, version)):
        try:
            _require(provider, program)
        except BinaryError as why:
            lacking.append(f"{program.name} {program.version}")
            whys.append(why)
    if lacking:
        has_go = build.go() is not None
        todo = whys[0].do_next if has_go else "install Go (https://go.dev/dl), which builds them"
        raise BinaryError(
            f"missing programs: {', '.join(lacking)}; {whys[0].what}",
            whys[0].where if has_go else " and ".join(str(path) for path in (folder, cache_root()) if path is not None),
            f"{todo}; or name a folder that has them: {option} DIR",
        )


def _require(provider: Provider, program: Program) -> None:
    """Check that Go can build a program, or else download it. Raises BinaryError."""
    try:
        build.require_buildable(program)
    except BinaryError:
        if build.go() is not None and not program.image:
            raise
        provider.provide([program])


def missing(names: Iterable[str], *, folder: Path | None, kubernetes: str | None = None) -> list[str]:
    """Return the names of the programs that would have to be downloaded or built. Raises SettingsError."""
    provider = Provider(Cache(cache_root()), Downloads(), named_folder(folder), silent)
    return [program.name for program in provider.missing(programs(names, kubernetes))]


def silent(_line: str) -> None:
    """Discard a line of progress: nothing is made."""


def named_folder(folder: Path | None) -> Path | None:
    """Return `folder`, else the folder that $SCHEDSPEC_BINARIES names, else None.

    Raises:
        SettingsError: the named path is not a folder.
    """
    named = folder or (Path(configured) if (configured := os.environ.get("SCHEDSPEC_BINARIES")) else None)
    if named is not None and not named.is_dir():
        raise SettingsError(
            "the named folder of programs is not a folder",
            str(named),
            "name a folder that has the programs, or leave the option out",
        )
    return named


class Provider:
    def __init__(
        self,
        cache: Cache,
        downloads: Downloads,
        folder: Path | None,
        progress: Progress,
        registries: Registries | None = None,
    ) -> None:
        self._cache = cache
        self._downloads = downloads
        self._registries = registries or Registries()
        self._folder = folder
        self._progress = progress
        self._start = time.monotonic()

    def provide(self, wanted: list[Program]) -> dict[str, Binary]:
        found = {program.name: self._find(program) for program in wanted}
        missing = [program for program in wanted if found[program.name] is None]
        for index, program in enumerate(missing):
            left = len(missing) - index - 1
            with self._cache.adding(lambda s, p=program: self._report(p, "another run is making programs", left, s)):  # type: ignore[misc] # noqa: B023
                found[program.name] = self._find(program) or self._make(program, left)
        return {name: binary for name, binary in found.items() if binary is not None}

    def missing(self, wanted: list[Program]) -> list[Program]:
        """Return the programs that would have to be downloaded or built."""
        return [program for program in wanted if self._find(program) is None]

    def _find(self, program: Program) -> Binary | None:
        if self._folder is not None:
            path = self._folder / program.name
            if os.access(path, os.X_OK) and path.is_file():
                return Binary(program.name, path.absolute(), program.version, "folder")
        entry = self._cache.find(program)
        return Binary(program.name, entry.path, program.version, entry.origin) if entry else None

    def _make(self, program: Program, left: int) -> Binary:
        entry = self._cache.add(program, lambda path: self._made(program, path, left))
        return Binary(program.name, entry.path, program.version, entry.origin)

    def _made(self, program: Program, path: Path, left: int) -> str:
        """Write a program from the first source that has it, and return the source."""
        if program.release is not None:
            try:
                self._downloads.fetch(
                    program.release, path, lambda s: self._report(program, "downloading the release", left, s)
                )
                return "release"
            except DownloadError as why:
                then = "building with Go" if build.go() else "Go is not installed"
                self._progress(f"{program.name} {program.version}: no release available ({why}); {then}")
        try:
            if build.go() is not None:
                self._report(program, "building with Go", left, 0)
            build.build(program, path, lambda s: self._report(program, "building with Go", left, s))
        except BinaryError as no_build:
            return self._from_image(program, path, left, no_build)
        return "built with Go"

    def _from_image(self, program: Program, path: Path, left: int, no_build: BinaryError) -> str:
        if not program.image:
            raise no_build
        reason = no_build.what.splitlines()[0].rstrip(":")
        self._progress(f"{reason}; trying its image {program.image}")
        try:
            return self._registries.take(
                program.image,
                program.inside,
                path,
                lambda s: self._report(program, f"taking it out of {program.image}", left, s),
            )
        except ImageError as no_image:
            raise BinaryError(
                f"{no_build.what}; its image cannot be used either: {no_image}",
                no_build.where,
                f"{no_build.do_next}; or name a registry that serves its image: SCHEDSPEC_REGISTRY=HOST[:PORT]",
            ) from None

    def _report(self, program: Program, what: str, left: int, seconds: float) -> None:
        total = time.monotonic() - self._start
        self._progress(
            f"{program.name} {program.version}: {what}, {seconds:.0f} s; {left} more after it; {total:.0f} s in all"
        )
