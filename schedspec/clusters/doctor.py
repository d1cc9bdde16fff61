"""Diagnose what this machine lacks for running clusters, and name a remedy for each finding. Read-only."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from .paths import cache_root, state_root
from .programs import build
from .programs.binaries import Provider, named_folder, silent
from .programs.cache import Cache
from .programs.download import Downloads
from .programs.pinned import EMBEDDED, Program, programs
from .project_pins import clashes
from .protocol import BinaryError, ClusterError, Settings
from .registry import Registry

_DISK_NEEDED = 8 << 30
"""Bytes: Go's build cache takes about 4 GB, a node image as much."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    good: bool
    what: str
    do_next: str = ""
    needed: bool = True
    """Whether the command `doctor` fails if this is not good."""


def examine() -> list[Diagnosis]:
    """Return all findings, including the good ones."""
    return [_python(), *_pins(), *_programs(), _disk(), _memory(), _kind(), _left_behind()]


def _python() -> Diagnosis:
    good = sys.version_info >= (3, 11)
    return Diagnosis(good, f"Python {platform.python_version()}", "" if good else "install Python 3.11 or later")


def _pins() -> list[Diagnosis]:
    do_next = "install schedspec in an environment of its own (pipx, uv tool), and run: schedspec test"
    return [Diagnosis(False, f"versions clash: {clash}", do_next, needed=False) for clash in clashes(Path.cwd())]


def _programs() -> list[Diagnosis]:
    try:
        provider = Provider(Cache(cache_root()), Downloads(), named_folder(None), silent)
        missing = provider.missing(programs(EMBEDDED))
    except ClusterError as error:
        return [Diagnosis(False, error.what, error.do_next)]
    if not missing:
        return [Diagnosis(True, f"programs of the embedded cluster: all present ({cache_root()})")]
    what = f"programs of the embedded cluster: {', '.join(program.name for program in missing)} not present yet"
    return [_buildable(what, missing) if build.go() else _downloadable(what, missing)]


def _buildable(what: str, missing: Sequence[Program]) -> Diagnosis:
    try:
        for program in missing:
            build.require_buildable(program)
    except BinaryError as error:
        return Diagnosis(False, f"{what}; {error.what}", error.do_next)
    return Diagnosis(True, f"{what}; Go builds them at the first run, 2 to 8 minutes ({build.go()})")


def _downloadable(what: str, missing: Sequence[Program]) -> Diagnosis:
    downloads = Downloads()
    lacking = [program.name for program in missing if program.release is None or not downloads.offer(program.release)]
    if not lacking:
        return Diagnosis(True, f"{what}; the first run downloads them")
    do_next = "install Go (https://go.dev/dl), or set SCHEDSPEC_BINARIES to a folder that has them"
    return Diagnosis(False, f"{what}; {', '.join(lacking)} cannot be downloaded, and Go is not installed", do_next)


def _disk() -> Diagnosis:
    free = shutil.disk_usage(cache_root()).free
    return Diagnosis(
        free >= _DISK_NEEDED,
        f"{free >> 30} GiB free for the cache in {cache_root()}",
        "" if free >= _DISK_NEEDED else "free disk space, or set SCHEDSPEC_CACHE to a folder on another disk",
    )


def _memory() -> Diagnosis:
    free = psutil.virtual_memory().available
    enough = free >= 2 << 30
    return Diagnosis(
        enough, f"{free >> 20} MiB of memory available", "" if enough else "free some memory: a cluster takes 0.5 GiB"
    )


def _kind() -> Diagnosis:
    from .kind.cluster import why_not  # noqa: PLC0415 - connects to Docker

    why = why_not(Settings(kind="kind"))
    if why is None:
        return Diagnosis(True, "Kind clusters: a Docker engine answers, a node image is available", needed=False)
    what, _, rest = why.partition("\n")
    do_next = rest.rpartition("do next: ")[2]
    return Diagnosis(
        False, f"Kind clusters cannot run (embedded clusters need no Docker): {what}", do_next, needed=False
    )


def _left_behind() -> Diagnosis:
    abandoned = [record.name for record in Registry().records() if record.abandoned]
    if abandoned:
        left = f"left behind by killed runs: {', '.join(abandoned)}"
        return Diagnosis(False, left, "python -m schedspec down", needed=False)
    return Diagnosis(True, f"nothing left behind ({state_root()})")
