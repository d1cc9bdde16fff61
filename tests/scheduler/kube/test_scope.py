"""On a shared cluster only our objects are reported, so that no other object can be written."""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from schedspec.scheduler.controllers import Context, build
from schedspec.scheduler.controllers.runtime.objects import COMMANDS, JOBS
from schedspec.scheduler.kube import NAMESPACES, NODES, PODGROUPS, PODS, QUEUES, Client, EventRecorder, Reflector, Scope
from schedspec.scheduler.kube.resource import Resource
from tests.support.fake_server import Answer, Reply, Request, cancelled, serving, until

OURS = Scope(("schedspec.dev/scenario", ""), "spec-", ("schedspec",))


def body(name: str, namespace: str = "", scheduler: str = "", **labels: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "1", "labels": labels}
    return {"metadata": meta, "spec": {"schedulerName": scheduler} if scheduler else {}}


LABEL = {"schedspec.dev/scenario": "spec-a-1"}
SEEN: list[tuple[Resource[Any], dict[str, Any], bool]] = [
    (PODGROUPS, body("g", "spec-a-1"), True),
    (PODGROUPS, body("g", "team"), False),
    (JOBS, body("j", "team"), False),
    (COMMANDS, body("c", "kube-system"), False),
    (COMMANDS, body("c", "kube-system", **LABEL), True),
    (NAMESPACES, body("spec-a-1"), True),
    (NAMESPACES, body("team"), False),
    (NODES, body("n"), True),
    (PODS, body("p", "spec-a-1", "schedspec"), True),
    (PODS, body("p", "team", "default-scheduler"), True),
    (PODS, body("p", "team", "schedspec"), False),
]


def listed(*items: dict[str, Any]) -> Reply:
    return Reply(body={"metadata": {"resourceVersion": "5"}, "items": list(items)})


async def changes_of(resource: Resource[Any], scope: Scope, *items: dict[str, Any]) -> tuple[list[str], list[Request]]:
    """Return the names that a reflector reports, and its requests."""
    changes: list[str] = []

    def answer(request: Request) -> Answer:
        return Reply(chunks=[], then="hang") if "watch=true" in request.path else listed(*items)

    async with serving(answer) as (server, client):
        scoped = Client(client.http, scope=scope)
        reflector = Reflector(scoped, resource, lambda change: changes.append(change.object.metadata.name))  # type: ignore[union-attr]
        task = asyncio.create_task(reflector.run())
        try:
            await until(reflector.synced.is_set)
        finally:
            await cancelled(task)
        return changes, server.requests


@pytest.mark.parametrize(("resource", "item", "is_seen"), SEEN)
async def test_objects_in_the_scope_and_pods_of_other_schedulers_are_seen(
    resource: Resource[Any], item: dict[str, Any], is_seen: bool
) -> None:
    changes, _ = await changes_of(resource, OURS, item)
    assert changes == [item["metadata"]["name"]] * is_seen


@pytest.mark.parametrize(("resource", "item"), [(resource, item) for resource, item, _ in SEEN])
async def test_without_a_scope_everything_is_seen(resource: Resource[Any], item: dict[str, Any]) -> None:
    changes, request = await changes_of(resource, Scope(), item)
    assert changes == [item["metadata"]["name"]]
    assert "labelSelector" not in request[0].path


async def test_queues_are_listed_by_label_and_root_and_default_are_presumed() -> None:
    changes, request = await changes_of(QUEUES, OURS, body("q", **LABEL))
    assert changes == ["root", "default", "q"]
    assert parse_qs(urlparse(request[0].path).query)["labelSelector"] == ["schedspec.dev/scenario"]


async def test_no_controller_writes_to_a_presumed_queue() -> None:
    def answer(request: Request) -> Answer:
        return Reply(chunks=[], then="hang") if "watch=true" in request.path else listed()

    async with serving(answer) as (server, client):
        scoped = Client(client.http, scope=OURS)
        context = Context(scoped, EventRecorder(scoped, "schedspec"), ["schedspec"])
        (controller,) = build(["queue"], context)
        tasks = [asyncio.create_task(context.watch()), asyncio.create_task(controller.run())]
        await until(lambda: not context.unready() and "queue" in context.queues)
        keys = context.queues["queue"]
        await until(lambda: not len(keys) and not keys._working)
        for task in tasks:
            await cancelled(task)
        assert [request.method for request in server.requests if request.method != "GET"] == []
