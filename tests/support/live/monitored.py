"""Check fault tests with the monitors that check every feature.

The monitors see the cluster through their own watches, which bypass the proxy; they have no other information about the
scheduler.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from schedspec.api.client import Api
from schedspec.api.kinds import Kind
from schedspec.monitors import MONITORS, Rules, judge
from schedspec.observe.history import History
from schedspec.observe.watcher import HistoryWriter, Watches
from schedspec.scheduler.model.objects import Pod

OFF = ("gang",)
"""Monitors that are off.

`gang` requires a whole gang two seconds after its first bind, but a fault may delay the other binds for longer.
`tests.support.live.history.History.check` checks that no gang is bound in part at the end.
"""
JUDGED = (Kind.POD, Kind.NODE, Kind.QUEUE, Kind.PODGROUP)


def shows(history: History, pods: Iterable[Pod]) -> bool:
    """Whether the history has these versions of the pods, or later ones.

    The test's own watches may be ahead of the monitors'. To a monitor, an eviction looks needless until the monitor has
    seen the binds that follow.
    """
    live = history.now()
    found = ((pod.metadata, live.get(Kind.POD, pod.metadata.name)) for pod in pods)
    return all(obj and int(obj["metadata"]["resourceVersion"]) >= int(meta.resource_version) for meta, obj in found)


class Monitored:
    """The history of a cluster from now on, and the verdict of the monitors."""

    def __init__(self, history: History, watches: Watches) -> None:
        self._history = history
        self._watches = watches

    def have_seen(self, pods: Iterable[Pod]) -> bool:
        """Whether the monitors have seen these versions of the pods."""
        return shows(self._history, pods)

    def check(self, policy: str) -> None:
        """Check that the monitors find no violation in the whole history."""
        assert not set(OFF) - MONITORS.keys()
        self._watches.check()
        found = judge(self._history.since(0), Rules(policy), off=OFF)
        text = "\n".join(
            f"{it.monitor}, after {self._history.seconds(it.time):.2f} s: {it.about}: {it.text}" for it in found
        )
        assert not found, f"the monitors found:\n{text}"


@asynccontextmanager
async def monitored(kubeconfig: Path, context: str, namespace: str) -> AsyncIterator[Monitored]:
    """Watch a namespace while the context lasts."""
    api, recorder = Api(kubeconfig, context), HistoryWriter()
    history = recorder.begin(namespace)
    watches = Watches(api, recorder, JUDGED)
    try:
        await asyncio.to_thread(watches.start, 20.0)
        yield Monitored(history, watches)
    finally:
        await asyncio.to_thread(watches.stop)
        api.close()
