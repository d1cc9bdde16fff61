"""Write scenarios as a Perfetto trace (TrackEvent).

Pods are slices on the track of their node, queues are counters, and a flow leads from each eviction to the bind of its
preemptor. A scenario is a process. Slices of one track must not overlap, so each slot of a node is a track.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackDescriptor, TrackEvent
from perfetto.trace_builder.proto_builder import TraceProtoBuilder

from . import files
from .lives import Life, lives_of, natural
from .picture import main_dimension
from .record import ScenarioRecord
from .slots import place

_SEQUENCE = 1


def write(records: Iterable[ScenarioRecord], path: Path) -> Path:
    """Write the trace and return its path. Raises OSError."""
    files.make_folder(path.parent)
    return files.write(path, trace(records))


def trace(records: Iterable[ScenarioRecord]) -> bytes:
    """Return the trace of these scenarios."""
    found = _Trace()
    for record in records:
        found.scenario(record)
    return bytes(found.builder.serialize())


class _Trace:
    def __init__(self) -> None:
        self.builder = TraceProtoBuilder()
        self._ids = itertools.count(1)
        self._slots: dict[tuple[int, str, int], int] = {}

    def scenario(self, record: ScenarioRecord) -> None:
        end = record.seconds
        process = self._track(record.title, is_process=True)
        steps = self._track("sentences", process)
        for step in record.sentences:
            if step.verdict != "skipped":
                name = f"{step.keyword} {step.text}"
                self._slice(record, steps, name, (step.began, step.began + step.seconds), {"verdict": step.verdict})
        flows = {act.uid: next(self._ids) for act in record.acts if act.act == "evict" and act.preemptor_uid}
        flows_to: dict[str, list[int]] = {}
        for act in record.acts:
            if act.uid in flows and act.act == "evict":
                flows_to.setdefault(act.preemptor_uid, []).append(flows[act.uid])
        lives = lives_of(record)
        for node in sorted({life.node for life in lives if life.bound is not None}, key=natural):
            self._pods(record, process, node, [life for life in lives if life.node == node], (flows, flows_to))
        waiting = [life for life in lives if life.waited_until(end) > life.created]
        for row, life in _rows((life, life.created, life.waited_until(end)) for life in waiting):
            track = self._slot(process, "waiting", row)
            notes = {f"reason {n}": why for n, (_, why) in enumerate(life.reasons, 1)}
            flow = flows_to.get(life.uid, ()) if life.bound is None else ()
            self._slice(record, track, life.name, (life.created, life.waited_until(end)), notes, ends=flow)
        self._queues(record, process)

    def _pods(
        self,
        record: ScenarioRecord,
        process: int,
        node: str,
        lives: list[Life],
        flows: tuple[dict[str, int], dict[str, list[int]]],
    ) -> None:
        lives.sort(key=lambda life: life.bound or 0.0)
        begins, ends = flows
        for row, life in _rows((life, life.bound or 0.0, life.released(record.seconds)) for life in lives):
            track = self._slot(process, f"node {node}", row)
            notes = {"queue": life.queue, **{name: f"{amount:g}" for name, amount in life.amounts.items()}}
            span = (life.bound or 0.0, life.released(record.seconds))
            self._slice(record, track, life.name, span, notes, ends=ends.get(life.uid, ()))
            if life.eviction is not None:
                name = f"evicted for {life.eviction.preemptor or 'an unknown pod'}"
                started = (begins[life.uid],) if life.uid in begins else ()
                notes = {"message": life.eviction.message, **life.eviction.votes}
                self._instant(record, track, name, life.eviction.at, notes, begins=started)

    def _queues(self, record: ScenarioRecord, process: int) -> None:
        dimension = main_dimension(record)
        tracks: dict[str, int] = {}
        for moment in record.queues:
            if moment.queue not in tracks:
                tracks[moment.queue] = self._track(f"queue {moment.queue}: {dimension}", process, is_counter=True)
            event = self._event(record, tracks[moment.queue], moment.at)
            event.type = TrackEvent.TYPE_COUNTER
            event.double_counter_value = float(moment.held.get(dimension, 0))

    def _slot(self, process: int, name: str, row: int) -> int:
        key = (process, name, row)
        if key not in self._slots:
            self._slots[key] = self._track(name, process)
        return self._slots[key]

    def _track(self, name: str, parent: int = 0, *, is_process: bool = False, is_counter: bool = False) -> int:
        track: TrackDescriptor = self.builder.add_packet().track_descriptor
        track.uuid = next(self._ids)
        if is_process:
            track.process.pid = track.uuid
            track.process.process_name = name
        else:
            track.name, track.parent_uuid = name, parent
        if is_counter:
            track.counter.SetInParent()
        return int(track.uuid)

    def _event(self, record: ScenarioRecord, track: int, at: float) -> TrackEvent:
        packet = self.builder.add_packet()
        packet.timestamp = round((record.began + at) * 1e9)
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.track_event.track_uuid = track
        return packet.track_event

    def _slice(
        self,
        record: ScenarioRecord,
        track: int,
        name: str,
        span: tuple[float, float],
        notes: dict[str, str],
        *,
        ends: Iterable[int] = (),
    ) -> None:
        event = self._event(record, track, span[0])
        event.type, event.name = TrackEvent.TYPE_SLICE_BEGIN, name
        event.terminating_flow_ids.extend(ends)
        _annotate(event, notes)
        event = self._event(record, track, span[1])
        event.type = TrackEvent.TYPE_SLICE_END

    def _instant(
        self, record: ScenarioRecord, track: int, name: str, at: float, notes: dict[str, str], *, begins: Iterable[int]
    ) -> None:
        event = self._event(record, track, at)
        event.type, event.name = TrackEvent.TYPE_INSTANT, name
        event.flow_ids.extend(begins)
        _annotate(event, notes)


def _rows(intervals: Iterable[tuple[Life, float, float]]) -> Iterator[tuple[int, Life]]:
    """Yield each pod with the lowest row that is free during its interval."""
    found = list(intervals)
    for (life, _, _), parts in zip(found, place([(began, until, 1.0) for _, began, until in found]), strict=True):
        yield int(parts[0][0]), life


def _annotate(event: TrackEvent, notes: dict[str, str]) -> None:
    for name, value in notes.items():
        note = event.debug_annotations.add()
        note.name, note.string_value = name, value
