"""A cluster that stays up belongs to the terminal that booted it: `up` in another terminal boots its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from schedspec.clusters.lifecycle import ClusterLifecycle
from schedspec.clusters.protocol import Settings
from schedspec.clusters.registry import ClusterRecord, Owner, Registry

GONE = Owner(2**22 - 1, 1.0)


@pytest.fixture
def another() -> Iterator[Owner]:
    """Start a process that leads a session of its own, like the shell of another terminal."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        yield Owner(process.pid, psutil.Process(process.pid).create_time())
    finally:
        process.kill()
        process.wait()


CASES = {
    "mine": (["mine"], "", ""),
    "of a terminal that was closed": (["gone"], "", ""),
    "of another terminal": (["another"], "-2", ""),
    "mine beside that of another terminal": (["another", "mine"], "-2", "-2"),
    "two of other terminals": (["another", "another"], "-3", ""),
    "none": ([], "", ""),
}
"""Sessions of the clusters that run; the name that `up` uses; the name that a run with --reuse-cluster uses."""


@pytest.mark.parametrize("joins", [False, True])
@pytest.mark.parametrize(("sessions", "own", "joined"), CASES.values(), ids=CASES)
def test_up_leaves_the_cluster_of_another_terminal_alone(
    state: Path, tmp_path: Path, another: Owner, sessions: list[str], own: str, joined: str, *, joins: bool
) -> None:
    registry = Registry()
    for slot, session in enumerate(sessions, start=1):
        name = "embedded-x" if slot == 1 else f"embedded-x-{slot}"
        whose = {"mine": Owner.session(), "gone": GONE, "another": another}[session]
        record = ClusterRecord(name, "embedded", GONE, True, tmp_path / name, tmp_path / name / "k", "c", session=whose)
        registry.add(record)
    found = ClusterLifecycle("embedded", "x", Settings(kind="embedded", reuse=True, joins=joins))
    runs = found.adopt(lambda record: True)
    try:
        assert found.name == f"embedded-x{joined if joins else own}"
        assert runs == (registry.find(found.name) is not None)
        if runs and not joins:
            assert registry.find(found.name) == found.record
            assert found.record.session == Owner.session()
    finally:
        found.end()
