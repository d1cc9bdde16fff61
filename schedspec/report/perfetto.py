"""Write scenarios as a trace in Chrome's JSON format, which ui.perfetto.dev opens.

Pods are slices on the threads of their node, queues are counters, and a flow leads from each eviction to the bind of
its preemptor. A scenario is a process. Slices of one thread must not overlap, so each slot of a node is a thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from . import files
from .lives import Life, lives_of, natural
from .picture import main_dimension, place
from .record import ScenarioRecord

_FLOW = {"name": "evicted for", "cat": "eviction"}
"""Both ends of a flow need the same name and category."""


def write(records: Iterable[ScenarioRecord], path: Path) -> Path:
    files.make_folder(path.parent)
    return files.write(path, msgspec.json.encode({"traceEvents": trace(records)}))


def trace(records: Iterable[ScenarioRecord]) -> list[dict[str, Any]]:
    return [event for process, record in enumerate(records, 1) for event in _Process(process, record).events]


class _Process:
    def __init__(self, process: int, record: ScenarioRecord) -> None:
        self.events: list[dict[str, Any]] = []
        self._process, self._record = process, record
        self._threads: dict[tuple[str, int], int] = {}
        self._event("M", 0.0, name="process_name", args={"name": record.title})
        for step in record.sentences:
            if step.verdict != "skipped":
                name, span = f"{step.keyword} {step.text}", (step.began, step.began + step.seconds)
                self._slice(self._thread("sentences"), name, span, {"verdict": step.verdict})
        self._flows = {act.uid: act for act in record.acts if act.act == "evict" and act.preemptor_uid}
        lives = lives_of(record)
        for node in sorted({life.node for life in lives if life.bound is not None}, key=natural):
            self._pods(node, [life for life in lives if life.node == node])
        self._waiting(lives)
        self._queues()

    def _pods(self, node: str, lives: list[Life]) -> None:
        end = self._record.seconds
        lives.sort(key=lambda life: life.bound or 0.0)
        for row, life in _rows((life, life.bound or 0.0, life.released(end)) for life in lives):
            thread, span = self._thread(f"node {node}", row), (life.bound or 0.0, life.released(end))
            amounts = {name: f"{amount:g}" for name, amount in life.amounts.items()}
            self._slice(thread, life.name, span, {"queue": life.queue, **amounts})
            self._end_flows(thread, life)
            if life.eviction is not None:
                name = f"evicted for {life.eviction.preemptor or 'an unknown pod'}"
                notes = {"message": life.eviction.message, **life.eviction.votes}
                self._event("i", life.eviction.at, tid=thread, name=name, s="t", args=notes)
                if life.uid in self._flows:
                    self._event("s", life.eviction.at, tid=thread, id=self._flow(life.uid), **_FLOW)

    def _waiting(self, lives: list[Life]) -> None:
        end = self._record.seconds
        waiting = [life for life in lives if life.waited_until(end) > life.created]
        for row, life in _rows((life, life.created, life.waited_until(end)) for life in waiting):
            thread, notes = (
                self._thread("waiting", row),
                {f"reason {n}": why for n, (_, why) in enumerate(life.reasons, 1)},
            )
            self._slice(thread, life.name, (life.created, life.waited_until(end)), notes)
            if life.bound is None:
                self._end_flows(thread, life)

    def _end_flows(self, thread: int, preemptor: Life) -> None:
        """End the flows of the evictions for a pod at its bind, or as they begin if it is not bound."""
        for victim, act in self._flows.items():
            if act.preemptor_uid == preemptor.uid:
                at = act.at if preemptor.bound is None else preemptor.bound
                self._event("f", at, tid=thread, id=self._flow(victim), bp="e", **_FLOW)

    def _flow(self, victim: str) -> str:
        return f"{self._process}/{victim}"

    def _queues(self) -> None:
        dimension = main_dimension(self._record)
        for moment in self._record.queues:
            held = {dimension: float(moment.held.get(dimension, 0))}
            self._event("C", moment.at, name=f"queue {moment.queue}: {dimension}", args=held)

    def _thread(self, name: str, row: int = 0) -> int:
        """Return the thread of a row of slices, created on its first use."""
        if (name, row) not in self._threads:
            thread = self._threads[name, row] = len(self._threads) + 1
            self._event("M", 0.0, tid=thread, name="thread_name", args={"name": name})
        return self._threads[name, row]

    def _slice(self, thread: int, name: str, span: tuple[float, float], notes: dict[str, str]) -> None:
        self._event("X", span[0], tid=thread, name=name, dur=_microseconds(span[1] - span[0]), args=notes)

    def _event(self, phase: str, at: float, **fields: Any) -> None:
        self.events.append({"ph": phase, "ts": _microseconds(self._record.began + at), "pid": self._process, **fields})


def _microseconds(seconds: float) -> float:
    return round(seconds * 1e6, 3)


def _rows(intervals: Iterable[tuple[Life, float, float]]) -> Iterator[tuple[int, Life]]:
    """Yield each pod with the lowest row that is free during its interval."""
    found = list(intervals)
    for (life, _, _), parts in zip(found, place([(began, until, 1.0) for _, began, until in found]), strict=True):
        yield int(parts[0][0]), life
