"""Load the policy file at the start, and again whenever it changes.

The one rule: one policy is always in force. If a changed file cannot be read or is refused, the previous policy stays
in force, and the reason is reported.

A file that is renamed into place, as a ConfigMap's swap does, is complete: it is loaded at once. A file that is written
in place may be read in the middle, and the beginning of a policy can be a valid policy: such a file is loaded once it
has not changed for `QUIET` seconds.

No file at the path can block the event loop: `scheduler.policy.loader` reads only regular files of bounded size, and a
file of more than `_SMALL` bytes is parsed in a thread.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..policy.loader import DEFAULT_TEXT, LARGEST, PolicyError, load_policy, read_policy
from ..policy.model import Policy

log = logging.getLogger(__name__)

CHECK_EVERY = 0.1
"""Seconds between two checks of the file's size and times."""
QUIET = 2.0
"""Seconds without a change after which a file that was written in place counts as complete."""
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

    def __init__(
        self,
        path: Path | None,
        on_change: Callable[[InForce], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._path = path
        self.on_change = on_change
        self._clock = clock
        self._seen = _Signature() if path is None else _signature(path)
        """Signature of the file that was loaded last, or is being loaded."""
        self._changing, self._since = self._seen, 0.0
        """The newest signature, and when it was first seen."""
        text = DEFAULT_TEXT if path is None else read_policy(path)
        source = "default" if path is None else str(path)
        self.current = InForce(load_policy(text, source), source, text)

    async def run(self) -> None:
        """Load each new version of the file until cancelled."""
        if self._path is None:
            return
        while True:
            await asyncio.sleep(CHECK_EVERY)
            signature = _signature(self._path)
            if not self._is_new(signature):
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
        if self._path is None:
            return
        signature = _signature(self._path)
        if not self._is_new(signature) or _size(self._path) > _SMALL:
            return
        self._seen = signature
        self._adopt(_load(self._path, self.current))

    def _is_new(self, signature: _Signature) -> bool:
        """Whether the file differs from the loaded one and is complete."""
        if signature == self._seen or (signature.inode != self._seen.inode and self._seen.inode):
            return signature != self._seen
        if signature != self._changing:
            self._changing, self._since = signature, self._clock()
        return self._clock() - self._since >= QUIET

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


class _Signature(NamedTuple):
    """What changes with the file: a rename into place changes the inode, a write in place does not."""

    inode: int = 0
    modified: int = 0
    size: int = 0
    error: int | None = None


def _signature(path: Path) -> _Signature:
    try:
        found = path.stat()
    except OSError as error:
        return _Signature(error=error.errno)
    return _Signature(found.st_ino, found.st_mtime_ns, found.st_size)


def _size(path: Path) -> int:
    """Return the number of bytes to parse; 0 if the file will be refused before it is parsed."""
    try:
        size = path.stat().st_size
    except OSError:
        return 0
    return size if size <= LARGEST else 0
