"""The outcome of a controller's write follows from the API server's answer."""

from __future__ import annotations

from typing import cast

import pytest

from schedspec.scheduler.controllers.runtime.executor import WriteExecutor
from schedspec.scheduler.controllers.runtime.writes import Remove
from schedspec.scheduler.kube import PODS, Conflict, EventRecorder
from tests.support.fake_server import Answer, Handler, Reply, Request, serving, status


def conflicting(*uids: str) -> Handler:
    """Return a server that refuses each deletion; `uids` are those of the pods with the name."""
    items = [{"metadata": {"name": "p", "uid": uid}} for uid in uids]

    def handle(request: Request) -> Answer:
        if request.method == "DELETE":
            return status(409, "Conflict")
        return Reply(body={"metadata": {"resourceVersion": "9"}, "items": items})

    return handle


async def remove(*uids: str) -> None:
    async with serving(conflicting(*uids)) as (_, client):
        executor = WriteExecutor(client, cast(EventRecorder, None), lambda _: ())
        await executor.carry_out([Remove(PODS, "ns", "p", "u")])


@pytest.mark.parametrize("uids", [(), ("another",)], ids=["gone", "a successor"])
async def test_a_conflict_about_an_object_that_is_gone_is_no_failure(uids: tuple[str, ...]) -> None:
    await remove(*uids)


async def test_a_conflict_about_an_object_that_exists_is_raised() -> None:
    with pytest.raises(Conflict):
        await remove("u")
