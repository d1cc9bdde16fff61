"""Lists and watches as a real API server serves them."""

from __future__ import annotations

import asyncio

import pytest

from schedspec.scheduler.kube import PODS, Absent, Change, Present, Reflector
from schedspec.scheduler.model.objects import Pod
from tests.support.fake_server import cancelled, until
from tests.support.live.api_objects import client_of
from tests.support.live.target_cluster import NAMESPACE, TargetCluster

pytestmark = pytest.mark.embedded


@pytest.mark.deadline(60)
async def test_a_list_in_pages_equals_a_list_in_one_request(target: TargetCluster) -> None:
    async with target.scenario(nodes=1):
        await target.gang("g", 7)
        whole = await target.client.list(PODS, NAMESPACE)
        pages = await target.client.list(PODS, NAMESPACE, page=2)
        assert [pod.metadata.uid for pod in pages.items] == [pod.metadata.uid for pod in whole.items]
        assert len(pages.items) == 7
        assert int(pages.resource_version) >= int(max(pod.metadata.resource_version for pod in pages.items))


@pytest.mark.deadline(60)
async def test_a_quiet_watch_that_ends_repeatedly_is_resumed_without_a_list(target: TargetCluster) -> None:
    async with target.scenario(nodes=1):
        changes: list[Change[Pod]] = []
        async with client_of(target.through) as client:
            reflector = Reflector(client, PODS, changes.append, namespace=NAMESPACE, watch_seconds=1.0)
            watching = asyncio.create_task(reflector.run())
            await reflector.synced.wait()
            await _watched_again(target, 3)
            await target.gang("g", 1)
            await until(lambda: bool(changes))
            await _watched_again(target, 2)
            await target.delete_pod("g-0-0")
            await until(lambda: isinstance(changes[-1], Absent))
            assert isinstance(changes[0], Present)
            assert (reflector.lists, reflector.trouble) == (1, "")
            await cancelled(watching)


async def _watched_again(target: TargetCluster, times: int) -> None:
    """Wait until the proxy has seen `times` more watches."""
    before = len(target.proxy.calls)
    await until(lambda: sum(call.is_watch for call in target.proxy.calls[before:]) == times)
