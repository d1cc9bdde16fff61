"""The node image that hack/images builds: its key, and the check that a build is current."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hack.images import node_image, node_programs
from schedspec.clusters.docker import Docker
from schedspec.clusters.images.node_image import OWN, NodeImage, NodeImageError


def test_the_key_changes_with_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    before = node_image.key()
    assert node_image.key() == before
    monkeypatch.setattr(node_programs, "NETWORK", ("ptp",))
    assert node_image.key() != before


@pytest.mark.parametrize("file", ["root", "setup", "files/kind/bin/pod-routes"])
def test_the_key_changes_with_the_recipe(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = node_image.key()
    shutil.copytree(node_image.RECIPE, tmp_path / "recipe")
    monkeypatch.setattr(node_image, "RECIPE", tmp_path / "recipe")
    assert node_image.key() == before
    with (tmp_path / "recipe" / file).open("a") as changed:
        changed.write("# more\n")
    assert node_image.key() != before


def test_an_image_built_from_an_older_recipe_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    for reference in (node_image.reference(), "kindest/node:v1"):
        monkeypatch.setattr(node_image.found, "require", lambda *_, it=reference: NodeImage(it, "archive"))
        assert node_image.where(Docker()) == f"{reference} (archive)"
    monkeypatch.setattr(node_image.found, "require", lambda *_: NodeImage(f"{OWN}v1.36.3-old", "present"))
    with pytest.raises(NodeImageError, match="was built from another recipe"):
        node_image.where(Docker())
