"""Fixtures for Kind clusters. Tests that boot a real one carry the marker `kind`; other tests use fake programs."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from schedspec.clusters import Settings
from schedspec.clusters.kind.cluster import KindCluster
from schedspec.clusters.paths import kind_config
from tests.schedspec.clusters.kind.fakes import Fakes
from tests.support.cluster_api import Api


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "kind: boots a Kind cluster (half a minute; needs a Docker engine and a node image)"
    )


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Use an empty cache of programs and images."""
    monkeypatch.setenv("SCHEDSPEC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fakes:
    """Put fake programs first in PATH."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return Fakes(folder, sys.executable)


@pytest.fixture(scope="session")
def cards() -> Iterator[KindCluster]:
    """One live cluster, of which one node has 8 cards, for all tests that can share it."""
    cluster = KindCluster(Settings(kind="kind", kind_config=kind_config() / "cards.yaml"))
    cluster.up(print)
    yield cluster
    cluster.down()


@pytest.fixture
def api(cards: KindCluster, tmp_path: Path) -> Iterator[Api]:
    api = Api(SimpleNamespace(kubeconfig=with_files(cards.kubeconfig, tmp_path)))  # type: ignore[arg-type]
    yield api
    api.close()


def with_files(kubeconfig: Path, folder: Path) -> Path:
    """Write the kubeconfig with its certificates as files."""
    content = yaml.safe_load(kubeconfig.read_text())
    for owner, key in (
        (content["clusters"][0]["cluster"], "certificate-authority"),
        (content["users"][0]["user"], "client-certificate"),
        (content["users"][0]["user"], "client-key"),
    ):
        file = folder / key
        file.write_bytes(base64.b64decode(owner.pop(f"{key}-data")))
        owner[key] = str(file)
    path = folder / "kubeconfig.yaml"
    path.write_text(yaml.safe_dump(content))
    return path
