"""Diagnose what this machine lacks for running clusters, and name a remedy for each finding. Read-only."""

from __future__ import annotations

import platform
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

import psutil
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from .paths import cache_root, state_root
from .programs import build
from .programs.binaries import Provider, named_folder, silent
from .programs.cache import Cache
from .programs.download import Downloads
from .programs.pinned import EMBEDDED, Program, programs
from .protocol import BinaryError, ClusterError, Settings
from .registry import Registry

_LOCKS = ("uv.lock", "poetry.lock")


def clashes(folder: Path, ours: list[str] | None = None) -> list[str]:
    """Return one line for each pin of the folder that contradicts our requirements."""
    wanted: dict[str, SpecifierSet] = {
        canonicalize_name(requirement.name): requirement.specifier
        for requirement in map(Requirement, ours or _required())
    }
    return [
        f"{file}: {text} (schedspec needs {name}{wanted[name]})"
        for file, name, specifier, text in _pinned(folder)
        if name in wanted and not _agree(specifier, wanted[name])
    ]


def _required() -> list[str]:
    try:
        return [text for text in requires("schedspec") or () if "extra ==" not in text]
    except PackageNotFoundError:  # a checkout
        return []


def _pinned(folder: Path) -> Iterator[tuple[str, str, SpecifierSet, str]]:
    """Yield file, name, versions and text of each requirement of a repository."""
    for file, text in _requirements(folder):
        try:
            found = Requirement(text)
        except InvalidRequirement:
            continue
        yield file, canonicalize_name(found.name), found.specifier, f"{found.name}{found.specifier}"
    for name in _LOCKS:
        for package in _toml(folder / name).get("package", []):
            version = str(package.get("version", ""))
            if version:
                pin = SpecifierSet(f"=={version}")
                yield name, canonicalize_name(package["name"]), pin, f"{package['name']}=={version}"


def _requirements(folder: Path) -> Iterator[tuple[str, str]]:
    document = _toml(folder / "pyproject.toml")
    project = document.get("project", {})
    groups = [project.get("dependencies", []), *project.get("optional-dependencies", {}).values()]
    groups += document.get("dependency-groups", {}).values()
    yield from (("pyproject.toml", text) for group in groups for text in group if isinstance(text, str))
    for file in sorted(folder.glob("requirements*.txt")):
        lines = file.read_text("utf-8", "replace").splitlines()
        yield from ((file.name, re.split(r"\s+#|\s+--|\s*\\$", line)[0]) for line in lines if line[:1].isalnum())


def _toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError):
        return {}


def _agree(theirs: SpecifierSet, ours: SpecifierSet) -> bool:
    """Whether one version satisfies both. Tries the named versions, those just above, 0 and a very high one."""
    named = [specifier.version.removesuffix(".*") for specifier in [*theirs, *ours]]
    candidates = [*named, *(f"{text}.1" for text in named), *(f"{text}.post1" for text in named), "0", "99999"]
    return any(theirs.contains(version) and ours.contains(version) for version in candidates if _is_version(version))


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True


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
