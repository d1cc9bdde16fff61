"""Read the two sets of files that a plan compares: folders, files, or revisions of this git repository."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ...api.errors import HarnessError
from ...scheduler.model.input_files import read_text

SUFFIXES = (".yaml", ".yml", ".json", ".conf")
MAX_BYTES = 16 << 20
"""Size limit of one file in bytes; a larger file is not a policy or manifest."""
_GIT_SECONDS = 60.0
_COMMIT = re.compile(r"[0-9a-f]{40,64}")


class SourceError(HarnessError):
    """A set of files that cannot be read."""


def is_range(text: str) -> bool:
    """Whether a text is a range such as `main..HEAD` and not the path of a file or folder."""
    return ".." in text and not Path(text).exists()


def files_of(text: str) -> dict[str, str]:
    """Return the files of a folder, a file or a revision, by path. Raises SourceError.

    Hidden files and the files in hidden folders are skipped, in a folder as in a revision.
    """
    if not text:
        raise SourceError("an empty name is neither a folder nor a revision\n  do next: name a folder, or a revision")
    path = Path(text)
    if path.is_dir():
        found = sorted(
            file
            for file in path.rglob("*")
            if file.suffix in SUFFIXES and not file.is_dir() and not _is_hidden(file.relative_to(path).as_posix())
        )
        return {file.relative_to(path).as_posix(): _read(file) for file in found if os.lstat(file).st_size <= MAX_BYTES}
    if os.path.lexists(path):
        return {path.name: _read(path)}
    return _of_revision(text)


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))


def _read(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise SourceError(f"{path}: cannot be read: {why}\n  do next: write it in UTF-8, or remove it") from error


def merge_base(before: str, after: str) -> str:
    """Return the last common commit of two revisions (the base of a pull request); `before` if there is none.

    Raises:
        SourceError: `after` has no commit of its own, so that the range would propose nothing.
    """
    found = _git("merge-base", before, after, required=False).strip()
    old, new = (_git("rev-parse", f"{revision}^{{commit}}", required=False).strip() for revision in (before, after))
    if found == new != old:
        raise SourceError(
            f"{before}..{after}: {before} has every commit of {after}: the range proposes nothing\n"
            f"  do next: write OLD..NEW, perhaps {after}..{before}"
        )
    return found or before


def short(revision: str) -> str:
    """Return the first ten digits of a commit's hash, or any other name of a revision unchanged."""
    return revision[:10] if _COMMIT.fullmatch(revision) else revision


def _of_revision(revision: str) -> dict[str, str]:
    if revision.startswith("-"):
        raise SourceError(
            f"{revision}: neither a folder nor a revision\n  do next: name a folder, or a revision such as main"
        )
    listed = _git("ls-tree", "-r", "-z", "--name-only", "--full-tree", revision)
    names = [name for name in listed.split("\0") if name.endswith(SUFFIXES) and not _is_hidden(name)]
    return _blobs(revision, names)


def _blobs(revision: str, names: Sequence[str]) -> dict[str, str]:
    """Return the files of a revision, in one process of git."""
    request = "".join(f"{revision}:{name}\n" for name in names if "\n" not in name).encode()
    content = _run(revision, ["git", "cat-file", "--batch"], request)
    found: dict[str, str] = {}
    for name in (name for name in names if "\n" not in name):
        head, _, content = content.partition(b"\n")
        size = int(head.rsplit(b" ", 1)[-1]) if head[-1:].isdigit() else 0
        body, content = content[:size], content[size + 1 :]
        if b" blob " in head and size <= MAX_BYTES:
            try:
                found[name] = body.decode()
            except UnicodeDecodeError:
                continue
    return found


def _git(*arguments: str, required: bool = True) -> str:
    try:
        return _run(arguments[-1], ["git", *arguments]).decode("utf-8", "replace")
    except SourceError:
        if required:
            raise
        return ""


def _run(revision: str, command: list[str], stdin: bytes = b"") -> bytes:
    """Run git; `revision` is the one that an error names."""
    try:
        done = subprocess.run(command, input=stdin, capture_output=True, check=False, timeout=_GIT_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SourceError(f"{' '.join(command)}: {error}\n  do next: install git, or name a folder") from error
    if done.returncode:
        error_text = done.stderr.decode("utf-8", "replace").strip()
        raise SourceError(
            f"{revision}: neither a file, a folder nor a revision of this repository ({error_text})\n"
            "  do next: name a file or folder that exists, or fetch the revision (actions/checkout with fetch-depth: 0)"
        )
    return done.stdout
