"""Read facts about a repository: pytest options, scenarios of ours, its branch, and the source of the installation.

`init` needs these facts to decide what to write and where; `test`, `check` and `ci` need them to find scenarios. This
module writes no file and does not import pytest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from urllib.parse import unquote, urlparse

import msgspec

_SECTIONS = {
    "pytest.ini": r"",
    ".pytest.ini": r"",
    "pytest.toml": r"",
    ".pytest.toml": r"",
    "pyproject.toml": r"^\[tool\.pytest(\.ini_options)?\]",
    "tox.ini": r"^\[pytest\]",
    "setup.cfg": r"^\[tool:pytest\]",
}
"""Files from which pytest reads options, with the pattern of the section that has the options."""
_OURS = re.compile(r"^\s*[\"']?schedspec_\w+[\"']?\s*=", re.MULTILINE)
_GITHUB = re.compile(r"https://github\.com/(?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?/?")
_NO_CONTENT = re.compile(r"\.git(ignore|attributes)?|readme.*|licen[cs]e.*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Origin:
    """Source of an installed distribution; fields that do not apply are empty."""

    action: str = ""
    """`OWNER/REPOSITORY@COMMIT` of a checkout on GitHub."""
    url: str = ""
    """URL of the wheel, with its checksum if the installer recorded one."""
    wheel: Path | None = None
    """Path of the wheel on this machine."""


def options_file(folder: Path) -> Path | None:
    """Return the file of this folder from which pytest reads its options, or None."""
    for name, section in _SECTIONS.items():
        file = folder / name
        if file.is_file() and re.search(section, file.read_text("utf-8", "replace"), re.MULTILINE):
            return file
    return None


def is_home(folder: Path) -> bool:
    """Whether the pytest options in this folder include a `schedspec_…` option, so that its scenarios are ours."""
    file = options_file(folder)
    return file is not None and _OURS.search(file.read_text("utf-8", "replace")) is not None


def homes(folder: Path) -> list[Path]:
    """Return the folders with our scenarios: this folder, else the folders directly below it."""
    if is_home(folder):
        return [folder]
    return [path for path in sorted(folder.iterdir()) if path.is_dir() and is_home(path)]


def is_empty(folder: Path) -> bool:
    """Whether a repository has at most a README, a licence and files of git."""
    return not folder.is_dir() or all(_NO_CONTENT.fullmatch(path.name) for path in folder.iterdir())


def branch_of(top: Path) -> str:
    """Return the checked-out branch; `main` if it is unknown."""
    head = top / ".git" / "HEAD"
    found = re.fullmatch(r"ref: refs/heads/(.+)\n?", head.read_text("utf-8")) if head.is_file() else None
    return found[1] if found else "main"


def origin_of(name: str) -> Origin:
    """Return the source of an installed distribution, as its installer recorded it (PEP 610)."""
    try:
        text = Distribution.from_name(name).read_text("direct_url.json")
    except PackageNotFoundError:
        return Origin()
    return read_origin(text or "{}")


def read_origin(text: str) -> Origin:
    """Return the source that the text of a `direct_url.json` describes."""
    facts = msgspec.json.decode(text, type=dict[str, object])
    url = str(facts.get("url", ""))
    vcs, archive = facts.get("vcs_info"), facts.get("archive_info")
    if isinstance(vcs, dict) and (repository := _GITHUB.fullmatch(url)) and vcs.get("commit_id"):
        return Origin(action=f"{repository['name']}@{vcs['commit_id']}")
    if url.startswith("https://") and isinstance(archive, dict):
        checksum = str(archive.get("hash", ""))
        return Origin(url=f"{url}#{checksum}" if checksum else url)
    if url.startswith("file://") and url.endswith(".whl"):
        wheel = Path(unquote(urlparse(url).path))
        return Origin(wheel=wheel) if wheel.is_file() else Origin()
    return Origin()
