"""The policy file, read again when it changes.

The one rule: there is always one policy in force; a file that cannot be read or is refused leaves it as it is, and
says so.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..policy.loader import DEFAULT_TEXT, PolicyError, load_policy
from ..policy.model import Policy

log = logging.getLogger(__name__)

LOOK_EVERY = 0.1
"""Seconds between two looks at the file's size and times."""


@dataclass(frozen=True, slots=True)
class InForce:
    """The policy that cycles use. ``error`` says why a newer file was refused, or is empty; ``refused`` is that
    file's text, empty where it could not be read.
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
        """Of the text that ``error`` is about: who wrote the file can tell it from an answer to an older one."""
        return hashlib.sha256(self.refused.encode()).hexdigest() if self.error else ""


class PolicyFile:
    """One policy file. ``on_change`` is told of each new policy and of each refusal (``error`` set)."""

    def __init__(self, path: Path | None, on_change: Callable[[InForce], None] = lambda _: None) -> None:
        self._path = path
        self.on_change = on_change
        self._seen: object = None
        text = DEFAULT_TEXT if path is None else self._read(path)
        source = "default" if path is None else str(path)
        self.current = InForce(load_policy(text, source), source, text)

    def _read(self, path: Path) -> str:
        self._seen = _signature(path)
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "not UTF-8"
            message = f"{path}: cannot read the policy file: {why}; name a readable one with --policy"
            raise PolicyUnreadable(message) from error

    async def run(self) -> None:
        """Look at the file until cancelled."""
        if self._path is None:
            return
        while True:
            await asyncio.sleep(LOOK_EVERY)
            self.look()

    def look(self) -> None:
        """Take over what the file says now, if it changed since the last look."""
        if self._path is None or _signature(self._path) == self._seen:
            return
        before, text = self.current, ""
        try:
            text = self._read(self._path)
            if text == before.text and not before.error:
                return
            self.current = InForce(load_policy(text, str(self._path)), str(self._path), text)
            log.info("policy loaded: %s", self.current.sha256)
        except (PolicyError, PolicyUnreadable) as error:
            self._refuse(str(error), text)
        except Exception as error:  # a defect met on one file must not stop the scheduling
            log.exception("the policy file cannot be judged")
            self._refuse(f"{self._path}: cannot be judged: {error!r}; write it anew", text)
        self.on_change(self.current)

    def _refuse(self, why: str, text: str) -> None:
        now = self.current
        self.current = InForce(now.policy, now.path, now.text, why, text)
        log.error("policy refused, the old one stays: %s", why)


class PolicyUnreadable(Exception):  # noqa: N818 - as the errors of the API
    """The file cannot be read at all."""


def _signature(path: Path) -> object:
    """Changes when the file does; a mounted ConfigMap changes its inode."""
    try:
        stat = path.stat()
    except OSError as error:
        return error.errno
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)
