"""Find the cycles of a recording in which a monitor finds a violation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...monitors import MONITORS, Rules
from ...monitors.ledger import BURST
from ...scheduler.inputs import Decided, PolicyLoaded
from ..simulate.monitored import Monitors
from .of_recording import inputs_of


def moments(path: Path, monitor: str) -> Iterator[tuple[float, int]]:
    """Yield the times and numbers of the cycles in which a monitor finds a violation, in order, each once.

    A violation that precedes every bind and eviction of the recording belongs to no cycle.

    Args:
        path: The folder of a recording, or one of its segments.
        monitor: The name of the monitor; an unknown monitor finds nothing.
    """
    if monitor not in MONITORS:
        return
    inputs = [*inputs_of(path)]
    policy = [given.text for given in inputs if isinstance(given, PolicyLoaded)][-1:]
    monitors, now = Monitors(Rules("".join(policy)), burst=BURST), 0.0
    acts: list[tuple[str, tuple[float, int]]] = []
    for recorded in inputs:
        monitors.observe(now, recorded)
        if isinstance(recorded, Decided):
            now = recorded.now
            monitors.begin_cycle(now, recorded.cycle)
            done = [act.task for act in recorded.decisions.binds]
            done += [act.task for act in recorded.decisions.evictions]
            acts += [(_short(task), (now, recorded.cycle)) for task in done]
            for eviction in recorded.decisions.evictions:
                monitors.evict(eviction.task, eviction.reason)
    seen: set[tuple[float, int]] = set()
    for found in (found for found in monitors.close() if found.monitor == monitor):
        about = _short(found.about)
        before = [(pod, moment) for pod, moment in acts if moment[0] <= found.time]
        own = [moment for pod, moment in before if pod == about or pod.startswith(f"{about}-")]
        moment = next(reversed(own or [moment for _, moment in before]), None)
        if moment is not None and moment not in seen:
            seen.add(moment)
            yield moment


def _short(key: str) -> str:
    return key.rpartition("/")[2]
