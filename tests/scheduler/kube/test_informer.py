"""The informer's cache and its indexes."""

from __future__ import annotations

import asyncio

from schedspec.scheduler.kube import PODS, Informer
from schedspec.scheduler.model.objects import Pod
from tests.scheduler.kube.test_reflector import Script, event, group, listing
from tests.support.fake_server import Reply, cancelled, serving, until


def _labels(pod: Pod) -> list[str]:
    return [pod.metadata.labels["app"]] if pod.metadata.labels else []


async def test_cache_indexes_and_listeners_follow_the_watch() -> None:
    def pod(name: str, version: int, app: str) -> dict[str, object]:
        item = group(name, version)
        item["metadata"]["labels"] = {"app": app}
        return {"metadata": item["metadata"], "spec": {}}

    chunks = [
        event("MODIFIED", pod("a", 6, "y")),
        event("ADDED", pod("c", 7, "x")),
        event("DELETED", pod("b", 8, "x")),
        event("ADDED", {**pod("bad", 9, "x"), "spec": {"hostNetwork": "perhaps"}}),
    ]
    script = Script([listing(5, pod("a", 3, "x"), pod("b", 4, "x"))], [Reply(chunks=chunks, then="hang")])
    async with serving(script) as (_, client):
        informer = Informer(client, PODS, indexes={"app": _labels})
        keys: list[str] = []
        changes: list[tuple[bool, bool]] = []
        informer.on_key(keys.append)
        informer.on_change(lambda before, after: changes.append((before is not None, after is not None)))
        task = asyncio.create_task(informer.run())
        await until(lambda: len(keys) == 6)
        assert keys == ["ns/a", "ns/b", "ns/a", "ns/c", "ns/b", "ns/bad"]
        assert changes == [(False, True), (False, True), (True, True), (False, True), (True, False), (False, False)]
        assert [found.metadata.name for found in informer.by("app", "x")] == ["c"]
        assert [found.metadata.name for found in informer.by("app", "y")] == ["a"]
        assert informer.get("ns/b") is None
        assert sorted(informer.objects) == ["ns/a", "ns/c"]
        assert informer.malformed["ns/bad"].error == "Expected `bool`, got `str` - at `$.spec.hostNetwork`"
        await cancelled(task)
