"""The typed operations send the right requests and decode the answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from schedspec.scheduler.kube import PODGROUPS, PODS, QUEUES, Client, Patch
from schedspec.scheduler.kube.resource import Resource
from schedspec.scheduler.model.objects import Pod
from tests.support.fake_server import Answer, Reply, Request, serving

POD = {"metadata": {"name": "p", "namespace": "ns", "uid": "u"}}


async def test_a_list_is_read_page_by_page() -> None:
    pages = {
        "": {"metadata": {"resourceVersion": "7", "continue": "more"}, "items": [{"metadata": {"name": "a"}}]},
        "more": {"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "b"}}]},
    }

    def answer(request: Request) -> Answer:
        return Reply(body=pages["more" if "continue=more" in request.path else ""])

    async with serving(answer) as (server, client):
        listing = await client.list(PODS, labels="app=x", page=1)
        assert [pod.metadata.name for pod in listing.items] == ["a", "b"]
        assert listing.resource_version == "7"
        assert "limit=1" in server.requests[0].path
        assert "labelSelector=app%3Dx" in server.requests[1].path


async def test_an_empty_list_may_have_null_items() -> None:
    async with serving(lambda request: Reply(body={"metadata": {"resourceVersion": "1"}, "items": None})) as (
        _,
        client,
    ):
        assert (await client.list(PODS)).items == []


async def test_a_malformed_object_of_a_list_is_reported_and_the_others_are_read() -> None:
    items = [
        {"metadata": {"name": "good", "namespace": "ns"}, "spec": {"minMember": 2}},
        {"metadata": {"name": "bad", "namespace": "ns", "uid": "b"}, "spec": {"minMember": "two"}},
    ]
    body = {"metadata": {"resourceVersion": "9"}, "items": items}
    async with serving(lambda request: Reply(body=body)) as (_, client):
        listing = await client.list(PODGROUPS)
        assert [group.metadata.name for group in listing.items] == ["good"]
        [malformed] = listing.malformed
        assert malformed.metadata.key == "ns/bad"
        assert malformed.error == "Expected `int`, got `str` - at `$.spec.minMember`"


async def _delete(client: Client) -> None:
    await client.delete(PODS, "p", "ns", uid="u", grace=3, propagation="Background")


async def _status(client: Client) -> None:
    await client.patch(PODS, "p", {"status": {}}, "ns", kind=Patch.STRATEGIC, sub="status")


async def _apply(client: Client) -> None:
    await client.patch(QUEUES, "q", {"spec": {}}, kind=Patch.APPLY, manager="me", force=True)


async def _create(client: Client) -> None:
    await client.create(PODGROUPS, {"metadata": {"name": "g"}}, "ns")


SCHEDULING = "/apis/scheduling.volcano.sh/v1beta1"
OPERATIONS = {
    "delete": (
        _delete,
        "DELETE /api/v1/namespaces/ns/pods/p",
        "application/json",
        {"preconditions": {"uid": "u"}, "gracePeriodSeconds": 3, "propagationPolicy": "Background"},
    ),
    "status": (
        _status,
        "PATCH /api/v1/namespaces/ns/pods/p/status",
        "application/strategic-merge-patch+json",
        {"status": {}},
    ),
    "apply": (
        _apply,
        f"PATCH {SCHEDULING}/queues/q?fieldManager=me&force=true",
        "application/apply-patch+yaml",
        {"spec": {}},
    ),
    "create": (
        _create,
        f"POST {SCHEDULING}/namespaces/ns/podgroups",
        "application/json",
        {"kind": "PodGroup", "apiVersion": "scheduling.volcano.sh/v1beta1"},
    ),
}


@pytest.mark.parametrize(("operation", "request_line", "content_type", "part"), OPERATIONS.values(), ids=OPERATIONS)
async def test_an_operation_sends_the_request_that_the_api_requires(
    operation: Callable[[Client], Awaitable[None]], request_line: str, content_type: str, part: dict[str, object]
) -> None:
    async with serving(lambda request: Reply(body=POD)) as (server, client):
        await operation(client)
        [request] = server.requests
        assert f"{request.method} {request.path}" == request_line
        assert request.headers["content-type"] == content_type
        assert part.items() <= request.json().items()


def test_names_in_paths_are_quoted() -> None:
    odd: Resource[Pod] = PODS
    assert odd.path("ns", "a/b?c") == "/api/v1/namespaces/ns/pods/a%2Fb%3Fc"
