"""The columns that `kubectl get` prints for our objects."""

from __future__ import annotations

import subprocess

import pytest

from schedspec.clusters import Settings
from schedspec.clusters.programs import binaries
from tests.scheduler.controllers.test_live_others import training
from tests.support.controllers.live_controllers import LiveControllers, task, until

pytestmark = pytest.mark.embedded


def printed(place: LiveControllers, kind: str, *names: str, wide: bool = False) -> list[dict[str, str]]:
    """Return the lines of `kubectl get` by column, without the age."""
    kubectl = binaries.provide(("kubectl",), folder=Settings().binaries, progress=print)["kubectl"].path
    cluster = place.controllers.cluster
    command = [kubectl, "--kubeconfig", cluster.kubeconfig, "--context", cluster.context, "-n", place.namespace]
    command += ["get", kind, *names, *(["-o", "wide"] if wide else [])]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, timeout=60)
    head, *lines = [line.split() for line in done.stdout.splitlines()]
    return [{name: value for name, value in zip(head, line, strict=True) if name != "AGE"} for line in lines]


def running(place: LiveControllers, kind: str, name: str) -> int | None:
    """Return how many run by the status; None while there is none."""
    found: int | None = (place.get(kind, name) or {}).get("status", {}).get("running")
    return found


def test_the_columns_of_a_job_its_podgroup_and_its_queue(place: LiveControllers) -> None:
    place.create("Queue", "shown", {"parent": "root", "weight": 3, "priority": 7})
    try:
        place.create("Job", "j", {"tasks": [task(3)], "minAvailable": 2, "queue": "shown"})
        place.run(3)
        place.admit("Running")
        group = place.all("PodGroup")[0]["metadata"]["name"]
        place.patch("PodGroup", group, {"status": {"running": 3}}, "status")
        until(lambda: place.phase("j") == "Running", "the job to run")
        until(lambda: running(place, "Job", "j") == 3, "three to run")
        until(lambda: running(place, "Queue", "shown") == 1, "the PodGroup to be counted")
        job = {"NAME": "j", "STATUS": "Running", "MINAVAILABLE": "2", "RUNNINGS": "3"}
        assert printed(place, "vcjob") == printed(place, "vj", "j") == [job]
        assert printed(place, "vcjob", wide=True) == [{**job, "QUEUE": "shown"}]
        of_group = {"NAME": group, "STATUS": "Running", "MINMEMBER": "2", "RUNNINGS": "3"}
        assert printed(place, "pg") == [of_group]
        assert printed(place, "pg", wide=True) == [{**of_group, "QUEUE": "shown"}]
        assert printed(place, "q", "shown") == [{"NAME": "shown", "PARENT": "root"}]
        numbers = {"WEIGHT": "3", "PRIORITY": "7", "RUNNING": "1", "INQUEUE": "0", "PENDING": "0"}
        assert printed(place, "q", "shown", wide=True) == [
            {"NAME": "shown", "PARENT": "root", "STATE": "Open", **numbers}
        ]
    finally:
        place.delete("Job", "j")
        place.delete("Queue", "shown")


def test_the_columns_of_a_training_job(place: LiveControllers) -> None:
    place.create("PyTorchJob", "t", training())
    place.run(3)
    until(lambda: place.state("t") == "Running", "the job to run")
    assert printed(place, "pytorchjob") == [{"NAME": "t", "STATE": "Running"}]
