"""Open the files that users name. The one rule: only a regular file is read.

A FIFO without a writer blocks its reader for ever, and an endless device fills its memory. Both may stand where a file
was a moment ago, so the open file is judged and not its path. Errors are OSErrors, as of a file that is missing.
"""

from __future__ import annotations

import errno
import io
import os
import re
import stat
from pathlib import Path

_OPEN = re.compile(r"/dev/(stdin|fd/\d+)|/proc/self/fd/\d+")
"""The path of a file that this process has open already, for instance of the shell's `<(…)`."""
_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFSOCK: "a socket",
}


class NotAFileError(OSError):
    """A path that names no regular file."""

    def __init__(self, path: Path, mode: int) -> None:
        kind = _KINDS.get(stat.S_IFMT(mode), "the path")
        super().__init__(errno.EINVAL, f"{kind} is not a regular file", str(path))


def open_input(path: Path, *, pipes: bool = False, links: bool = True) -> io.BufferedReader:
    """Open a file for reading.

    Args:
        path: The file.
        pipes: Whether to read a pipe, too, that this process has open: `/dev/stdin`, `<(…)`. For files read once.
        links: Whether to follow a link; a file that another machine wrote must not name one of this machine.

    Raises:
        OSError: The file cannot be opened, or is not a regular file.
    """
    is_open = pipes and _OPEN.fullmatch(str(path)) is not None
    more = (0 if is_open else os.O_NONBLOCK) | (0 if links else os.O_NOFOLLOW)
    try:
        # a FIFO without a writer must not block, even if it replaces the file right before the call
        file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | more))  # noqa: SIM115 - the caller closes it
    except OSError as problem:
        if problem.errno == errno.ENXIO:  # a socket cannot be opened
            raise NotAFileError(path, path.stat().st_mode) from None
        raise
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISREG(mode) or (is_open and stat.S_ISFIFO(mode)):
        return file
    file.close()
    raise NotAFileError(path, mode)


def read_bytes(path: Path, *, pipes: bool = False) -> bytes:
    """Return the content of a file. The arguments and errors are those of `open_input`."""
    with open_input(path, pipes=pipes) as file:
        return file.read()


def read_text(path: Path, *, pipes: bool = False) -> str:
    """Return the text of a file in UTF-8. Raises UnicodeDecodeError; else as `open_input`."""
    with io.TextIOWrapper(open_input(path, pipes=pipes), "utf-8") as file:
        return file.read()
