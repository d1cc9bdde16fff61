"""No controller blocks the event loop for a job with many pods or a large template."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from schedspec.scheduler.controllers import Context, build
from schedspec.scheduler.controllers.runtime.objects import JOBS, PYTORCH_JOBS
from schedspec.scheduler.controllers.runtime.pods import MAX_BYTES
from schedspec.scheduler.controllers.runtime.writes import Create, ReconcileResult
from schedspec.scheduler.kube import Client, Connection, EventRecorder, Http, Present, Resource
from tests.support.controllers.fake_cluster import FakeJobCluster, template
from tests.support.controllers.fake_training import FakeTrainingCluster


@pytest.mark.parametrize(
    ("kind", "resource", "spec"),
    [
        ("job", JOBS, {"tasks": [{"name": "a", "replicas": 5_000}]}),
        ("pytorchjob", PYTORCH_JOBS, {"pytorchReplicaSpecs": {"Worker": {"replicas": 5_000}}}),
    ],
)
async def test_a_decision_about_thousands_of_pods_runs_in_a_thread(
    monkeypatch: pytest.MonkeyPatch, kind: str, resource: Resource[Any], spec: dict[str, Any]
) -> None:
    threads: list[threading.Thread] = []

    def reconcile(seen: object) -> ReconcileResult:
        threads.append(threading.current_thread())
        return ReconcileResult()

    monkeypatch.setattr(f"schedspec.scheduler.controllers.{kind}.controller.reconcile", reconcile)

    client = Client(Http(Connection("127.0.0.1", 9)))
    context = Context(client, EventRecorder(client, "me"), ["schedspec"])
    (controller,) = build([kind], context)
    for number, name in ((5_000, "large"), (2, "small")):
        meta = {"name": name, "namespace": "ns", "uid": f"u-{name}", "resourceVersion": "1"}
        place = spec["tasks"][0] if kind == "job" else spec["pytorchReplicaSpecs"]["Worker"]
        place["replicas"] = number
        context.view(resource).informer._on_report(
            Present(msgspec.convert({"metadata": meta, "spec": spec}, resource.struct))
        )
        await controller._decide(f"ns/{name}")  # type: ignore[attr-defined]
    large, small = threads
    assert (large is threading.main_thread(), small is threading.main_thread()) == (False, True)


LARGE = {**template(), "metadata": {"annotations": {"a": "x" * MAX_BYTES}}}


@pytest.mark.parametrize(
    "cluster",
    [
        lambda: FakeJobCluster({"tasks": [{"name": "a", "replicas": 1, "template": LARGE}]}),
        lambda: FakeTrainingCluster(1, master=False, replica={"template": LARGE}),
    ],
    ids=["job", "training job"],
)
def test_a_template_that_is_too_large_to_be_copied_often_is_refused(
    cluster: Callable[[], FakeJobCluster | FakeTrainingCluster],
) -> None:
    writes = cluster().decide().writes
    assert [write for write in writes if isinstance(write, Create)] == []
    text = " ".join(map(str, writes))
    assert "Malformed" in text
    assert f"more than the maximum of {MAX_BYTES:,}" in text
