"""A program comes out of a release image whole and verified, or the registry's fault is named."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from schedspec.clusters.programs import build
from schedspec.clusters.programs.binaries import Provider
from schedspec.clusters.programs.cache import Cache
from schedspec.clusters.programs.definitions import definitions
from schedspec.clusters.programs.download import Downloads
from schedspec.clusters.programs.pinned import Program, program
from schedspec.clusters.programs.registries import ImageError, Reference, Registries
from schedspec.clusters.protocol import BinaryError
from tests.support.fake_registry import BASIC, FakeRegistry, layer, serving

IMAGE = "registry.example/team/scheduler:v1.2.3"
CRD = b"apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: queues.example}\n"


Serve = Callable[[FakeRegistry], FakeRegistry]


@pytest.fixture
def serve_registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Serve]:
    """Return a function that starts a registry; this user has no login."""
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    monkeypatch.delenv("REGISTRY_AUTH_FILE", raising=False)
    with ExitStack() as servers:
        yield lambda registry: servers.enter_context(serving(registry))


def take(registry: FakeRegistry, to: Path, inside: str = "/manager") -> str:
    return Registries(registry.address, answer_seconds=2).take(IMAGE, inside, to, lambda _: None)


def test_a_program_comes_out_of_the_layers_with_its_definitions(serve_registry: Serve, tmp_path: Path) -> None:
    below = layer({"manager": b"old", "crds/gone.yaml": CRD, "old/a.yaml": CRD, "etc/notes.yaml": b"a: 1\n"})
    above = layer({"manager": b"new", "crds/.wh.gone.yaml": b"", "old/.wh..wh..opq": b"", "crds/queues.yaml": CRD})
    registry = serve_registry(FakeRegistry([below, above]))
    origin = take(registry, tmp_path / "kueue")
    assert (tmp_path / "kueue").read_bytes() == b"new"
    assert (tmp_path / "kueue").stat().st_mode & 0o111
    assert [it.name for it in (tmp_path / "crds").iterdir()] == ["queues.yaml"]
    assert origin.startswith(f"{registry.address}/team/scheduler:v1.2.3@sha256:")


@pytest.mark.parametrize(
    ("above", "found"),
    [
        (layer({}, {"manager": "bin/kueue"}), b"program"),
        (layer({}, {"manager": "/bin/kueue"}), b"program"),
        (layer({".wh.bin": b""}, {"manager": "bin/kueue"}), None),
        (layer({"bin/.wh..wh..opq": b""}, {"manager": "bin/kueue"}), None),
        (layer({"bin/.wh..wh..opq": b"", "bin/kueue": b"other"}, {"manager": "bin/kueue"}), b"other"),
        (layer({}, {"manager": "manager"}), None),
        (layer({}, {"manager": "../../../../../etc/hostname"}), None),
    ],
    ids=["link", "absolute-link", "folder-removed", "folder-emptied", "folder-replaced", "circle", "outside"],
)
def test_links_are_followed_in_the_image_and_never_out_of_it(
    above: bytes, found: bytes | None, serve_registry: Serve, tmp_path: Path
) -> None:
    registry = serve_registry(FakeRegistry([layer({"bin/kueue": b"program"}), above]))
    if found is None:
        with pytest.raises(ImageError, match="has no file /manager"):
            take(registry, tmp_path / "kueue")
    else:
        take(registry, tmp_path / "kueue")
        assert (tmp_path / "kueue").read_bytes() == found


@pytest.mark.parametrize(
    ("spoiled", "why"),
    [
        ("digest", "the digest of a layer is sha256:"),
        ("manifest", "the digest of the manifest is sha256:"),
        ("cut", r"only \d+ of a layer's \d+ bytes arrived|IncompleteRead"),
        ("missing", "404 Not Found"),
        ("platform", "has no image for"),
        ("text", "the answer is no image"),
    ],
)
def test_nothing_of_a_spoiled_image_is_kept(spoiled: str, why: str, serve_registry: Serve, tmp_path: Path) -> None:
    registry = serve_registry(FakeRegistry([layer({"manager": b"program"})], spoiled=spoiled))
    with pytest.raises(ImageError, match=why):
        take(registry, tmp_path / "kueue")
    assert not (tmp_path / "kueue").exists()
    assert [it.name for it in tmp_path.iterdir()] == []


def test_a_layer_that_is_no_archive_is_refused(serve_registry: Serve, tmp_path: Path) -> None:
    with pytest.raises(ImageError, match="this Python cannot read"):
        take(serve_registry(FakeRegistry([b"\x28\xb5\x2f\xfd zstd"])), tmp_path / "kueue")


@pytest.mark.parametrize("challenge", ["Basic", "Bearer"])
@pytest.mark.parametrize("place", ["docker", "podman", "helper", "store"])
def test_logins_of_other_clients_are_found(
    challenge: str, place: str, serve_registry: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = serve_registry(FakeRegistry([layer({"manager": b"program"})], challenge=challenge))
    logins: dict[str, dict[str, object]] = {
        "docker": {"auths": {registry.address: {"auth": BASIC}}},
        "podman": {"auths": {registry.address: {"auth": BASIC}}},
        "helper": {"credHelpers": {registry.address: "ours"}},
        "store": {"auths": {registry.address: {}}, "credsStore": "ours"},
    }
    file = tmp_path / ("auth.json" if place == "podman" else "docker/config.json")
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(logins[place]))
    if place == "podman":
        monkeypatch.setenv("REGISTRY_AUTH_FILE", str(file))
    helper = tmp_path / "docker-credential-ours"
    helper.write_text('#!/bin/sh\necho \'{"Username": "reader", "Secret": "secret"}\'\n')
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    take(registry, tmp_path / "kueue")
    assert (tmp_path / "kueue").read_bytes() == b"program"


@pytest.mark.parametrize("challenge", ["Basic", "Bearer", "Digest"])
@pytest.mark.parametrize(
    ("auth", "why"), [("", "asks for a login"), ("d3Jvbmc=", "refuses the credentials of this user")]
)
def test_a_registry_that_refuses_names_the_login(
    challenge: str, auth: str, why: str, serve_registry: Serve, tmp_path: Path
) -> None:
    registry = serve_registry(FakeRegistry([layer({"manager": b"program"})], challenge=challenge))
    (tmp_path / "docker").mkdir()
    login = {"auths": {registry.address: {"auth": auth}}}
    (tmp_path / "docker" / "config.json").write_text(json.dumps(login))
    with pytest.raises(ImageError, match=rf"{why} \(docker login {registry.address}\)"):
        take(registry, tmp_path / "kueue")


def test_a_registry_that_does_not_answer_is_reported_at_once(tmp_path: Path) -> None:
    with pytest.raises(ImageError, match=r"127\.0\.0\.1:1/team/scheduler:v1.2.3: .*refused"):
        Registries("127.0.0.1:1").take(IMAGE, "/manager", tmp_path / "kueue")


@pytest.mark.parametrize(
    ("image", "url"),
    [
        ("docker.io/volcanosh/vc-scheduler:v1", "https://registry-1.docker.io/v2/volcanosh/vc-scheduler"),
        ("registry.k8s.io/kueue/kueue:v1", "https://registry.k8s.io/v2/kueue/kueue"),
        ("localhost:5000/kueue/kueue:v1", "http://localhost:5000/v2/kueue/kueue"),
    ],
)
def test_only_a_registry_on_this_machine_is_asked_without_tls(image: str, url: str) -> None:
    assert Reference.of(image).url == url


def tool(image: str = IMAGE) -> Program:
    return Program("tool", "v1.2.3", None, "example.test/tool", "", None, "example.test/tool", image, "/manager")


def provider(tmp_path: Path, messages: list[str], registry: FakeRegistry) -> Provider:
    registries = Registries(registry.address, answer_seconds=2)
    return Provider(Cache(tmp_path / "cache"), Downloads(), None, messages.append, registries)


def test_the_image_is_the_source_where_go_cannot_build(
    serve_registry: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "go", lambda: None)
    monkeypatch.setenv("SCHEDSPEC_CACHE", str(tmp_path / "cache"))
    registry = serve_registry(FakeRegistry([layer({"manager": b"program", "crds/queues.yaml": CRD})]))
    messages: list[str] = []
    binary = provider(tmp_path, messages, registry).provide([tool()])["tool"]
    assert binary.path.read_bytes() == b"program"
    assert "@sha256:" in binary.origin
    assert any("Go is not installed; trying its image" in line for line in messages)
    asked = list(registry.asked)
    again = provider(tmp_path, [], registry).provide([tool()])["tool"]
    assert (again, registry.asked) == (binary, asked)  # from the cache
    assert [it.name for it in definitions(tool(), ["*.yaml"]).iterdir()] == ["queues.yaml"]


def test_the_error_names_both_sources_that_failed(
    serve_registry: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "go", lambda: None)
    registry = serve_registry(FakeRegistry([], spoiled="missing"))
    with pytest.raises(BinaryError, match=r"Go is not installed; its image cannot be used either: .*404") as caught:
        provider(tmp_path, [], registry).provide([tool()])
    assert "SCHEDSPEC_REGISTRY=HOST" in caught.value.do_next


@pytest.mark.parametrize(
    ("name", "tag"),
    [
        *((name, "v1.2.3") for name in ("kueue", "vc-scheduler", "vc-controller-manager", "kube-scheduler")),
        ("yunikorn-scheduler", "scheduler-1.2.3"),
    ],
)
def test_every_program_of_a_scheduler_has_an_image_in_any_version(name: str, tag: str) -> None:
    found = program(name, version="v1.2.3")
    assert found.module is None
    assert found.image.rpartition(":")[2] == tag
    assert found.inside.startswith("/")
    assert found.key != program(name, version="v1.2.4").key
