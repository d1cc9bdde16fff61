"""The files of an image from its layers: each layer covers those below it, and removes from them by whiteouts.

Layers are tar files as in the OCI image specification; gzip is read, and what else this Python's `tarfile` knows.
"""

from __future__ import annotations

import posixpath
import shutil
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

MAXIMUM_BYTES: Final = 2 << 30
"""Maximum bytes of all layers, packed, and of one file in them: release images of schedulers have at most 200 MB."""
_DEFINITION_BYTES: Final = 8 << 20
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_LINKS: Final = 8
Files = dict[str, tuple[Path, tarfile.TarInfo]]
"""Path in an image → the layer that has the file, and the entry there."""


class LayerError(Exception):
    """An image does not have a file, or not as a file; the text continues a sentence that begins with the image."""


def merged(layers: Sequence[Path]) -> Files:
    """Return the files of an image, from its layers, the lowest first."""
    files: Files = {}
    for layer in layers:
        added: Files = {}
        with tarfile.open(layer) as tar:
            for member in tar:
                path = posixpath.normpath(f"/{member.name}")
                folder, name = posixpath.split(path)
                if name == _OPAQUE:
                    _remove(files, folder, itself=False)
                elif name.startswith(_WHITEOUT):
                    _remove(files, posixpath.join(folder, name.removeprefix(_WHITEOUT)))
                else:
                    added[path] = layer, member
        files |= added
    return files


def _remove(files: Files, path: str, *, itself: bool = True) -> None:
    for name in [name for name in files if name.startswith(f"{path}/") or (itself and name == path)]:
        del files[name]


def extract(files: Files, inside: str, to: Path) -> None:
    """Write a file of the image to `to`, links followed. Raises LayerError."""
    path = inside
    for _ in range(_LINKS):
        if path not in files:
            break
        layer, member = files[path]
        if member.issym():
            path = posixpath.normpath(posixpath.join(posixpath.dirname(path), member.linkname))
        elif member.islnk():
            path = posixpath.normpath(f"/{member.linkname}")
        else:
            _copy(layer, member, to)
            return
    raise LayerError(f"has no file {inside}")


def _copy(layer: Path, member: tarfile.TarInfo, to: Path) -> None:
    if member.size > MAXIMUM_BYTES:
        raise LayerError(f"has a larger {member.name} than {MAXIMUM_BYTES >> 30} GiB")
    with tarfile.open(layer) as tar, to.open("wb") as file:
        source = tar.extractfile(member)
        if source is None:
            raise LayerError(f"has no file {member.name}, but another kind of entry")
        shutil.copyfileobj(source, file)


def extract_definitions(files: Files, folder: Path) -> None:
    """Copy every file of the image that is a custom resource definition. Without one, the folder is not made."""
    for path, (layer, member) in files.items():
        if not path.endswith((".yaml", ".yml")) or not member.isfile() or member.size > _DEFINITION_BYTES:
            continue
        draft = folder / posixpath.basename(path)
        folder.mkdir(exist_ok=True)
        _copy(layer, member, draft)
        if b"\nkind: CustomResourceDefinition\n" not in b"\n" + draft.read_bytes():
            draft.unlink()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
