"""Read facts about a repository: pytest options, scenarios of ours, its branch, and the source of the installation.

`init` needs these facts to decide what to write and where; `test`, `check` and `ci` need them to find scenarios. This
module writes no file and does not import pytest.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import msgspec
import yaml

from ..terminal import top_of

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
_FEATURES = re.compile(
    r"^\s*[\"']?schedspec_features[\"']?\s*=[ \t]*(?:\[(?P<list>[^]]*)\]|(?P<words>.*(?:\n[ \t]+\S.*)*))", re.MULTILINE
)
_SCHEDULER = re.compile(
    r"^[^#;\n]*--scheduler(?:=|[\s\"',]+)(?P<word>[\w@.:/-]+)"
    r"|^\s*[\"']?schedspec_scheduler[\"']?\s*=[ \t]*[\"']?(?P<value>[^\"'\n]+)",
    re.MULTILINE,
)
_GITHUB = re.compile(r"https://github\.com/(?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?/?")
_HOOKS, _LARGE_FILES = ".pre-commit-config.yaml", "check-added-large-files"
_DEPTH = 4
"""Levels of folders below the working directory in which `homes` looks."""
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
    """Return the folders with our scenarios: this folder, else the uppermost ones below it, at most four levels deep.

    Hidden folders, environments of Python and folders of packages are left out.
    """
    return list(_homes(folder, _DEPTH))


def _homes(folder: Path, levels: int) -> Iterator[Path]:
    if is_home(folder):
        yield folder
    elif levels:
        for path in sorted(folder.iterdir()):
            if path.is_dir() and not path.is_symlink() and not _is_foreign(path):
                yield from _homes(path, levels - 1)


def _is_foreign(folder: Path) -> bool:
    return folder.name.startswith(".") or folder.name == "node_modules" or (folder / "pyvenv.cfg").is_file()


def home_of(path: Path) -> Path | None:
    """Return the nearest folder with our scenarios that contains a path, within its repository; None if none does."""
    above = [path, *path.parents] if path.is_absolute() else [path, *path.parents, *Path.cwd().parents]
    for folder in above:
        if folder.is_dir() and is_home(folder):
            return folder
        if (folder / ".git").exists():
            return None
    return None


def features_of(home: Path) -> list[Path]:
    """Return the files and folders with features of ours: what `schedspec_features` names, else the folder itself."""
    file = options_file(home)
    found = _FEATURES.search(file.read_text("utf-8", "replace")) if file is not None else None
    named = re.findall(r"[^\s\"',]+", found["list"] or found["words"]) if found else []
    return [home / name for name in named] or [home]


def scheduler_of(home: Path) -> str:
    """Return the scheduler under test that the pytest options in this folder name; empty if they name none."""
    file = options_file(home)
    found = _SCHEDULER.search(file.read_text("utf-8", "replace")) if file is not None else None
    return (found["word"] or found["value"]).strip() if found else ""


def is_empty(folder: Path) -> bool:
    """Whether a repository has at most a README, a licence and files of git."""
    return not folder.is_dir() or all(_NO_CONTENT.fullmatch(path.name) for path in folder.iterdir())


def branch_of(top: Path) -> str:
    """Return the checked-out branch; `main` if it is unknown."""
    head = top / ".git" / "HEAD"
    found = re.fullmatch(r"ref: refs/heads/(.+)\n?", head.read_text("utf-8")) if head.is_file() else None
    return found[1] if found else "main"


def why_no_file(path: Path, content: Path) -> str:
    """Return why a new file cannot be committed: it is ignored, or too large for a hook; else empty."""
    top = top_of(path.parent)
    inside = os.path.relpath(path.absolute(), top)
    if (top / ".git").exists():
        command = ["git", "check-ignore", "--verbose", inside]
        with contextlib.suppress(OSError):  # without git, nothing can be said
            done = subprocess.run(command, cwd=top, capture_output=True, text=True, check=False)
            rule = done.stdout.partition("\t")[0]
            if rule and not rule.split(":", 2)[2].startswith("!"):
                return f"{rule} ignores it"
    permitted, kilobytes = _permitted_kilobytes(top, inside), math.ceil(content.stat().st_size / 1024)
    if permitted is not None and kilobytes > permitted:
        return f"{_HOOKS}: {_LARGE_FILES} permits {permitted} kB, and the wheel has {kilobytes} kB"
    return ""


def _permitted_kilobytes(top: Path, name: str) -> int | None:
    """Return the size of a new file that the hooks of pre-commit permit; None if no hook judges the file."""
    file = top / _HOOKS
    if not file.is_file():
        return None
    try:
        content = yaml.safe_load(file.read_text("utf-8"))
        hooks = [hook for repo in content["repos"] for hook in repo["hooks"] if hook["id"] == _LARGE_FILES]
        judging = [hook for hook in hooks if _judges(content, name) and _judges(hook, name)]
        sizes = [_maximum(hook.get("args", [])) for hook in judging]
    except (yaml.YAMLError, UnicodeDecodeError, KeyError, TypeError, AttributeError, re.error):
        return None
    return min(sizes, default=None)


def _judges(part: Mapping[str, Any], name: str) -> bool:
    """Whether the patterns of a hook, or of the whole file, select a path."""
    excluded = part.get("exclude", "^$")
    return re.search(str(part.get("files", "")), name) is not None and re.search(str(excluded), name) is None


def _maximum(arguments: Sequence[object]) -> int:
    """Return the size in kilobytes that the arguments of the hook name; its default without one."""
    found = re.findall(r"--maxkb[= ](\d+)", " ".join(map(str, arguments)))
    return int(found[-1]) if found else 500


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
