"""Evictions: the victim is told first, only that pod is deleted, and whoever is less urgent waits for it to leave."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from scheduler.framework.decisions import Evict
from tests.scheduler.live.test_writer import EVICT, a_pod, by_method, writing
from tests.support.fake_server import (
    SAFETY_NET,
    Answer,
    Reply,
    status,
    until,
)


async def test_a_victim_is_told_why_before_it_is_deleted_and_only_that_pod() -> None:
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


async def test_the_least_important_are_told_before_the_others() -> None:
    def named(name: str) -> Evict:
        return msgspec.structs.replace(EVICT, task=f"ns/{name}", uid=name)

    async with writing(by_method(PATCH=a_pod("n"), DELETE=Reply())) as (server, writer, _):
        writer.evict([[named(f"low-{i}") for i in range(5)], [named("medium")]])
        await writer.finished()
        patched = [request.json()["metadata"]["uid"] for request in server.requests if request.method == "PATCH"]
        assert patched.index("medium") == 5


def named(*uids: str) -> Reply:
    """The list of the pods that have the victim's name."""
    items = [{"metadata": {"name": "p", "uid": uid}} for uid in uids]
    return Reply(body={"metadata": {"resourceVersion": "9"}, "items": items})


GONE = {"gone": named(), "a successor": named("another")}
CONFLICT = status(409, "Conflict", "no")


@pytest.mark.parametrize("refused", ["PATCH", "DELETE"])
@pytest.mark.parametrize("pods", GONE.values(), ids=GONE)
async def test_a_victim_that_is_gone_already_is_no_failure(pods: Reply, refused: str) -> None:
    for answer in (status(404, "NotFound"), CONFLICT):
        answers = {"PATCH": a_pod("n"), "DELETE": Reply(), "GET": pods, refused: answer}
        async with writing(by_method(**answers)) as (server, writer, outcome):
            writer.evict([[EVICT]])
            await writer.finished()
            assert [request.method for request in server.requests if request.method != "GET"][-1] == refused
            assert (outcome.refused, outcome.reverted) == ([], [])
            assert not writer.is_evicting


@pytest.mark.parametrize("refused", ["PATCH", "DELETE"])
async def test_after_a_conflict_about_a_victim_that_still_runs_the_eviction_is_given_back(refused: str) -> None:
    answers = {"PATCH": a_pod("n"), "DELETE": Reply(), "GET": named("u"), refused: CONFLICT}
    async with writing(by_method(**answers)) as (_, writer, outcome):
        writer.evict([[EVICT]])
        await until(lambda: outcome.reverted == ["ns/p"])
        assert outcome.refused == ["ns/p"]


async def test_a_refused_eviction_is_given_back() -> None:
    async with writing(by_method(PATCH=a_pod("n"), DELETE=status(403, "Forbidden"))) as (_, writer, outcome):
        writer.evict([[EVICT]])
        await until(lambda: outcome.reverted == ["ns/p"])
        assert outcome.refused == ["ns/p"]


async def test_what_is_less_urgent_waits_until_the_victims_have_left_but_not_for_ever() -> None:
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
            await writer.urgent()  # it has a long grace period
            await until(lambda: not writer.is_evicting)


@pytest.mark.parametrize("answer", [status(404, "NotFound"), status(403, "Forbidden")])
async def test_nobody_waits_for_a_victim_that_is_not_being_deleted(answer: Answer) -> None:
    async with writing(by_method(PATCH=a_pod("n"), DELETE=answer)) as (_, writer, _outcome):
        writer.evict([[EVICT]])
        await writer.finished()
        assert not writer.is_evicting
