"""Find version pins of a repository that conflict with this package's requirements. Separate environments avoid them.

Reads `pyproject.toml`, `requirements*.txt` and the locks of uv and Poetry in a folder; installs and changes nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

_LOCKS = ("uv.lock", "poetry.lock")


def clashes(folder: Path, ours: list[str] | None = None) -> list[str]:
    """Return one line for each pin of the folder that contradicts our requirements."""
    wanted: dict[str, SpecifierSet] = {
        canonicalize_name(requirement.name): requirement.specifier
        for requirement in map(Requirement, ours or _required())
    }
    return [
        f"{file}: {text} (schedspec needs {name}{wanted[name]})"
        for file, name, specifier, text in _pins(folder)
        if name in wanted and not _agree(specifier, wanted[name])
    ]


def _required() -> list[str]:
    try:
        return [text for text in requires("schedspec") or () if "extra ==" not in text]
    except PackageNotFoundError:  # a checkout
        return []


def _pins(folder: Path) -> Iterator[tuple[str, str, SpecifierSet, str]]:
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
