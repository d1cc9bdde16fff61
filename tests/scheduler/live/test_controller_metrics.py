"""Metrics and health of the process that runs only controllers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from schedspec.scheduler.controllers import Context
from schedspec.scheduler.kube import Client, Connection, EventRecorder, Http, WorkQueue
from schedspec.scheduler.live.controllers_app import ControllerMetrics
from tests.support.fake_server import cancelled, until
from tests.support.live.scheduler_process import Scheduler


def samples(text: bytes) -> dict[str, float]:
    lines = [line.rsplit(" ", 1) for line in text.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines}


async def test_waiting_objects_and_failures_are_counted_by_controller() -> None:
    http = Http(Connection("127.0.0.1", 9))
    client = Client(http)
    events = EventRecorder(client, "me")
    context: Context | None = None
    metrics = ControllerMetrics(http, events, lambda: context, lambda: 0.25)
    assert samples(metrics.render())["schedspec_leader"] == 0.0
    context = Context(client, events, ["schedspec"])
    queue = WorkQueue("job", first=60.0)
    events.dropped, http.throttled = 3, 2

    def decide(_: str) -> Any:
        raise ZeroDivisionError("a defect")

    working = asyncio.create_task(context.work("job", queue, decide))
    queue.add("ns/a")
    await until(lambda: queue.failures == 1)
    await cancelled(working)
    queue.add("ns/b")
    assert samples(metrics.render()) == {
        'schedspec_controller_waiting_objects{name="job"}': 1.0,
        'schedspec_controller_failures_total{name="job"}': 1.0,
        "schedspec_leader": 1.0,
        "schedspec_progress_age_seconds": 0.25,
        "schedspec_throttled_requests": 2.0,
        "schedspec_dropped_events": 3.0,
    }
    assert samples(metrics.render(["schedspec_leader"])) == {"schedspec_leader": 1.0}


def test_the_controllers_process_serves_health_and_metrics_without_an_api_server(tmp_path: Path) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    process = Scheduler(tmp_path / "kubeconfig", "", only_controllers=True)
    try:
        assert process.page("/healthz") == "ok\n"
        assert "schedspec_progress_age_seconds" in samples(process.page("/metrics").encode())
    finally:
        process.kill()
