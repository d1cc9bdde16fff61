"""Load the policy file at the start, and again whenever it changes.

The one rule: one policy is always in force. If a changed file cannot be read or is refused, the previous policy stays
in force, and the reason is reported.

No file at the path can block the event loop: `scheduler.policy.file` reads only regular files of bounded size, and a
file of more than `_SMALL` bytes is parsed in a thread.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..policy.file import LARGEST, read_policy
from ..policy.loader import DEFAULT_TEXT, PolicyError, load_policy
from ..policy.model import Policy

log = logging.getLogger(__name__)

CHECK_EVERY = 0.1
"""Seconds between two checks of the file's size and times."""
_SMALL = 16_384
"""Maximum bytes that are parsed on the event loop, in about 0.1 s. The largest file takes up to 8 s."""


@dataclass(frozen=True, slots=True)
class InForce:
    """The policy that cycles use.

    `error` is the reason why a newer file was refused, or empty. `refused` is the text of that file; it is empty if the
    file could not be read.
    """

    policy: Policy
    path: str
    text: str
    error: str = ""
    refused: str = ""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def refused_sha256(self) -> str:
        """Return the hash of the refused text, so that its author can recognize which version was refused."""
        return hashlib.sha256(self.refused.encode()).hexdigest() if self.error else ""


class PolicyFile:
    """One policy file. `on_change` is called with each new policy and with each refusal (`error` set)."""

    def __init__(self, path: Path | None, on_change: Callable[[InForce], None] = lambda _: None) -> None:
        self._path = path
        self.on_change = on_change
        self._seen: object = None if path is None else _signature(path)
        """Signature of the file that was loaded last, or is being loaded."""
        text = DEFAULT_TEXT if path is None else read_policy(path)
        source = "default" if path is None else str(path)
        self.current = InForce(load_policy(text, source), source, text)

    async def run(self) -> None:
        """Load each new version of the file until cancelled."""
        if self._path is None:
            return
        while True:
            await asyncio.sleep(CHECK_EVERY)
            if (signature := _signature(self._path)) == self._seen:
                continue
            if _size(self._path) <= _SMALL:
                self.reload_if_changed()
                continue
            self._seen = signature
            loaded = await asyncio.to_thread(_load, self._path, self.current)
            if self._seen == signature:  # otherwise `reload_if_changed` has loaded a newer version
                self._adopt(loaded)

    def reload_if_changed(self) -> None:
        """Load the file now if it has changed, except for a large file: `run` parses that in a thread."""
        if self._path is None or (signature := _signature(self._path)) == self._seen or _size(self._path) > _SMALL:
            return
        self._seen = signature
        self._adopt(_load(self._path, self.current))

    def _adopt(self, loaded: InForce) -> None:
        if loaded is self.current:
            return
        self.current = loaded
        if loaded.error:
            log.error("policy refused, the previous policy stays in force: %s", loaded.error)
        else:
            log.info("policy loaded: %s", loaded.sha256)
        self.on_change(loaded)


def _load(path: Path, before: InForce) -> InForce:
    """Return what is in force now: the file's policy or, if it is refused, the previous policy with the reason.

    Returns `before` itself if the text is unchanged and `before` has no error.
    """
    text = ""
    try:
        text = read_policy(path)
        if text == before.text and not before.error:
            return before
        return InForce(load_policy(text, str(path)), str(path), text)
    except PolicyError as error:
        why = str(error)
    except Exception as error:  # a defect that one file triggers must not stop the scheduling
        log.exception("unexpected error while the policy file was checked")
        why = f"{path}: unexpected error: {error!r}; write the file again"
    return InForce(before.policy, before.path, before.text, why, text)


def _signature(path: Path) -> object:
    """Return a value that changes with the file; an update of a mounted ConfigMap changes the inode."""
    try:
        found = path.stat()
    except OSError as error:
        return error.errno
    return (found.st_mtime_ns, found.st_size, found.st_ino)


def _size(path: Path) -> int:
    """Return the number of bytes to parse; 0 if the file will be refused before it is parsed."""
    try:
        size = path.stat().st_size
    except OSError:
        return 0
    return size if size <= LARGEST else 0
