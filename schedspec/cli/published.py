"""Name the published commit of a checkout on GitHub, as workflows name an Action: `OWNER/REPOSITORY@COMMIT`.

The wheel records this name when it is built (`hack/record_origin.py`), because an installer records only where the
wheel lay. This module therefore imports nothing but the standard library.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

RECORD = Path(__file__).with_name("origin.txt")
"""The file of the wheel that has the name."""
_GITHUB = re.compile(r"(?:https://github\.com/|git@github\.com:)(?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?/?")


def published(checkout: Path) -> str:
    """Return the name of the checked-out commit; empty unless a branch or tag of a remote on GitHub has the commit."""
    origin = _GITHUB.fullmatch(_git(checkout, "remote", "get-url", "origin"))
    commit = _git(checkout, "rev-parse", "HEAD")
    refs = ("refs/remotes/origin", "refs/tags")
    is_pushed = bool(commit and _git(checkout, "for-each-ref", "--contains", commit, *refs))
    is_whole = Path(_git(checkout, "rev-parse", "--show-toplevel")).resolve() == checkout.resolve()
    return f"{origin['name']}@{commit}" if origin and is_pushed and is_whole else ""


def recorded() -> str:
    """Return the name that this installation has: that of the wheel, else that of the checkout; empty without one."""
    if RECORD.is_file():
        return RECORD.read_text("utf-8").strip()
    return published(Path(__file__).resolve().parents[2])


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
