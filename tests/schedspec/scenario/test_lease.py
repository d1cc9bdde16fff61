"""One run at a time uses a long-lived cluster; a second run is refused with the name of the first."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from schedspec.api.client import Api
from schedspec.api.errors import ClusterInUseError, ForeignObjectError, RejectedError
from schedspec.clusters.protocol import SCENARIO
from schedspec.scenario.lease import PATH, RunLease
from tests.support.fake_server import SAFETY_NET
from tests.support.memory_api import Answer, MemoryApi


def stamp(seconds_ago: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def held(seconds_ago: float, duration: int = 1) -> dict[str, Any]:
    spec = {
        "holderIdentity": "ann@lab, process 7 (ab12)",
        "leaseDurationSeconds": duration,
        "acquireTime": stamp(600),
        "renewTime": stamp(seconds_ago),
    }
    return {"metadata": {"labels": {SCENARIO: "run"}}, "spec": spec}


def lease(api: MemoryApi) -> RunLease:
    return RunLease(cast("Api", api), "lab", seconds=5)


def watch(mine: RunLease) -> None:
    """Check the lease until it is lost."""
    for _ in range(6000):
        mine.check()
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def no_thread_remains() -> Iterator[None]:
    yield
    assert not [thread for thread in threading.enumerate() if thread.name == "lease"]


def test_a_run_creates_renews_and_deletes_its_lease() -> None:
    api = MemoryApi()
    mine = lease(api)
    mine.acquire()
    first = api.objects[PATH]["spec"]
    assert first["holderIdentity"] == mine.holder
    deadline = time.monotonic() + SAFETY_NET
    while api.objects[PATH]["spec"]["renewTime"] == first["renewTime"]:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert api.objects[PATH]["spec"]["acquireTime"] == first["acquireTime"]
    mine.check()
    mine.release()
    mine.release()
    assert PATH not in api.objects


def test_the_error_of_a_second_run_names_the_holder_and_nothing_is_written() -> None:
    api = MemoryApi((PATH, held(seconds_ago=3, duration=30)))
    before = dict(api.objects[PATH])
    with pytest.raises(ClusterInUseError) as caught:
        lease(api).acquire()
    message = str(caught.value)
    assert f"another run uses the cluster: ann@lab, process 7 (ab12), since {before['spec']['acquireTime']}" in message
    assert "lease kube-system/schedspec-run, context lab" in message
    assert "run again in 27 s" in message
    assert api.objects[PATH] == before


def test_an_expired_lease_is_taken_over() -> None:
    api = MemoryApi((PATH, held(seconds_ago=5)))
    mine = lease(api)
    mine.acquire()
    assert api.objects[PATH]["spec"]["holderIdentity"] == mine.holder
    mine.release()


def test_the_lease_of_a_live_holder_whose_clock_is_behind_is_not_taken_over() -> None:
    api = MemoryApi((PATH, held(seconds_ago=500)))

    raw = api.raw

    def read_then_renew(verb: str, path: str, **more: Any) -> Answer:
        answer = raw(verb, path, **more)
        if (verb, path) == ("GET", PATH):
            raw("PUT", PATH, body={**api.objects[PATH], "spec": {**held(499)["spec"]}})
        return answer

    api.raw = read_then_renew  # type: ignore[method-assign]
    with pytest.raises(ClusterInUseError, match="ann@lab"):
        lease(api).acquire()


def test_a_run_that_lost_its_lease_fails_and_does_not_delete_the_lease() -> None:
    api = MemoryApi()
    mine = lease(api)
    mine.acquire()
    api.call("PUT", PATH, body={**api.objects[PATH], "spec": held(0, 30)["spec"]})
    with pytest.raises(ClusterInUseError, match="this run has lost the cluster: ann@lab"):
        watch(mine)
    mine.release()
    assert api.objects[PATH]["spec"]["holderIdentity"].startswith("ann@lab")


def test_a_run_loses_its_lease_if_the_api_server_is_down_for_too_long() -> None:
    api = MemoryApi()
    mine = lease(api)
    mine.acquire()
    api.raw = lambda verb, path, **_: Answer(503, {"message": "down"})  # type: ignore[method-assign]
    with pytest.raises(ClusterInUseError, match="down"):
        watch(mine)
    mine.release()


def test_a_lease_of_another_program_stays_unchanged() -> None:
    foreign = {**held(500), "metadata": {}}
    api = MemoryApi((PATH, foreign))
    with pytest.raises(ForeignObjectError, match="kube-system/schedspec-run does not belong to a run"):
        lease(api).acquire()
    assert api.objects[PATH]["spec"] == foreign["spec"]


def test_a_run_that_may_not_create_the_lease_fails_with_the_api_servers_message() -> None:
    api = MemoryApi()
    api.raw = lambda verb, path, **_: Answer(403, {"reason": "Forbidden", "message": "not you"})  # type: ignore[method-assign]
    with pytest.raises(RejectedError, match="not you"):
        lease(api).acquire()
