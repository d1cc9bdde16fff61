"""One namespace's bad jobs delay the job of another namespace by less than a second.

The usual time is measured right before, with the same job on the same cluster. The limit of one second is scaled by how
busy the machine is (`tests.support.live.busy`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from schedspec.scheduler.controllers.runtime.objects import COMMANDS, JOBS, PYTORCH_JOBS
from schedspec.scheduler.kube import NAMESPACES, PODS, QUEUES, Conflict, NotFound
from tests.support.live.api_objects import queue
from tests.support.live.busy import busy
from tests.support.live.status_queries import events, eventually, status
from tests.support.live.target_cluster import NAMESPACE, RECLAIM, TargetCluster

pytestmark = [pytest.mark.embedded, pytest.mark.faults]

log = logging.getLogger(__name__)

BAD = "bad-jobs"
MORE = 1.0
"""Seconds that a job may take longer than usual, on an idle machine."""
TREE = RECLAIM.replace("{name: capacity}", "{name: capacity, enableHierarchy: true}")
MAX = 150_000
"""Maximum number of replicas that the CRDs permit."""


def template(container: str = "main", **more: Any) -> dict[str, Any]:
    main = {"name": container, "image": "worker", "resources": {"requests": {"cpu": "100m"}}, **more}
    return {"spec": {"containers": [main], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}}


def job(name: str, *replicas: int, **spec: Any) -> dict[str, Any]:
    tasks = [{"name": f"t{n}", "replicas": number, "template": template()} for n, number in enumerate(replicas)]
    return {"metadata": {"name": name}, "spec": {"schedulerName": "schedspec", "tasks": tasks, **spec}}


def training(name: str, workers: int) -> dict[str, Any]:
    spec = {**template("pytorch")["spec"], "schedulerName": "schedspec"}
    policy = {"schedulingPolicy": {"queue": "bad", "minAvailable": 1}}
    replicas = {"Worker": {"replicas": workers, "template": {"spec": {**spec, "restartPolicy": "OnFailure"}}}}
    return {"metadata": {"name": name}, "spec": {"runPolicy": policy, "pytorchReplicaSpecs": replicas}}


async def seconds_of_a_job(target: TargetCluster, name: str) -> float:
    loop = asyncio.get_running_loop()
    before, began = len(target.history.bound()), loop.time()
    await target.client.create(JOBS, job(name, 3), NAMESPACE)
    await target.bound(before + 3)
    return loop.time() - began


@asynccontextmanager
async def two_namespaces(target: TargetCluster) -> AsyncIterator[None]:
    """Set up a good namespace, and a bad one whose queue has two cpus; afterwards check the time of good jobs."""
    queues = [queue("default"), queue("bad", capability={"cpu": "2"})]
    async with target.scenario(nodes=3, cpu="8", queues=queues):
        with contextlib.suppress(Conflict):
            await target.client.create(NAMESPACES, {"metadata": {"name": BAD}})
        await target.ready(target.start(controllers="all"))
        usual = sorted([await seconds_of_a_job(target, f"usual{i}") for i in range(3)])[1]
        try:
            yield
            for i in range(4):
                async with busy() as times:
                    took = await seconds_of_a_job(target, f"good{i}")
                more = MORE * max(times)
                log.info("usually %.2f s, now %.2f s; work takes %.1f times as long as alone", usual, took, max(times))
                assert took <= usual + more, f"{took:.2f} s instead of {usual:.2f} s; {more:.2f} s more are allowed"
        finally:
            for resource in (JOBS, PYTORCH_JOBS):
                for space in (BAD, NAMESPACE):
                    for found in (await target.client.list(resource, space)).items:
                        with contextlib.suppress(NotFound):
                            await target.client.delete(resource, found.metadata.name, space, propagation="Background")
            target.history.forget("")


@pytest.mark.parametrize(
    ("kind", "body", "gang"),
    [
        ("job", job("bad", *[MAX] * 20, minAvailable=1, queue="bad"), 1),
        ("training", training("bad", MAX), 1),
    ],
    ids=["a job of three million pods", "a training job of a hundred thousand workers"],
)
@pytest.mark.deadline(120)
async def test_of_a_job_larger_than_the_cluster_only_a_first_slice_of_pods_is_created(
    target: TargetCluster, kind: str, body: dict[str, Any], gang: int
) -> None:
    async with two_namespaces(target):
        await target.client.create(JOBS if kind == "job" else PYTORCH_JOBS, body, BAD)

        async def exist() -> bool:
            return len((await target.client.list(PODS, BAD)).items) >= 200

        await eventually("the first slice of its pods", exist)
        await seconds_of_a_job(target, "later")  # by then the controllers have processed all jobs
        assert len((await target.client.list(PODS, BAD)).items) <= 220 + gang, (
            "more than 200 pods beyond the 20 that have a node"
        )


@pytest.mark.deadline(120)
async def test_a_gang_that_can_never_start_creates_no_pods_and_reports_the_reason(target: TargetCluster) -> None:
    async with two_namespaces(target):
        await target.client.create(JOBS, job("bad", MAX, queue="bad"), BAD)

        async def has_reason() -> bool:
            state = (await status(target.client, JOBS, "bad", BAD)).get("state") or {}
            return state.get("reason") == "GangTooLarge" and "queue bad's capability" in state["message"]

        async def has_warning() -> bool:
            return (await events(target.client, BAD, "Job", "bad")).get("GangTooLarge", ("",))[0] == "Warning"

        await eventually("the reason GangTooLarge", has_reason)
        await eventually("a warning GangTooLarge", has_warning)
        assert not (await target.client.list(PODS, BAD)).items


@pytest.mark.deadline(90)
async def test_a_tenants_command_cannot_close_a_queue(target: TargetCluster) -> None:
    async with two_namespaces(target):
        uid = (await target.client.get(QUEUES, "default")).metadata.uid
        closed = {"apiVersion": QUEUES.api_version, "kind": QUEUES.kind, "name": "default", "uid": uid}
        command = {"metadata": {"name": "close"}, "action": "CloseQueue", "target": closed}
        await target.client.create(COMMANDS, command, BAD)

        async def is_refused() -> bool:
            return "CommandRefused" in await events(target.client, BAD, "Command", "close")

        await eventually("an event on the command", is_refused)
        assert (await status(target.client, QUEUES, "default"))["state"] == "Open"
        assert not (await target.client.list(COMMANDS, BAD)).items


async def next_second() -> None:
    """Wait for the next second of the clock, because creation times are whole seconds."""
    second = int(time.time())
    while int(time.time()) == second:
        await asyncio.sleep(0.01)


@pytest.mark.deadline(60)
async def test_creating_a_child_of_a_queue_does_not_affect_its_existing_jobs(target: TargetCluster) -> None:
    """Jobs that wait in the queue when the child is created still run; jobs created later do not."""
    async with target.scenario(nodes=1, cpu="2"):
        await target.ready(target.start(policy=TREE, controllers="queue"))
        await target.gang("runs", 2)
        await target.bound(2)
        await target.gang("waits", 2)
        await next_second()
        await target.client.create(QUEUES, queue("child", parent="default"))
        await next_second()
        await target.gang("late", 1)
        await target.add_node("node-more", "3")
        await target.bound(4)
        await target.assert_settled()
        assert not [key for key in target.history.bound() if "late" in key]
