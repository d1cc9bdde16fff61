"""Programs are installed completely or not at all, once for all runs, from the first source that has them."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from schedspec.clusters.programs import build
from schedspec.clusters.programs.binaries import Provider, named_folder
from schedspec.clusters.programs.cache import Cache
from schedspec.clusters.programs.definitions import definitions
from schedspec.clusters.programs.download import Downloads
from schedspec.clusters.programs.pinned import (
    EMBEDDED,
    Program,
    Release,
    checksums,
    kubernetes_versions,
    program,
    required_version,
)
from schedspec.clusters.protocol import BinaryError, SettingsError

ROOT = Path(__file__).parents[3]
MAIN = 'package main\n\nvar version = "unset"\n\nfunc main() { println(version) }\n'

needs_go = pytest.mark.skipif(build.go() is None, reason="Go is not installed")


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """Return a Go module without dependencies."""
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "go.mod").write_text("module example.test/tool\n\ngo 1.21\n")
    (folder / "go.sum").write_text("")
    (folder / "main.go").write_text(MAIN)
    return folder


def _tool(module: Path, release: Release | None = None) -> Program:
    return Program("tool", "v1", module, "example.test/tool", "-X main.version=v1", release)


def _provider(tmp_path: Path, messages: list[str], folder: Path | None = None) -> Provider:
    return Provider(Cache(tmp_path / "cache"), Downloads(answer_seconds=1), folder, messages.append)


@needs_go
def test_go_builds_a_program_without_a_release_once(
    tmp_path: Path, module: Path, serve_files: Callable[[dict[str, bytes]], str]
) -> None:
    address = serve_files({})
    tool = _tool(module, Release(f"http://{address}/tool", "0" * 64))
    messages: list[str] = []
    binary = _provider(tmp_path, messages).provide([tool])["tool"]
    assert (binary.origin, str(binary)) == ("built with Go", "tool v1 (built with Go)")
    assert subprocess.run([binary.path], capture_output=True, text=True, check=True).stderr == "v1\n"
    assert [
        line
        for line in messages
        if "no release available" in line and "404" in line and line.endswith("building with Go")
    ]
    assert any("building with Go, 0 s; 0 more after it" in line for line in messages)
    messages.clear()
    assert _provider(tmp_path, messages).provide([tool])["tool"].path == binary.path
    assert messages == []


def test_a_release_is_used_and_named_as_the_origin(
    tmp_path: Path, module: Path, serve_files: Callable[[dict[str, bytes]], str]
) -> None:
    address = serve_files({"/tool": b"program"})
    tool = _tool(module, Release(f"http://{address}/tool", hashlib.sha256(b"program").hexdigest()))
    binary = _provider(tmp_path, []).provide([tool])["tool"]
    assert (binary.origin, binary.path.read_bytes()) == ("release", b"program")


def test_the_users_folder_takes_precedence_and_may_be_incomplete(
    tmp_path: Path, module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "tool").write_text("#!/bin/sh\n")
    provider = _provider(tmp_path, [], folder)
    assert provider.missing([_tool(module)]) == [_tool(module)]  # not executable
    (folder / "tool").chmod(0o755)
    assert provider.provide([_tool(module)])["tool"].origin == "folder"
    monkeypatch.setenv("SCHEDSPEC_BINARIES", str(folder))
    assert named_folder(None) == folder
    with pytest.raises(SettingsError, match="not a folder"):
        named_folder(tmp_path / "absent")


def test_without_go_and_without_a_release_the_error_has_a_remedy(
    tmp_path: Path, module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "go", lambda: None)
    with pytest.raises(BinaryError, match="tool v1 has to be built, and Go is not installed") as caught:
        _provider(tmp_path, []).provide([_tool(module)])
    assert "SCHEDSPEC_BINARIES" in caught.value.do_next


@needs_go
def test_the_error_for_a_failed_build_quotes_go_and_nothing_is_cached(tmp_path: Path, module: Path) -> None:
    (module / "main.go").write_text("package main\n\nfunc main() { undefined() }\n")
    with pytest.raises(BinaryError, match="undefined: undefined"):
        _provider(tmp_path, []).provide([_tool(module)])
    assert [path.name for path in (tmp_path / "cache/programs").iterdir()] == ["adding.lock"]


def test_a_damaged_program_is_made_again(tmp_path: Path, module: Path) -> None:
    cache = Cache(tmp_path / "cache")
    tool = _tool(module)
    made: list[Path] = []

    def make(path: Path) -> str:
        made.append(path)
        path.write_text("good")
        return "test"

    entry = cache.add(tool, make)
    assert cache.find(tool) == entry
    entry.path.write_text("bad")
    assert cache.find(tool) is None
    cache.add(tool, make)
    assert cache.find(tool) == entry
    assert len(made) == 2


def test_the_key_of_a_program_changes_with_its_sources(module: Path) -> None:
    before = _tool(module).key
    assert _tool(module).key == before
    (module / "go.sum").write_text("changed\n")
    assert _tool(module).key != before


def test_a_killed_builder_leaves_no_entry_that_looks_finished(tmp_path: Path, module: Path) -> None:
    script = f"""
        import time
        from pathlib import Path
        from schedspec.clusters.programs.cache import Cache
        from schedspec.clusters.programs.pinned import Program
        def make(path):
            path.write_text("half")
            print("started", flush=True)
            time.sleep(60)
        tool = Program("tool", "v1", Path({str(module)!r}), "example.test/tool", "-X main.version=v1", None)
        cache = Cache(Path({str(tmp_path / "cache")!r}))
        with cache.adding():
            cache.add(tool, make)
    """
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, stdout=subprocess.PIPE) as builder:
        assert builder.stdout is not None
        assert builder.stdout.readline() == b"started\n"
        builder.send_signal(signal.SIGKILL)
    cache = Cache(tmp_path / "cache")
    assert cache.find(_tool(module)) is None
    with cache.adding():  # the lock died with its holder

        def make(path: Path) -> str:
            path.write_text("whole")
            return "test"

        assert cache.add(_tool(module), make).path.read_text() == "whole"
    assert sorted(path.name for path in cache.root.iterdir()) == [f"tool-v1-{_tool(module).key}", "adding.lock"][::-1]


def test_three_runs_at_once_build_once(tmp_path: Path, module: Path) -> None:
    fake = tmp_path / "bin" / "go"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\necho built >>{tmp_path}/log\nsleep 1\nwhile [ "$1" != -o ]; do shift; done\n>"$2"\n')
    fake.chmod(0o755)
    script = f"""
        from pathlib import Path
        from schedspec.clusters.programs.binaries import Provider
        from schedspec.clusters.programs.cache import Cache
        from schedspec.clusters.programs.download import Downloads
        from schedspec.clusters.programs.pinned import Program
        tool = Program("tool", "v1", Path({str(module)!r}), "example.test/tool", "-X main.version=v1", None)
        print(Provider(Cache(Path({str(tmp_path / "cache")!r})), Downloads(), None, print).provide([tool])["tool"].path)
    """
    env = {**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"}
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script)], cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]
    messages = [run.communicate()[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert len({text.splitlines()[-1] for text in messages}) == 1
    assert (tmp_path / "log").read_text() == "built\n"
    assert sum("another run is making programs" in text for text in messages) == 2


DOWNLOADED = (*EMBEDDED, "kind", "kubectl", "kubelet", "kubeadm", "kube-proxy", "kube-scheduler")


def _on(machine: str, monkeypatch: pytest.MonkeyPatch, kubernetes: str | None = None) -> dict[str, Release | None]:
    monkeypatch.setattr("schedspec.clusters.programs.pinned.target", lambda: tuple(machine.split("/")))
    return {name: program(name, kubernetes).release for name in DOWNLOADED}


def test_every_download_has_a_pinned_checksum_and_no_checksum_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    known, offered = checksums(), {}
    for machine in ("linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "linux/riscv64"):
        for version in kubernetes_versions():
            releases = filter(None, _on(machine, monkeypatch, version).values())
            offered |= {release.url: release.sha256 for release in releases}
    assert offered == known  # a checksum of a version that no go.mod requires has to be replaced
    assert [digest for digest in known.values() if not re.fullmatch("[0-9a-f]{64}", digest)] == []


@pytest.mark.parametrize("machine", ["linux/amd64", "linux/arm64"])
def test_every_program_of_a_default_cluster_can_be_downloaded(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [name for name, release in _on(machine, monkeypatch).items() if release is None] == []


def test_the_pinned_programs_have_one_version_of_kubernetes() -> None:
    found = {name: program(name) for name in (*EMBEDDED, "kind", "kubectl", "kubelet")}
    assert {found[name].version for name in ("kube-apiserver", "kube-controller-manager", "kubectl", "kubelet")} == {
        required_version(found["kubectl"].module / "go.mod", "k8s.io/kubernetes")
    }
    staging = required_version(found["kubectl"].module / "go.mod", "k8s.io/apiserver")
    assert staging == "v0." + found["kubectl"].version.partition(".")[2]
    assert f"gitVersion={found['kubectl'].version}" in found["kubectl"].ldflags
    with pytest.raises(BinaryError, match="no program is called 'minikube'"):
        program("minikube")


def test_definitions_are_copied_from_the_source_of_a_module_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source"
    (source / "crd").mkdir(parents=True)
    (source / "crd" / "queue.yaml").write_text("kind: CustomResourceDefinition\n")
    (source / "crd" / "notes.txt").write_text("")
    monkeypatch.setenv("SCHEDSPEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "module_source", lambda _, downloads: source)
    scheduler = program("vc-scheduler")
    folder = definitions(scheduler, ["crd/*.yaml"])
    assert [path.name for path in folder.iterdir()] == ["queue.yaml"]
    monkeypatch.setattr(build, "module_source", lambda _, downloads: pytest.fail("the cache has the definitions"))
    assert definitions(scheduler, ["crd/*.yaml"]) == folder
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_other_patterns_get_their_own_files_of_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("queue.yaml", "job.yaml"):
        (tmp_path / name).write_text("")
    monkeypatch.setenv("SCHEDSPEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "module_source", lambda _, downloads: tmp_path)
    for pattern in ("queue.yaml", "job.yaml"):
        assert [path.name for path in definitions(program("vc-scheduler"), [pattern]).iterdir()] == [pattern]


@needs_go
def test_the_error_for_a_failed_module_download_quotes_go(module: Path) -> None:
    absent = dataclasses.replace(_tool(module), require="example.test/absent")
    with pytest.raises(BinaryError, match=r"example\.test/absent"):
        build.module_source(absent)
