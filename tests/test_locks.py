"""The lock files follow pyproject.toml: every dependency is pinned with hashes and without a host."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
GROUPS = PROJECT["dependency-groups"]
OURS = PROJECT["project"]["dependencies"]
LOCKED = {
    "requirements.lock": [*OURS, *GROUPS["dev"]],
    "requirements-docs.lock": [*OURS, *GROUPS["docs"]],
    "requirements-mutation.lock": GROUPS["mutation"],
    "deploy/suite/requirements.lock": OURS,
    "requirements-build.lock": PROJECT["build-system"]["requires"],
}
"""Lock file → the requirements that it is compiled from (CONTRIBUTING.md)."""


def pinned(lock: str) -> dict[str, set[str]]:
    """Return the pinned versions of each package; several if they depend on the version of Python."""
    found: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([^ ;]+)", (ROOT / lock).read_text("utf-8"), re.MULTILINE):
        found.setdefault(canonicalize_name(name), set()).add(version)
    return found


@pytest.mark.parametrize("lock", LOCKED)
def test_every_dependency_is_pinned_to_a_version_that_it_allows(lock: str) -> None:
    versions = pinned(lock)
    wanted = [Requirement(text) for text in LOCKED[lock]]
    lacking = [
        str(it)
        for it in wanted
        if not (found := versions.get(canonicalize_name(it.name))) or not all(map(it.specifier.contains, found))
    ]
    assert lacking == []


@pytest.mark.parametrize("lock", LOCKED)
def test_every_package_has_hashes_and_no_host(lock: str) -> None:
    text = (ROOT / lock).read_text("utf-8")
    packages = re.split(r"^(?=[\w.-]+==)", text, flags=re.MULTILINE)
    assert [it.partition("\n")[0] for it in packages if it and "--hash=sha256:" not in it] == []
    assert "://" not in text


@pytest.mark.parametrize("lock", ["deploy/suite/requirements.lock", "requirements-build.lock"])
def test_a_smaller_lock_has_the_versions_of_requirements_lock(lock: str) -> None:
    tested = pinned("requirements.lock")
    assert {name: it for name, it in pinned(lock).items() if tested.get(name) != it} == {}


def test_the_build_system_is_pinned_with_all_of_its_dependencies() -> None:
    wanted, known = [Requirement(text) for text in PROJECT["build-system"]["requires"]], set[str]()
    while wanted:
        name = canonicalize_name(wanted.pop().name)
        if name not in known:
            known.add(name)
            needed = map(Requirement, importlib.metadata.requires(name) or ())
            wanted += [it for it in needed if it.marker is None or it.marker.evaluate({"extra": ""})]
    assert known <= pinned("requirements-build.lock").keys()
