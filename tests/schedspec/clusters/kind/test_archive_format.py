"""An image archive has the format that an engine expects, and is reproducible byte by byte."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from schedspec.clusters.images import archives
from schedspec.clusters.images.archives import Image, write


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program"
    path.write_bytes(b"\x7fELF")
    return path


def test_an_archive_names_its_images_and_contains_their_layers(program: Path, tmp_path: Path) -> None:
    under = tmp_path / "under.tar"
    with tarfile.open(under, "w") as tar:
        entry = tarfile.TarInfo("etc/os-release")
        entry.size = 4
        tar.addfile(entry, io.BytesIO(b"ID=x"))
    archive = tmp_path / "images.tar"
    write(
        archive,
        [
            Image("a:1", {"/bin/a": program}, entrypoint=["/bin/a"], command=["run"]),
            Image("b:2", {"/bin/b": program}, entrypoint=["/bin/b"], under=under),
        ],
    )
    with tarfile.open(archive) as tar:
        manifest = json.loads(_read(tar, "manifest.json"))
        assert [image["RepoTags"] for image in manifest] == [["a:1"], ["b:2"]]
        for image, files in zip(manifest, (["bin/a"], ["etc/os-release", "bin/b"]), strict=True):
            config = _read(tar, image["Config"])
            assert image["Config"] == f"{hashlib.sha256(config).hexdigest()}.json"
            layer = _read(tar, image["Layers"][0])
            assert json.loads(config)["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
            with tarfile.open(fileobj=io.BytesIO(layer)) as inner:
                assert inner.getnames() == files
                assert inner.getmember(files[-1]).mode == 0o755
        assert json.loads(_read(tar, manifest[0]["Config"]))["config"]["Cmd"] == ["run"]


def test_the_same_input_gives_the_same_bytes(program: Path, tmp_path: Path) -> None:
    image = Image("a:1", {"/a": program}, entrypoint=["/a"])
    write(tmp_path / "one.tar", [image])
    program.touch()
    write(tmp_path / "two.tar", [image])
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


def test_a_cached_archive_is_made_once_and_an_interrupted_one_is_discarded(empty_cache: Path) -> None:
    made: list[Path] = []

    def interrupted(path: Path) -> None:
        path.write_bytes(b"half")
        raise KeyboardInterrupt

    def whole(path: Path) -> None:
        made.append(path)
        path.write_bytes(b"whole")

    with pytest.raises(KeyboardInterrupt):
        archives.kept("x-1.tar", interrupted, print)
    assert not archives.place("x-1.tar").exists()
    assert archives.kept("x-1.tar", whole, print).read_bytes() == b"whole"
    assert archives.kept("x-1.tar", whole, print).read_bytes() == b"whole"
    assert len(made) == 1


def test_the_two_newest_archives_of_a_family_are_kept(empty_cache: Path) -> None:
    for name in ("x-1.tar", "y-1.tar", "x-2.tar", "x-3.tar"):
        archives.kept(name, lambda path: path.write_bytes(b"") and None, print)  # type: ignore[func-returns-value]
    assert sorted(path.name for path in archives.place("").glob("*.tar")) == ["x-2.tar", "x-3.tar", "y-1.tar"]


def _read(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    assert file is not None
    return file.read()
