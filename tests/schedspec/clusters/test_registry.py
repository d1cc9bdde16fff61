"""Records name the owner of each cluster, two runs never choose the same ports, and orphans are swept."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import pytest

from schedspec import clusters
from schedspec.clusters.cleanup import sweep
from schedspec.clusters.protocol import BootError, Settings
from schedspec.clusters.registry import ClusterRecord, Owner, Registry, free_ports
from schedspec.clusters.subprocess_run import programs_of, runs

ROOT = Path(__file__).parents[3]
DEAD = Owner(2**22 - 1, 1.0)


def _record(name: str, home: Path, owner: Owner = DEAD, *, keep: bool = False) -> ClusterRecord:
    return ClusterRecord(name, "embedded", owner, keep, home, home / "kubeconfig", "context")


def test_a_stored_record_is_read_back_unchanged(tmp_path: Path) -> None:
    registry = Registry(tmp_path)
    record = registry.add(_record("one", tmp_path / "home", Owner.me()), ports=3)
    assert len(set(record.ports)) == 3
    assert Registry(tmp_path).find("one") == record
    assert not record.abandoned
    assert registry.records() == [record]
    registry.remove(record)
    registry.remove(record)
    assert registry.records() == []


def test_a_process_with_the_same_id_is_not_the_owner() -> None:
    mine = Owner.me()
    assert mine.alive
    assert not Owner(mine.pid, mine.created - 100).alive
    assert not DEAD.alive


def test_a_zombie_does_not_count_as_a_living_owner() -> None:
    with subprocess.Popen(["true"]) as child:
        owner = Owner(child.pid, psutil.Process(child.pid).create_time())
        while runs(child.pid):
            os.sched_yield()
        assert not owner.alive


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "x"}', '{"owner": 1}'])
def test_a_record_of_another_version_is_skipped(tmp_path: Path, text: str) -> None:
    registry = Registry(tmp_path)
    (registry.root / "odd.json").write_text(text)
    assert registry.records() == []
    assert registry.find("odd") is None


def test_sweep_removes_abandoned_clusters_only(tmp_path: Path) -> None:
    registry = Registry(tmp_path / "state")
    homes = {name: tmp_path / name for name in ("left", "kept", "used")}
    for home in homes.values():
        home.mkdir()
    registry.add(_record("left", homes["left"]))
    registry.add(_record("kept", homes["kept"], keep=True))
    registry.add(_record("used", homes["used"], Owner.me()))
    assert [record.name for record in sweep(registry)] == ["left"]
    assert [record.name for record in registry.records()] == ["kept", "used"]
    assert [home.exists() for home in homes.values()] == [False, True, True]


def test_sweep_ends_only_the_programs_of_the_abandoned_cluster(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "etcd"
    program.parent.mkdir()
    program.symlink_to(sys.executable)
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir()
    wait = "import time; time.sleep(60)"
    mine = subprocess.Popen([program, "-c", wait, f"--data-dir={home}/etcd"])
    foreign = [
        subprocess.Popen([program, "-c", wait, f"--data-dir={other}/etcd"]),
        subprocess.Popen([sys.executable, "-c", wait, f"{home}/logs"]),  # a process that reads a log
    ]
    try:
        registry = Registry(tmp_path / "state")
        registry.add(_record("left", home))
        assert [process.pid for process in programs_of(home)] == [mine.pid]
        sweep(registry)
        assert mine.wait(5) == -9
        assert [process.poll() for process in foreign] == [None, None]
    finally:
        for process in (mine, *foreign):
            process.kill()
            process.wait()


def test_ports_that_are_in_use_or_taken_are_not_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        used = listener.getsockname()[1]
        monkeypatch.setattr("schedspec.clusters.registry._PORTS", range(used, used + 1))
        with pytest.raises(BootError, match="fewer than 1 free ports"):
            free_ports(1)
    assert free_ports(1) == (used,)
    with pytest.raises(BootError):
        free_ports(1, {used})


def test_runs_at_the_same_time_get_different_ports(tmp_path: Path) -> None:
    script = f"""
        import sys
        from pathlib import Path
        from schedspec.clusters import registry
        registry._PORTS = range(31000, 31060)  # a narrow range, so that collisions would be likely
        mine = registry.Owner.me()
        for number in range(3):
            name = f"{{sys.argv[1]}}-{{number}}"
            record = registry.ClusterRecord(name, "embedded", mine, False, Path("/x"), Path("/y"), "")
            print(*registry.Registry(Path({str(tmp_path)!r})).add(record, ports=4).ports)
    """
    started = [
        subprocess.Popen([sys.executable, "-c", textwrap.dedent(script), str(n)], cwd=ROOT, stdout=subprocess.PIPE)
        for n in range(4)
    ]
    ports = b" ".join(each.communicate()[0] for each in started).split()
    assert len(ports) == 48
    assert len(set(ports)) == 48


@pytest.mark.parametrize(("can_run", "kind"), [(True, "kind"), (False, "embedded")])
def test_auto_is_kind_where_it_can_run(monkeypatch: pytest.MonkeyPatch, can_run: bool, kind: str) -> None:
    monkeypatch.setattr("schedspec.clusters.kind.cluster.can_run", lambda settings: can_run)
    assert clusters.choose(Settings()) == kind
