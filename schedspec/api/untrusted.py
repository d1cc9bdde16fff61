"""Read files that another machine wrote: results and records of shards, which a pull request may have changed.

Only a regular file of bounded size is read. Every failure to decode it raises RefusedFileError, which names the file
and the problem and never repeats the content.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from ..scheduler.model.input_files import open_input
from .errors import HarnessError

T = TypeVar("T")
MAX_BYTES = 32 << 20
"""The size limit of one file."""
MAX_MEMORY = 1 << 30
"""The memory limit of all decoded content, as `memory_of` estimates it; `{}` alone takes a hundred times its size."""


class RefusedFileError(HarnessError):
    """A file does not have the expected form or content."""


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file. Raises RefusedFileError."""
    try:
        with open_input(path, links=False) as file:
            content = file.read(most + 1)
    except OSError as problem:
        raise RefusedFileError(f"{path}: cannot be read: {problem.strerror}") from None
    if len(content) > most:
        raise RefusedFileError(f"{path}: larger than {most >> 20} MiB; leave it out, or run fewer scenarios at a time")
    return content


def memory_of(content: bytes) -> int:
    """Return the maximum memory of decoded JSON content in bytes, estimated from its length and punctuation."""
    return 5 * len(content) + 250 * content.count(b"{") + 110 * content.count(b",") + 40 * content.count(b"[")


def decode(path: Path, content: bytes, type_: type[T], what: str, most: int = MAX_MEMORY) -> T:
    """Return the JSON content of a file as `type_`; `what` names the kind of file. Raises RefusedFileError."""
    if memory_of(content) > most:
        problem = f"takes too much memory together with the files read before ({MAX_MEMORY >> 20} MiB in all)"
        raise RefusedFileError(f"{path}: {problem}; leave it out, or read fewer files at a time")
    try:
        return msgspec.json.decode(content, type=type_)
    except msgspec.ValidationError as problem:
        raise RefusedFileError(f"{path}: not {what}: {problem}") from None
    except (msgspec.MsgspecError, UnicodeError):
        raise RefusedFileError(f"{path}: not {what}: not JSON") from None
    except (ValueError, RecursionError):
        raise RefusedFileError(f"{path}: not {what}: a number is too large or the nesting too deep") from None
