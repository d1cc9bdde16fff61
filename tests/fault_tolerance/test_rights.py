"""The roles in deploy/ grant exactly the permissions that the scheduler and the controllers use."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from schedspec.scheduler.controllers.runtime.objects import (
    BATCH_JOBS,
    COMMANDS,
    DEPLOYMENTS,
    JOBS,
    KUBE_PODGROUPS,
    PYTORCH_JOBS,
    STATEFUL_SETS,
)
from schedspec.scheduler.kube import PODS, QUEUES, Patch, Resource
from tests.fault_tolerance.rights import Permission, granted, needed
from tests.support.live.api_objects import ROOT, pod_body, queue
from tests.support.live.proxy import Answer, Call, Handling
from tests.support.live.scheduler_process import Scheduler
from tests.support.live.status_queries import (
    eventually,
    status,
)
from tests.support.live.target_cluster import NAMESPACE, TargetCluster

pytestmark = [pytest.mark.embedded, pytest.mark.faults]

ROLES = ROOT / "deploy" / "rbac.yaml"
CPU = {"requests": {"cpu": "1"}}
TEMPLATE = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {
        "schedulerName": "schedspec",
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "worker", "resources": CPU}],
    },
}
LASTING = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Always"}}
OF_GANG = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "schedulingGroup": {"podGroupName": "gang"}}}
TORCH = {
    "spec": {
        "schedulerName": "schedspec",
        "containers": [{"name": "pytorch", "image": "worker", "resources": CPU}],
    }
}
SELECTOR = {"selector": {"matchLabels": {"app": "x"}}}
OBJECTS: list[tuple[Resource[Any], str, dict[str, Any]]] = [
    (DEPLOYMENTS, "deployment", {"replicas": 1, "template": LASTING, **SELECTOR}),
    (STATEFUL_SETS, "set", {"replicas": 1, "template": LASTING, "serviceName": "x", **SELECTOR}),
    (BATCH_JOBS, "batch", {"template": TEMPLATE}),
    (KUBE_PODGROUPS[1], "gang", {"schedulingPolicy": {"gang": {"minCount": 1}}}),
    (BATCH_JOBS, "of-gang", {"template": OF_GANG}),
    (
        JOBS,
        "job",
        {
            "schedulerName": "schedspec",
            "queue": "b",
            "minAvailable": 2,
            "plugins": {"env": [], "svc": []},
            "tasks": [{"name": "t", "replicas": 2, "template": TEMPLATE}],
        },
    ),
    (
        PYTORCH_JOBS,
        "torch",
        {
            "runPolicy": {"cleanPodPolicy": "All"},
            "pytorchReplicaSpecs": {
                "Master": {"replicas": 1, "template": TORCH},
            },
        },
    ),
]


BRIEF: list[tuple[Resource[Any], str, dict[str, Any]]] = [
    (JOBS, "brief", {"queue": "b", "ttlSecondsAfterFinished": 0, "tasks": [{"name": "t", "template": TEMPLATE}]}),
    (
        PYTORCH_JOBS,
        "too-long",
        {
            "runPolicy": {"activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 0},
            "pytorchReplicaSpecs": {"Worker": {"template": TORCH}},
        },
    ),
]


async def _use_all_permissions(
    target: TargetCluster, control: Callable[..., Scheduler], is_all_done: Callable[[], bool]
) -> None:
    """Make the scheduler and the controllers, each in a separate process, send every kind of request that they have."""
    election = ("--leader-elect", "--lease-namespace", "default", "--lease-seconds", "15")
    scheduler, controllers = target.start(*election), control(*election)
    await target.ready(scheduler)
    await target.ready(controllers)
    await _run_brief_jobs(target)
    await target.client.create(PODS, _plain("plain"), NAMESPACE)
    for resource, name, spec in OBJECTS:
        await target.client.create(resource, {"metadata": {"name": name}, "spec": spec}, NAMESPACE)
    await target.bound(8)
    await target.gang("full", 8, "a")
    await target.bound(16)
    await target.gang("large", 40, "b")
    await target.gang("claim", 6, "b")  # wherever the other pods are, it needs an eviction
    await target.history.until(lambda: len(target.history.evicting) > 0, "something is evicted")
    more = {"spec": {"minAvailable": 3, "tasks": [{"name": "t", "replicas": 3, "template": TEMPLATE}]}}
    await target.client.patch(JOBS, "job", more, NAMESPACE, kind=Patch.MERGE)
    await target.history.until(lambda: f"{NAMESPACE}/job-t-2" in target.history.pods, "the job has a third pod")
    await _command(target, "AbortJob", JOBS, "job")
    await _command(target, "CloseQueue", QUEUES, "above")

    async def is_carried_out() -> bool:
        job = (await status(target.client, JOBS, "job", NAMESPACE)).get("state") or {}
        above = (await status(target.client, QUEUES, "above")).get("state")
        return job.get("phase") == "Aborted" and above in ("Closing", "Closed")

    await eventually("the job is aborted and the queue is closed", is_carried_out)
    for resource, name, _ in OBJECTS:
        await target.client.delete(resource, name, NAMESPACE, propagation="Background")
    await target.client.delete(PODS, "plain", NAMESPACE, grace=0)
    with contextlib.suppress(AssertionError):  # the test itself reports missing calls
        await target.history.until(is_all_done, "every granted permission is used")
    await asyncio.to_thread(scheduler.stop)
    await asyncio.to_thread(controllers.stop)


async def _run_brief_jobs(target: TargetCluster) -> None:
    """Create jobs that the controllers themselves delete after the jobs have ended."""
    for resource, name, spec in BRIEF:
        await target.client.create(resource, {"metadata": {"name": name}, "spec": spec}, NAMESPACE)
    await _command(target, "TerminateJob", JOBS, "brief")

    async def are_deleted() -> bool:
        return not any([(await target.client.list(resource, NAMESPACE)).items for resource, _, _ in BRIEF])

    await eventually("the controllers have deleted the brief jobs", are_deleted)


async def _command(target: TargetCluster, action: str, resource: Resource[Any], name: str) -> None:
    found = await target.client.get(resource, name, NAMESPACE if resource.namespaced else "")
    about = {"apiVersion": resource.api_version, "kind": resource.kind, "name": name, "uid": found.metadata.uid}
    space = NAMESPACE if resource.namespaced else "kube-system"
    command = {"metadata": {"name": f"order-{name}", "namespace": space}, "action": action, "target": about}
    await target.client.create(COMMANDS, command, space)


def _plain(name: str) -> dict[str, Any]:
    body = pod_body(name, "")
    del body["metadata"]["annotations"]
    return body


@pytest.mark.deadline(120)
async def test_the_roles_grant_exactly_the_permissions_that_are_used(target: TargetCluster) -> None:
    refused = refused_pods = 0

    def judge(call: Call) -> Handling:
        """Cause two rare calls: the lookup of a pod whose bind has an unknown result, and the count of an event."""
        nonlocal refused
        if not call.is_bind or "/plain/" not in call.path or refused == 4:
            return None
        refused += 1
        return Answer(409, "Conflict")

    def refuse(call: Call) -> Handling:
        """Cause a repeated event of the controllers: refuse the creation of a pod of a job."""
        nonlocal refused_pods
        if call.method != "POST" or not call.path.endswith("/pods") or b'"job-t-1"' not in call.body:
            return None
        refused_pods += 1
        return Answer(403, "Forbidden") if refused_pods <= 4 else None

    queues = [
        queue("default"),
        queue("a", deserved={"cpu": "4"}, reclaimable=True),
        queue("b", deserved={"cpu": "9"}),
        queue("above"),
        queue("below", parent="above"),
    ]
    async with target.scenario(nodes=4, cpu="4", queues=queues):
        target.proxy.judge = judge
        async with target.second_proxy(only_controllers=True) as (proxy, control):
            proxy.judge = refuse
            roles_of = {account: granted(ROLES, account) for account in ("schedspec", "schedspec-controllers")}

            def used() -> dict[str, set[Permission]]:
                return {"schedspec": needed(target.proxy.calls), "schedspec-controllers": needed(proxy.calls)}

            await _use_all_permissions(
                target, control, lambda: all(used()[it] >= roles for it, roles in roles_of.items())
            )
            found = used()
    for account, done in found.items():
        roles = roles_of[account]
        assert not done - roles, f"{account}: used and not granted: {_listed(done - roles)}"
        assert not roles - done, f"{account}: granted and never used: {_listed(roles - done)}"


def _listed(permissions: set[Permission]) -> str:
    return ", ".join(map(str, sorted(permissions)))
