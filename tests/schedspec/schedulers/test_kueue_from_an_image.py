"""Nightly: a Kueue that Go cannot build runs from its release image, taken from a registry without an engine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from schedspec.clusters.programs import binaries
from schedspec.clusters.programs.definitions import definitions
from schedspec.clusters.programs.pinned import EMBEDDED, program
from schedspec.schedulers.kueue.adapter import DEFINITIONS
from tests.support.fake_registry import FakeRegistry, layer, serving

pytestmark = [pytest.mark.embedded, pytest.mark.nightly]
ROOT = Path(__file__).parents[3]
FEATURE = "features/lifecycle/first_job.feature"
VERSION = "v0.19.999"
"""A version that no module has."""


@pytest.fixture
def image() -> list[bytes]:
    """Return the layers of a release image of the pinned Kueue, with its definitions; the upper one removes a file."""
    kueue = binaries.provide(["kueue"], folder=None, progress=print)["kueue"].path
    crds = {f"crds/{it.name}": it.read_bytes() for it in definitions(program("kueue"), DEFINITIONS).iterdir()}
    return [
        layer({**crds, "crds/broken.yaml": b"kind: CustomResourceDefinition\n"}),
        layer({"manager": kueue.read_bytes(), "crds/.wh.broken.yaml": b""}),
    ]


def test_a_feature_passes_with_the_program_and_the_definitions_of_the_image(image: list[bytes], tmp_path: Path) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    for found in binaries.provide([*EMBEDDED, "kube-scheduler"], folder=None, progress=print).values():
        (folder / found.name).symlink_to(found.path)
    with serving(FakeRegistry(image, tag=VERSION)) as registry:
        surroundings = {
            "SCHEDSPEC_REGISTRY": registry.address,
            "SCHEDSPEC_BINARIES": str(folder),
            "SCHEDSPEC_CACHE": str(tmp_path / "cache"),
            "GOPROXY": "off",
        }
        done = subprocess.run(
            [sys.executable, "-m", "pytest", FEATURE, "--cluster", "embedded", "--scheduler", f"kueue@{VERSION}", "-q"],
            cwd=ROOT,
            env={**os.environ, **surroundings},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"kueue {VERSION}" in done.stdout
    assert " passed" in done.stdout.splitlines()[-1]
