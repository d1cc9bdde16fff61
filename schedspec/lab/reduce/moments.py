"""Find the cycles of a recording in which a monitor finds a violation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...monitors import MONITORS, Ledger, Rules
from ...scheduler.inputs import Decided, PolicyLoaded
from .of_recording import inputs_of
from .versions import Recorder


def moments(path: Path, monitor: str) -> Iterator[tuple[float, int]]:
    """Yield the times and numbers of the cycles in which a monitor finds a violation, in order, each once.

    A violation that precedes every bind and eviction of the recording belongs to no cycle.

    Args:
        path: The folder of a recording, or one of its segments.
        monitor: The name of the monitor; an unknown monitor finds nothing.
    """
    if monitor not in MONITORS:
        return
    recorder, now, policy = Recorder(), 0.0, ""
    acts: list[tuple[str, tuple[float, int]]] = []
    for recorded in inputs_of(path):
        match recorded:
            case PolicyLoaded():
                policy = recorded.text
            case Decided():
                now = recorded.now
                done = [act.task for act in recorded.decisions.binds] + [
                    act.task for act in recorded.decisions.evictions
                ]
                acts += [(_short(task), (now, recorded.cycle)) for task in done]
                for eviction in recorded.decisions.evictions:
                    recorder.evict(now, eviction.task, eviction.reason)
            case _:
                recorder.record(now, recorded)
    seen: set[tuple[float, int]] = set()
    for found in MONITORS[monitor].judge(Ledger(recorder.versions), Rules(policy)):
        about = _short(found.about)
        before = [(pod, moment) for pod, moment in acts if moment[0] <= found.time]
        own = [moment for pod, moment in before if pod == about or pod.startswith(f"{about}-")]
        moment = next(reversed(own or [moment for _, moment in before]), None)
        if moment is not None and moment not in seen:
            seen.add(moment)
            yield moment


def _short(key: str) -> str:
    return key.rpartition("/")[2]
