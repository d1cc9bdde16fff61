"""A program never outlives the call that waits for it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from schedspec.clusters import subprocess_run
from schedspec.clusters.subprocess_run import runs
from tests.support.cluster_api import within

ROOT = Path(__file__).parents[3]


def test_status_and_both_streams_are_returned(tmp_path: Path) -> None:
    script = 'echo "in $PWD $WORD"; echo no >&2; exit 3'
    done = subprocess_run.run(["sh", "-c", script], cwd=tmp_path, env={"WORD": "here"})
    assert (done.status, done.output) == (3, f"in {tmp_path} here\nno\n")
    assert done.last_lines == f"in {tmp_path} here\nno"


def test_the_last_lines_have_no_stack_trace() -> None:
    frame = "k8s.io/kubernetes/cmd/kubeadm/app/cmd.newCmdInit.func1\n\tk8s.io/kubernetes@v1.36.3/cmd/init.go:134\n"
    raw = f"error: no API server\n{frame * 20}runtime.goexit\n\truntime/asm_amd64.s:1771"
    done = subprocess_run.Finished(1, raw, 1)
    assert done.last_lines == "error: no API server"


@pytest.mark.parametrize("reason", ["deadline", "give_up"])
def test_a_program_and_its_children_end_with_the_wait(tmp_path: Path, reason: str) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 60 & echo $! $$ >{pids}.new; mv {pids}.new {pids}; wait"
    done = subprocess_run.run(
        ["sh", "-c", script],
        deadline=1 if reason == "deadline" else 30,
        give_up=pids.exists if reason == "give_up" else bool,
    )
    assert done.status is None
    for pid in map(int, pids.read_text().split()):
        within(lambda pid=pid: not runs(pid))


def test_an_interrupted_wait_ends_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess_run, "_TICK", 0.1)
    pids = tmp_path / "pid"

    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        subprocess_run.run(["sh", "-c", f"echo $$ >{pids}; sleep 60"], tick=interrupt)
    assert not runs(int(pids.read_text()))


@pytest.mark.skipif(not subprocess_run.dies_with_us(), reason="setpriv is not installed")
def test_a_killed_wait_ends_the_program(tmp_path: Path) -> None:
    pids = tmp_path / "pid"
    code = f"from schedspec.clusters.subprocess_run import run; run(['sh', '-c', 'echo $$ >{pids}; exec sleep 60'])"
    with subprocess.Popen([sys.executable, "-c", code], cwd=ROOT) as waiter:
        pid = int(within(lambda: pids.exists() and pids.read_text()))
        assert runs(pid)
        waiter.kill()
    within(lambda: not runs(pid))


def test_ticks_report_the_elapsed_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess_run, "_TICK", 0.05)
    reports: list[float] = []
    start = time.monotonic()
    done = subprocess_run.run(["sleep", "0.3"], tick=reports.append)
    assert reports == sorted(reports)
    assert len(reports) >= 2
    assert reports[-1] <= done.seconds <= time.monotonic() - start
