"""The recorder's process serves health, and what its judge found by monitor and queue; it ends as it is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from schedspec.lab.recorder import process
from schedspec.lab.recorder.process import RecorderMetrics, RecordOptions, SteadyClock, Tally, endpoints
from schedspec.virtual.state.over_time import segments_over_time
from tests.schedspec.lab.recorder.recorded_cluster import RecordedCluster

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize(
    ("walls", "times"),
    [
        ([0, 1, 2, 3], [1, 2, 3]),
        ([0, 1, 11, 12], [1, 11, 12]),
        ([10, 11, 2, 3], [11, 12, 13]),
        ([10, 5, 16, 17], [11, 16, 17]),
    ],
    ids=["steady", "set-forward", "set-back", "set-back-and-forward"],
)
def test_the_clock_of_a_recording_never_stops_and_never_goes_back(walls: list[int], times: list[int]) -> None:
    wall, steady = iter(map(float, walls)), iter(range(len(walls)))
    clock = SteadyClock(lambda: next(wall), lambda: float(next(steady)))
    assert [clock() for _ in times] == times


def test_metrics_count_findings_by_monitor_and_queue(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally(RecordOptions(tmp_path, 1.0, 1, is_judged=True))
    cluster = RecordedCluster(tmp_path)
    try:
        cluster.node("n1", 8)
        cluster.queue("online")
        cluster.advance(1.0)
        recorder = cluster.record(sink=tally.read)
        cluster.group("large", "online")
        for number in range(2):
            cluster.pod(f"large-{number}", "large", 99)
        cluster.advance(300.0)
        assert cluster._writer is not None
        text = RecorderMetrics(recorder, cluster._writer, tally).render().decode()
    finally:
        cluster.close()
    assert 'schedspec_findings_total{monitor="hopeless-wait",queue="online"} 2.0' in text
    assert "schedspec_recorder_gaps_total 0.0" in text
    assert "schedspec_recorder_size_bytes" in text
    assert capsys.readouterr().out.count("hopeless-wait: team/large-") == 2


def test_health_is_refused_while_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = RecordedCluster(tmp_path)
    try:
        recorder = cluster.start()
        assert cluster._writer is not None
        pages = endpoints(recorder, cluster._writer, RecorderMetrics(recorder, cluster._writer, None))
        assert pages["/readyz"]({})[0] == 503
        assert pages["/healthz"]({})[0] == 200
        cluster.node("n1", 8)
        cluster.advance(5.0)
        monkeypatch.setattr(process.time, "time", cluster.cluster.wall)
        assert (pages["/readyz"]({})[0], pages["/healthz"]({})[0]) == (200, 200)
        monkeypatch.setattr(process.time, "time", lambda: cluster.now + 100.0)
        status, _, body = pages["/healthz"]({})
        assert status == 503
        assert body.startswith(b"no line for 10")
        assert pages["/metrics"]({})[0] == 200
    finally:
        cluster.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["sigterm", "sigint"])
def test_a_recorder_that_waits_for_its_server_ends_at_a_signal(tmp_path: Path, number: signal.Signals) -> None:
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
    config = {
        "clusters": [cluster],
        "contexts": [context],
        "current-context": "c",
        "users": [{"name": "u", "user": {}}],
    }
    (tmp_path / "config").write_text(str(config).replace("'", '"'))
    command = ["record", "--kubeconfig", str(tmp_path / "config"), "--out", str(tmp_path / "out")]
    started = subprocess.Popen(
        [sys.executable, "-m", "schedspec", *command, "--listen", "127.0.0.1:0"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stdout is not None
    assert started.stdout.readline().startswith("listening on 127.0.0.1:")
    started.send_signal(number)
    _, errors = started.communicate(timeout=60)
    assert started.returncode == 0, errors
    assert "Traceback" not in errors
    assert segments_over_time(tmp_path / "out") == []
