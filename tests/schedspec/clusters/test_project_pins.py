"""Pins of a repository that conflict with our requirements are found in every file that may have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedspec.clusters.doctor import clashes

OURS = ["pytest>=9.2", "pytest-bdd==9.0.1", "PyYAML>=6.0.3"]
LOCK = '[[package]]\nname = "%s"\nversion = "%s"\n'
FILES = {
    "a dependency": ("pyproject.toml", '[project]\ndependencies = ["pytest<9", "flask"]\n', ["pytest<9"]),
    "a group": ("pyproject.toml", '[dependency-groups]\ndev = ["pytest-bdd~=8.1"]\n', ["pytest-bdd~=8.1"]),
    "an extra": (
        "pyproject.toml",
        '[project.optional-dependencies]\nt = ["Pytest_BDD==8.1.0"]\n',
        ["Pytest_BDD==8.1.0"],
    ),
    "requirements": (
        "requirements-dev.txt",
        "# tests\n-r requirements.txt\npytest==8.3.4 \\\n    --hash=sha256:00\npyyaml>=6\n",
        ["pytest==8.3.4"],
    ),
    "the lock of uv": ("uv.lock", LOCK % ("pytest", "8.4.2") + LOCK % ("pyyaml", "6.0.3"), ["pytest==8.4.2"]),
    "the lock of Poetry": ("poetry.lock", LOCK % ("pytest-bdd", "9.0.1"), []),
    "compatible requirements": (
        "pyproject.toml",
        '[project]\ndependencies = ["pytest>8,<10", "pytest-bdd", "pyyaml!=6.0.3"]\n',
        [],
    ),
    "an invalid file": ("pyproject.toml", "[project\n", []),
}


@pytest.mark.parametrize(("name", "text", "found"), FILES.values(), ids=FILES)
def test_pins_that_no_version_satisfies_are_named(tmp_path: Path, name: str, text: str, found: list[str]) -> None:
    (tmp_path / name).write_text(text)
    assert [line.split(" (schedspec needs ")[0] for line in clashes(tmp_path, OURS)] == [
        f"{name}: {it}" for it in found
    ]
