"""Evictions: a victim gets its condition, then exactly that pod is deleted; less urgent writes wait for its end."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from schedspec.scheduler.framework.decisions import Evict
from tests.scheduler.live.test_writer import EVICT, a_pod, by_method, writing
from tests.support.fake_server import (
    SAFETY_NET,
    Answer,
    Reply,
    status,
    until,
)


async def test_a_victim_gets_a_condition_and_is_then_deleted_by_uid() -> None:
    async with writing(by_method(PATCH=a_pod("n"), DELETE=Reply())) as (server, writer, outcome):
        writer.evict([[EVICT]])
        await writer.finished()
        patch, delete = server.requests
        condition = patch.json()["status"]["conditions"][0]
        assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "PreemptionByScheduler")
        assert "ns/b of queue qb" in condition["message"]
        assert patch.json()["metadata"] == {"uid": "u"}
        assert delete.json() == {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "u"}}
        assert outcome.reverted == []


async def test_the_least_important_victims_get_their_condition_first() -> None:
    def named(name: str) -> Evict:
        return msgspec.structs.replace(EVICT, task=f"ns/{name}", uid=name)

    async with writing(by_method(PATCH=a_pod("n"), DELETE=Reply())) as (server, writer, _):
        writer.evict([[named(f"low-{i}") for i in range(5)], [named("medium")]])
        await writer.finished()
        patched = [request.json()["metadata"]["uid"] for request in server.requests if request.method == "PATCH"]
        assert patched.index("medium") == 5


def named(*uids: str) -> Reply:
    """Return the list of all pods with the victim's name, one for each uid."""
    items = [{"metadata": {"name": "p", "uid": uid}} for uid in uids]
    return Reply(body={"metadata": {"resourceVersion": "9"}, "items": items})


GONE = {"gone": named(), "a successor": named("another")}
CONFLICT = status(409, "Conflict", "no")


@pytest.mark.parametrize("refused", ["PATCH", "DELETE"])
@pytest.mark.parametrize("pods", GONE.values(), ids=GONE)
async def test_an_eviction_of_a_pod_that_was_already_deleted_is_no_failure(pods: Reply, refused: str) -> None:
    for answer in (status(404, "NotFound"), CONFLICT):
        answers = {"PATCH": a_pod("n"), "DELETE": Reply(), "GET": pods, refused: answer}
        async with writing(by_method(**answers)) as (server, writer, outcome):
            writer.evict([[EVICT]])
            await writer.finished()
            assert [request.method for request in server.requests if request.method != "GET"][-1] == refused
            assert (outcome.refused, outcome.reverted) == ([], [])
            assert not writer.is_evicting


@pytest.mark.parametrize("refused", ["PATCH", "DELETE"])
async def test_an_eviction_is_reverted_after_a_conflict_about_a_victim_that_still_runs(refused: str) -> None:
    answers = {"PATCH": a_pod("n"), "DELETE": Reply(), "GET": named("u"), refused: CONFLICT}
    async with writing(by_method(**answers)) as (_, writer, outcome):
        writer.evict([[EVICT]])
        await until(lambda: outcome.reverted == ["ns/p"])
        assert outcome.refused == ["ns/p"]


async def test_a_refused_eviction_is_reverted() -> None:
    async with writing(by_method(PATCH=a_pod("n"), DELETE=status(403, "Forbidden"))) as (_, writer, outcome):
        writer.evict([[EVICT]])
        await until(lambda: outcome.reverted == ["ns/p"])
        assert outcome.refused == ["ns/p"]


async def test_less_urgent_writes_wait_a_limited_time_for_terminating_victims() -> None:
    async with writing(by_method(PATCH=a_pod("n"), DELETE=Reply())) as (_, writer, _outcome):
        writer.evict([[EVICT]])
        await writer.finished()
        assert writer.is_evicting
        waiting = asyncio.create_task(writer.urgent())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        writer.gone("another")
        await asyncio.sleep(0.05)
        assert not waiting.done()
        writer.gone("u")
        await waiting
        assert not writer.is_evicting
        writer.evict([[EVICT]])
        await writer.finished()
        async with asyncio.timeout(SAFETY_NET):
            await writer.urgent()  # the victim has a long grace period
            await until(lambda: not writer.is_evicting)


@pytest.mark.parametrize("answer", [status(404, "NotFound"), status(403, "Forbidden")])
async def test_writes_do_not_wait_for_a_victim_that_is_not_being_deleted(answer: Answer) -> None:
    async with writing(by_method(PATCH=a_pod("n"), DELETE=answer)) as (_, writer, _outcome):
        writer.evict([[EVICT]])
        await writer.finished()
        assert not writer.is_evicting
