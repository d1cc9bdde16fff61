"""Judge a fault test with the monitors that judge every feature.

The monitors see the cluster through watches of their own, past the proxy, and know nothing else of the scheduler.
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
from scheduler.model.objects import Pod

NOT_ASKED = ("gang",)
"""It wants a gang whole two seconds after its first bind, and a fault may hold the others back for longer; that none
ends in part is what :meth:`tests.support.live.history.History.check` judges.
"""
JUDGED = (Kind.POD, Kind.NODE, Kind.QUEUE, Kind.PODGROUP)


def shows(history: History, pods: Iterable[Pod]) -> bool:
    """Whether the history has these versions of the pods, or later ones.

    The watches of the test may be ahead. Victims look needless as long as the binds after them are missing.
    """
    live = history.now()
    found = ((pod.metadata, live.get(Kind.POD, pod.metadata.name)) for pod in pods)
    return all(obj and int(obj["metadata"]["resourceVersion"]) >= int(meta.resource_version) for meta, obj in found)


class Monitored:
    """What the cluster shows from now on, and what the monitors make of it."""

    def __init__(self, history: History, watches: Watches) -> None:
        self._history = history
        self._watches = watches

    def have_seen(self, pods: Iterable[Pod]) -> bool:
        """Whether the monitors have seen these versions of the pods."""
        return shows(self._history, pods)

    def check(self, policy: str) -> None:
        """Nothing happened that must never happen: judged on the whole history."""
        assert not set(NOT_ASKED) - MONITORS.keys()
        self._watches.check()
        found = judge(self._history.since(0), Rules(policy), off=NOT_ASKED)
        text = "\n".join(
            f"{it.monitor}, after {self._history.seconds(it.time):.2f} s: {it.about}: {it.text}" for it in found
        )
        assert not found, f"the monitors found:\n{text}"


@asynccontextmanager
async def monitored(kubeconfig: Path, context: str, namespace: str) -> AsyncIterator[Monitored]:
    """Watch a namespace for as long as the context lasts."""
    api, recorder = Api(kubeconfig, context), HistoryWriter()
    history = recorder.begin(namespace)
    watches = Watches(api, recorder, JUDGED)
    try:
        await asyncio.to_thread(watches.start, 20.0)
        yield Monitored(history, watches)
    finally:
        await asyncio.to_thread(watches.stop)
        api.close()
