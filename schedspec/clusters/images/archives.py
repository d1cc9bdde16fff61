"""Keep archives of images in the cache.

An archive is complete or absent: `kept` renames a finished file. A file lock lets one process at a time make an
archive. The two newest archives of each family are kept, because a node image takes nearly a gigabyte.

Images are written in the format of `docker save`, without an engine. Equal input gives equal bytes: timestamps are
constant, and programs are sorted.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..paths import cache_root
from ..programs.cache import locked
from ..programs.download import sha256
from ..programs.pinned import target
from ..protocol import Progress

_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Image:
    """An image of one layer."""

    name: str
    """Name with a tag, for instance `schedspec.local/worker:1`."""
    programs: Mapping[str, Path]
    """Absolute path in the image → executable file here."""
    entrypoint: Sequence[str]
    command: Sequence[str] = ()
    under: Path | None = None
    """Tar file with further contents of the image."""


def write(archive: Path, images: Sequence[Image]) -> None:
    """Write all images into one archive for `docker load`, `ctr images import` and `kind load`."""
    with (
        tempfile.TemporaryDirectory(dir=archive.parent, prefix=".layers-") as folder,
        tarfile.open(archive, "w") as tar,
    ):
        manifest = [_add(tar, image, Path(folder) / "layer.tar") for image in images]
        _add_bytes(tar, "manifest.json", _json(manifest))


def _add(tar: tarfile.TarFile, image: Image, layer: Path) -> dict[str, object]:
    """Add one image's layer and configuration. Return its entry in the manifest."""
    _write_layer(layer, image)
    digest = sha256(layer)
    system, architecture = target()
    config = _json(
        {
            "architecture": architecture,
            "os": system,
            "created": "1970-01-01T00:00:00Z",
            "config": {
                "Env": [_PATH],
                "Entrypoint": list(image.entrypoint),
                "Cmd": list(image.command),
            },
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        }
    )
    layer_name, config_name = f"{digest}/layer.tar", f"{hashlib.sha256(config).hexdigest()}.json"
    if layer_name not in tar.getnames():
        with layer.open("rb") as file:
            tar.addfile(_entry(layer_name, layer.stat().st_size, 0o644), file)
    _add_bytes(tar, config_name, config)
    return {"Config": config_name, "RepoTags": [image.name], "Layers": [layer_name]}


def _write_layer(layer: Path, image: Image) -> None:
    with tarfile.open(layer, "w") as tar:
        if image.under is not None:
            with tarfile.open(image.under) as under:
                for member in under:
                    member.mtime = 0
                    tar.addfile(member, under.extractfile(member) if member.isfile() else None)
        for path, program in sorted(image.programs.items()):
            with program.open("rb") as file:
                tar.addfile(_entry(path.lstrip("/"), program.stat().st_size, 0o755), file)


def _entry(name: str, size: int, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, mode
    return entry


def _add_bytes(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    tar.addfile(_entry(name, len(content), 0o644), io.BytesIO(content))


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def place(name: str) -> Path:
    """Return the path of an archive in the cache. The file may be missing.

    Args:
        name: `<family>-<key>.tar`; the key changes with everything that the image is made from.
    """
    folder = cache_root() / "images"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / name


def newest(family: str) -> Path | None:
    """Return the archive of a family that was made or requested last, or None."""
    return max(place("").glob(f"{family}-*.tar"), key=lambda file: file.stat().st_mtime, default=None)


def kept(name: str, make: Callable[[Path], None], progress: Progress) -> Path:
    """Return the path of an archive. If the archive is missing, `make(path)` writes it."""
    archive = place(name)
    if archive.is_file():
        archive.touch()  # `newest` prefers the archive that was requested last
        return archive
    with locked(
        archive.with_suffix(".lock"),
        lambda waited: progress(f"{name}: waiting for another run that is making it, {waited:.0f} s"),
    ):
        if not archive.is_file():
            new = archive.with_suffix(".new")
            new.unlink(missing_ok=True)
            make(new)
            new.replace(archive)
            _prune(archive)
    return archive


def _prune(newest: Path) -> None:
    """Remove all archives of the family except the two newest."""
    family = newest.name.partition("-")[0]
    archives = sorted(newest.parent.glob(f"{family}-*.tar"), key=lambda file: file.stat().st_mtime)
    for old in archives[:-2]:
        old.unlink(missing_ok=True)
