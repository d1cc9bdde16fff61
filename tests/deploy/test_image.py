"""The scheduler's image: its base image, its contents and tag, and the error if no base image is available."""

from __future__ import annotations

import shutil
import stat
import tarfile
from pathlib import Path
from typing import cast

import pytest

from hack.images import debian_root
from hack.images import python_base as builder
from schedspec.clusters.docker import Docker
from schedspec.clusters.images import archives, dockerfile, scheduler_image
from schedspec.clusters.protocol import BinaryError

ROOT = Path(__file__).parents[2]
BUILT = "python-3.11-0123456789ab.tar"
OWN = "schedspec.local/python:3.11-0123456789ab"


class Engine:
    """A Docker engine with the images `has`, and a registry with the images `offers`."""

    def __init__(self, has: tuple[str, ...] = (), offers: tuple[str, ...] = ()) -> None:
        self.has, self.offered = set(has), set(offers)
        self.calls: list[str] = []

    def has_image(self, reference: str) -> bool:
        return reference in self.has

    def offers(self, reference: str) -> bool:
        return reference in self.offered

    def pull(self, reference: str, progress: object) -> None:
        self.calls.append(f"pull {reference}")

    def call(self, *words: object, **more: object) -> str:
        self.calls.append(" ".join(map(str, words)))
        return ""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout with a scheduler of one file, beside an empty cache."""
    root = tmp_path / "checkout"
    shutil.copytree(ROOT / "deploy", root / "deploy")
    (root / "scheduler" / "live").mkdir(parents=True)
    (root / "scheduler" / "live" / "app.py").write_text("x = 1\n")
    monkeypatch.setattr(scheduler_image, "part", lambda folder: root / folder)
    monkeypatch.setenv("SCHEDSPEC_CACHE", str(tmp_path / "cache"))
    return root


def provided(engine: Engine) -> str:
    return dockerfile.provide_base(cast(Docker, engine), lambda _: None)


def test_a_base_image_of_the_engine_is_preferred(checkout: Path) -> None:
    archives.place(BUILT).touch()
    assert provided(Engine(has=(dockerfile.OFFICIAL, OWN))) == dockerfile.OFFICIAL
    engine = Engine(has=(OWN,), offers=(dockerfile.OFFICIAL,))
    assert (provided(engine), engine.calls) == (OWN, [])


def test_a_base_image_that_was_built_is_imported_from_the_cache(checkout: Path) -> None:
    archives.place(BUILT).touch()
    engine = Engine(offers=(dockerfile.OFFICIAL,))
    assert provided(engine) == OWN
    assert engine.calls == [f"import {archives.place(BUILT)} {OWN}"]


def test_without_a_built_base_image_the_official_one_is_pulled(checkout: Path) -> None:
    engine = Engine(offers=(dockerfile.OFFICIAL,))
    assert provided(engine) == dockerfile.OFFICIAL
    assert engine.calls == [f"pull {dockerfile.OFFICIAL}"]


def test_without_a_base_image_the_error_says_how_to_build_it(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = r"(?s)python:3\.11-slim\S* is unreachable.*do next: .*python -m hack\.images\.python_base build"
    with pytest.raises(BinaryError, match=expected):
        provided(Engine())
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(BinaryError, match=r"(?s)mmdebstrap is not installed.*do next: apt-get install mmdebstrap"):
        builder.ensure(cast(Docker, Engine()), lambda _: None)


def test_a_base_image_is_built_only_if_none_is_available(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Path] = []

    def make(recipe: Path, to: Path, tick: object, instead: str) -> None:
        built.append(recipe)
        to.touch()

    monkeypatch.setattr(debian_root, "make", make)
    for engine in (Engine(has=(dockerfile.OFFICIAL,)), Engine(offers=(dockerfile.OFFICIAL,)), Engine(), Engine()):
        builder.ensure(cast(Docker, engine), lambda _: None)
    assert built == [builder.RECIPE]
    assert provided(Engine()) == dockerfile.own()


def test_the_base_image_is_that_of_the_dockerfile_and_of_the_wheels_python() -> None:
    assert f"ARG BASE={dockerfile.OFFICIAL}\n" in (ROOT / "deploy" / "Dockerfile").read_text()
    assert dockerfile.OFFICIAL.startswith(f"python:{dockerfile.PYTHON}-")


@pytest.mark.parametrize("file", ["scheduler/live/app.py", "deploy/requirements.lock", "deploy/Dockerfile"])
def test_the_tag_changes_with_every_source_of_the_image(checkout: Path, file: str) -> None:
    before = scheduler_image.tag()
    assert scheduler_image.tag() == before
    with (checkout / file).open("a") as changed:
        changed.write("# more\n")
    assert scheduler_image.tag() != before


def test_the_tag_changes_when_a_base_image_was_built(checkout: Path) -> None:
    before = scheduler_image.tag()
    archives.place(BUILT).touch()
    assert scheduler_image.tag() != before


def test_the_build_context_has_exactly_the_needed_files_readable_by_all(checkout: Path, tmp_path: Path) -> None:
    (checkout / "scheduler" / "live" / "app.py").chmod(0o600)
    (checkout / "scheduler" / "notes.txt").write_text("not for the image")
    (tmp_path / "a-1-py3-none-any.whl").write_bytes(b"wheel")
    with tarfile.open(tmp_path / "wheels.tar", "w") as tar:
        tar.add(tmp_path / "a-1-py3-none-any.whl", "a-1-py3-none-any.whl")
    context = tmp_path / "context"
    context.mkdir()
    scheduler_image._fill(context, tmp_path / "wheels.tar")
    files = {str(path.relative_to(context)): path for path in context.rglob("*") if path.is_file()}
    assert files.keys() == {"deploy/requirements.lock", "scheduler/live/app.py", "wheels/a-1-py3-none-any.whl"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files.values()} == {0o644}
