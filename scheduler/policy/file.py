"""Read the text of a policy file.

Users, ConfigMaps and pull requests supply the file, so only a regular file of at most `LARGEST` bytes in UTF-8 is read.
Therefore a FIFO cannot block the reader, and an endless device cannot fill its memory.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .source import PolicyError

LARGEST = 1 << 20
"""Maximum bytes of a policy file."""


class UnreadablePolicyError(PolicyError):
    """The policy file cannot be read."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(str(path), ())
        self.args = (f"{path}: cannot read the policy file: {why}; name a readable file with --policy",)


def read_policy(path: Path) -> str:
    """Return the text of a policy file.

    Raises:
        UnreadablePolicyError: The path is not a regular file, or the file is too large or not UTF-8.
    """

    def problem(why: str) -> UnreadablePolicyError:
        return UnreadablePolicyError(path, why)

    try:
        # a FIFO without a writer must not block, even if it replaces the file right before the call
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(mode := os.fstat(file.fileno()).st_mode):
                raise problem(f"{_kind_of(mode)} is not a regular file")
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise problem(f"it is larger than {LARGEST:,} bytes")
        return data.decode()
    except OSError as error:
        raise problem(error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise problem("not UTF-8") from error


def _kind_of(mode: int) -> str:
    kinds = {stat.S_IFIFO: "a FIFO", stat.S_IFCHR: "a character device", stat.S_IFBLK: "a block device"}
    return kinds.get(stat.S_IFMT(mode), "the path")
