"""The output of `python -m schedspec`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schedspec import cli
from schedspec.clusters import doctor
from schedspec.clusters.protocol import ClusterError
from schedspec.clusters.registry import ClusterRecord, Owner, Registry


def _add(name: str, home: Path, *, kind: str = "embedded", mine: bool = False, keep: bool = False) -> ClusterRecord:
    home.mkdir()
    owner = Owner.me() if mine else Owner(2**22 - 1, 1.0)
    return Registry().add(ClusterRecord(name, kind, owner, keep, home, home / "kubeconfig", "context"))


def run(arguments: list[str]) -> int:
    """Return the exit status of a command."""
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)
    return int(ended.value.code or 0)


def test_list_shows_the_owner_of_each_cluster(state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = _add("mine", tmp_path / "mine", mine=True)
    _add("left", tmp_path / "left")
    _add("kept", tmp_path / "kept", keep=True)
    assert run(["list"]) == 0
    lines = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    assert f"used by process {mine.owner.pid}" in lines["mine"]
    assert "abandoned: down removes it" in lines["left"]
    assert "  kept  " in lines["kept"]


def test_down_removes_a_cluster_in_use_only_if_it_is_named(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, mine in (("mine", True), ("left", False)):
        _add(name, tmp_path / name, mine=mine)
    assert run(["down"]) == 0
    assert "mine: left alone, process" in capsys.readouterr().err
    assert [record.name for record in Registry().records()] == ["mine"]
    assert run(["down", "mine"]) == 0
    assert Registry().records() == []
    assert run(["down", "mine"]) == 1
    assert "no cluster of ours is called mine" in capsys.readouterr().err


def test_down_removes_the_other_clusters_when_one_removal_fails(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unreachable(name: str) -> None:
        raise ClusterError("the Docker engine does not answer", name, "start Docker")

    monkeypatch.setattr("schedspec.clusters.cleanup.delete_cluster", unreachable)
    _add("kind-1", tmp_path / "kind", kind="kind")
    _add("left", tmp_path / "left")
    assert run(["down"]) == 1
    assert "kind-1: the Docker engine does not answer" in capsys.readouterr().err
    assert [record.name for record in Registry().records()] == ["kind-1"]


def test_a_cluster_error_is_printed_without_a_traceback(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ClusterError("it does not boot", "here", "look there")

    monkeypatch.setattr("schedspec.cli.clusters.provide", broken)
    assert run(["up"]) == 1
    assert capsys.readouterr().err == "it does not boot\n  where: here\n  do next: look there\n"
    assert run(["up", "--binaries", "/no/such/folder"]) == 2


def test_list_and_doctor_print_json_on_request(state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _add("kept", tmp_path / "kept", keep=True)
    assert run(["list", "-o", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["name"], row["state"], row["kubeconfig"]) == ("kept", "kept", str(tmp_path / "kept/kubeconfig"))
    assert run(["doctor", "-o", "json"]) == 0
    assert {"good", "needed", "what", "do_next"} == set(json.loads(capsys.readouterr().out)[0])


def test_doctor_names_missing_parts_and_their_remedies(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCHEDSPEC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("schedspec.clusters.programs.build.go", lambda: None)
    monkeypatch.setattr("schedspec.clusters.kind.cluster.why_not", lambda settings: "no engine\n  do next: install one")
    _add("left", tmp_path / "left")
    monkeypatch.setattr("schedspec.clusters.doctor.Downloads.offer", lambda _, release: "etcd" not in release.url)
    assert run(["doctor"]) == 1
    output = capsys.readouterr().out
    assert "etcd cannot be downloaded, and Go is not installed\n        do next: install Go" in output
    assert output.count("MISSING") == 1
    assert (
        "no      Kind clusters cannot run (embedded clusters need no Docker): no engine\n        do next: install one"
        in output
    )
    assert "left behind by killed runs: left\n        do next: python -m schedspec down" in output
    monkeypatch.setattr("schedspec.clusters.doctor.Downloads.offer", lambda *_: True)
    assert run(["doctor"]) == 0
    assert "MISSING" not in capsys.readouterr().out
    monkeypatch.setattr(doctor, "_DISK_NEEDED", 1 << 60)
    assert run(["doctor"]) == 1
    assert "MISSING" in capsys.readouterr().out


def test_the_doctor_fails_if_go_can_build_none_of_the_missing_programs(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SCHEDSPEC_CACHE", str(tmp_path / "cache"))
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho no route to the proxy\nexit 1\n")
    go.chmod(0o755)
    monkeypatch.setattr("schedspec.clusters.programs.build.go", lambda: str(go))
    monkeypatch.setattr("schedspec.clusters.kind.cluster.why_not", lambda settings: "no engine\n  do next: install one")
    assert run(["doctor"]) == 1
    assert "no route to the proxy" in capsys.readouterr().out
