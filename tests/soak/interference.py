"""Disturb a scheduler without hostile objects: by bad policy files and by other writers."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

from schedspec.scheduler.kube import PODGROUPS, Client, Conflict, NotFound

_WRITES_EVERY = 0.005
"""Seconds between two changes of one writer."""


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.mkdir()


def _large(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(300_000_000)


def _binary(path: Path) -> None:
    path.write_bytes(b"\xff\x00" * 4_000)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


BAD_FILES: dict[str, Callable[[Path], None]] = {
    "a FIFO": _fifo,
    "a folder": _folder,
    "300 MB": _large,
    "bytes that are not text": _binary,
    "a device": _device,
}
"""Bad policy files: name → the function that creates one at a path."""


@contextlib.contextmanager
def bad_file(path: Path, what: str) -> Iterator[None]:
    """Replace the policy file by one of `BAD_FILES` while the context lasts."""
    good = path.with_suffix(".good")
    path.rename(good)
    BAD_FILES[what](path)
    try:
        yield
    finally:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)  # rename() cannot replace a folder
        good.rename(path)


@contextlib.asynccontextmanager
async def changing(client: Client, group: str, namespace: str) -> AsyncIterator[None]:
    """Change a PodGroup 200 times a second while the context lasts, so that other writers get conflicts."""

    async def change() -> None:
        number = 0
        while True:
            number += 1
            with contextlib.suppress(NotFound, Conflict):
                body = {"metadata": {"annotations": {"schedspec.dev/change": str(number)}}}
                await client.patch(PODGROUPS.bare, group, body, namespace)
            await asyncio.sleep(_WRITES_EVERY)

    writer = asyncio.create_task(change())
    try:
        yield
    finally:
        writer.cancel()
        await asyncio.gather(writer, return_exceptions=True)
