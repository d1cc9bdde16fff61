"""A pod that terminates for longer than the longest grace blocks no job."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from schedspec.scheduler.live import terminations as module
from schedspec.scheduler.live.terminations import GraceLimit, Terminations
from schedspec.scheduler.model.objects import Pod
from schedspec.scheduler.model.times import timestamp
from schedspec.scheduler.recording.events import Overdue

NOW = 1_800_000_000.0
YEARS = 10**9


def pod(grace: int | None = 30, requested: float | None = NOW, **meta: Any) -> Pod:
    deleted = {} if requested is None else {"deletionTimestamp": timestamp(requested + (grace or 0))}
    period = {} if requested is None else {"deletionGracePeriodSeconds": grace}
    body = {"name": "p", "namespace": "ns", "uid": "u", **deleted, **period, **meta}
    return msgspec.convert({"metadata": body, "spec": {"terminationGracePeriodSeconds": grace}}, Pod)


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the delays of all timers that were started. Each timer fires at once."""
    delays: list[float] = []
    monkeypatch.setattr(module, "wall_time", lambda: NOW)
    loop = asyncio.BaseEventLoop
    real = loop.call_later

    def call_later(self: Any, delay: float, callback: Any, *args: Any, **more: Any) -> Any:
        if getattr(callback, "__name__", "") != "append":
            return real(self, delay, callback, *args, **more)
        delays.append(delay)
        return real(self, 0, callback, *args, **more)

    monkeypatch.setattr(loop, "call_later", call_later)
    return delays


@pytest.mark.parametrize(
    ("terminating", "remaining"),
    [
        (pod(grace=30), 60),
        (pod(grace=YEARS), 60),
        (pod(grace=30, requested=NOW - 45), 15),
        (pod(grace=YEARS, requested=NOW - 10_000), 0),
        (pod(grace=30, requested=NOW + 10_000), 60),
        (pod(deletionTimestamp="33333-01-01T00:00:00Z"), 60),
        (pod(finalizers=["a/b"]), 60),
    ],
    ids=["ordinary", "decades", "after a restart", "long overdue", "clocks differ", "no such year", "finalizer"],
)
async def test_a_pod_is_overdue_after_the_longest_grace(
    timers: list[float], terminating: Pod, remaining: float
) -> None:
    overdue: list[Overdue] = []
    terminations = Terminations(GraceLimit(60), overdue.append)
    for _ in range(3):
        terminations.seen(terminating)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert timers == [remaining + module.SLACK]
    assert overdue == [Overdue("ns/p", "u", 60)]


async def test_a_pod_that_ends_in_time_is_never_overdue(timers: list[float]) -> None:
    overdue: list[Overdue] = []
    terminations = Terminations(GraceLimit(60), overdue.append)
    terminations.seen(pod(requested=None))
    terminations.seen(pod())
    terminations.gone("u")
    await asyncio.sleep(0)
    assert (len(timers), overdue, len(terminations)) == (1, [], 0)


@pytest.mark.parametrize(
    ("own", "force", "deleted_with"), [(30, True, None), (YEARS, True, 60), (YEARS, False, None), (None, True, None)]
)
def test_only_a_forced_eviction_cuts_the_grace_period(own: int | None, force: bool, deleted_with: int | None) -> None:
    assert GraceLimit(60, force).of_eviction(pod(grace=own, requested=None)) == deleted_with
