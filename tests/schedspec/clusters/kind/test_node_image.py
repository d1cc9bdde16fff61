"""Choice of the node image of a Kind cluster, and the error when no image is available."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from schedspec.clusters import Settings
from schedspec.clusters.docker import Docker, DockerError
from schedspec.clusters.images import archives, node_image
from schedspec.clusters.images.node_image import KINDEST, NodeImageError
from schedspec.clusters.kind import kind_gate
from schedspec.clusters.kind.cluster import can_run, why_not
from schedspec.clusters.programs import binaries
from tests.schedspec.clusters.kind.fakes import Fakes

BUILT = "node-v1.36.3-0123456789ab.tar"
OWN = "schedspec.local/node:v1.36.3-0123456789ab"
NAMED = "kindest/node:v1.35.0"


@dataclass(frozen=True)
class Case:
    engine: list[str] = field(default_factory=list)
    registry: list[str] = field(default_factory=list)
    built: bool = False
    named: str | None = None
    expected: tuple[str, str] | None = None


CHOICES = {
    "no image": Case(),
    "kind's own image in the engine": Case(engine=[KINDEST, OWN], built=True, expected=(KINDEST, "present")),
    "our image in the engine": Case(engine=[OWN], registry=[KINDEST], built=True, expected=(OWN, "present")),
    "our image in the cache": Case(registry=[KINDEST], built=True, expected=(OWN, "archive")),
    "kind's own image in a registry": Case(registry=[KINDEST], expected=(KINDEST, "registry")),
    "a named image in the engine": Case(engine=[NAMED, KINDEST], named=NAMED, expected=(NAMED, "present")),
    "a named image in a registry": Case(engine=[KINDEST], registry=[NAMED], named=NAMED, expected=(NAMED, "registry")),
    "a named image that is unavailable": Case(engine=[KINDEST], built=True, named=NAMED),
}


@pytest.mark.parametrize("name", CHOICES)
def test_a_present_image_takes_precedence_over_one_in_a_registry(name: str, fakes: Fakes, empty_cache: Path) -> None:
    case = CHOICES[name]
    fakes.engine_has(*case.engine)
    fakes.registry_has(*case.registry)
    if case.built:
        archives.place(BUILT).touch()
    settings = Settings(kind="kind", kind_image=case.named)
    found = node_image.find(settings, Docker())
    assert (found and (found.reference, found.how)) == case.expected
    assert can_run(settings) == (case.expected is not None)
    assert not [call for call in fakes.calls("docker") if call.startswith(("pull", "load"))], "choosing fetches nothing"


def test_a_cached_image_is_loaded_and_a_registry_image_is_pulled(fakes: Fakes, empty_cache: Path) -> None:
    fakes.registry_has(KINDEST)
    assert node_image.provide(Settings(kind="kind"), Docker(), print).reference == KINDEST
    assert f"pull --quiet {KINDEST}" in fakes.calls("docker")
    (fakes.folder / "images").unlink()
    archives.place(BUILT).touch()
    assert node_image.provide(Settings(kind="kind"), Docker(), print).reference == OWN
    assert f"load --quiet --input {archives.place(BUILT)}" in fakes.calls("docker")


def test_the_built_image_that_was_requested_last_is_used(fakes: Fakes, empty_cache: Path) -> None:
    for number, name in enumerate(("node-v1.36.3-a.tar", "node-v1.36.3-b.tar")):
        archives.place(name).touch()
        os.utime(archives.place(name), (number, number))
    before = node_image.fingerprint()
    assert archives.newest("node") == archives.place("node-v1.36.3-b.tar")
    archives.kept("node-v1.36.3-a.tar", lambda path: None, print)
    found = node_image.find(Settings(kind="kind"), Docker())
    assert found is not None
    assert found.reference == "schedspec.local/node:v1.36.3-a"
    assert node_image.fingerprint() != before


def test_without_an_image_the_error_says_how_to_build_one(fakes: Fakes, empty_cache: Path) -> None:
    with pytest.raises(NodeImageError) as caught:
        node_image.provide(Settings(kind="kind"), Docker(), print)
    assert "the registry of kindest/node:v1.37.0 is unreachable, and none was built here" in str(caught.value)
    assert "python -m hack.images.node_image build" in caught.value.do_next


def test_the_error_for_an_unavailable_named_image_names_it(fakes: Fakes, empty_cache: Path) -> None:
    with pytest.raises(NodeImageError) as caught:
        node_image.provide(Settings(kind="kind", kind_image=NAMED), Docker(), print)
    assert caught.value.what.startswith(f"the node image {NAMED} is not in the Docker engine")
    assert caught.value.where == "--kind-image"


def test_an_engine_that_does_not_answer_is_an_error_with_a_remedy(fakes: Fakes) -> None:
    fakes.engine_answers(None)
    with pytest.raises(DockerError) as caught:
        Docker().require()
    assert caught.value.what.startswith("the Docker engine did not answer")
    assert "--cluster embedded needs none" in caught.value.do_next
    assert not can_run(Settings(kind="kind"))


def test_an_engine_that_hangs_counts_as_one_that_does_not_answer(fakes: Fakes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("schedspec.clusters.docker._ANSWER_SECONDS", 0.2)
    fakes.engine_hangs()
    assert "the Docker engine did not answer" in (why_not(Settings(kind="kind")) or "")


def test_without_docker_the_error_says_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DockerError, match="Docker, and it is not installed"):
        Docker().require()


def test_the_error_for_a_failed_command_quotes_docker(fakes: Fakes) -> None:
    with pytest.raises(DockerError) as caught:
        Docker().call("frobnicate", "x")
    assert caught.value.what == "`docker frobnicate` failed (exit status 125):\nunexpected: docker frobnicate x"
    assert caught.value.where == "docker frobnicate x"


@pytest.mark.parametrize(
    ("when", "available", "status", "message"),
    [
        ("never", True, kind_gate.SKIP, "features on Kind: not requested"),
        ("auto", True, kind_gate.RUN, ""),
        ("auto", False, kind_gate.SKIP, "features on Kind: not available\nthere is no node image"),
        ("required", True, kind_gate.RUN, ""),
        ("required", False, kind_gate.FAIL, "features on Kind: required, and they cannot run\nthere is no node image"),
        ("sometimes", True, 2, "FEATURES_ON_KIND=sometimes: name one of: auto, required, never"),
    ],
)
def test_features_run_on_kind_when_requested_and_possible(
    when: str,
    available: bool,
    status: int,
    message: str,
    fakes: Fakes,
    empty_cache: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if available:
        fakes.engine_has(KINDEST)
    assert kind_gate.main([when]) == status
    assert capsys.readouterr().err.startswith(message)


@pytest.mark.kind
def test_the_pinned_image_is_the_default_of_kind() -> None:
    kind = binaries.provide(["kind"], folder=None, progress=print)["kind"].path
    named = set(re.findall(rb"kindest/node:v[0-9.]+@sha256:[0-9a-f]{64}", kind.read_bytes()))
    assert named == {KINDEST.encode()}
