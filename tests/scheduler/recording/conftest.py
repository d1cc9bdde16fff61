"""Record short histories of a test world in the way in which the live scheduler does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from schedspec.scheduler.decide import decide
from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.framework.work import UNLIMITED
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.state_kinds import STATE_KINDS
from schedspec.scheduler.policy.loader import load_policy
from schedspec.scheduler.recording.events import (
    Assumed,
    Decided,
    Input,
    ObjectGone,
    ObjectSeen,
    PolicyLoaded,
    apply_input,
)
from schedspec.scheduler.recording.segments import SegmentWriter
from tests.support.core.notation import EPOCH, Notation, Object

POLICY = """
actions: "enqueue, allocate, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
"""


class Scheduler:
    """The live scheduler without an API server: it applies and records inputs, decides, and assumes the decisions."""

    def __init__(self, directory: Path, **recorder: int) -> None:
        self.cluster = Cluster()
        self.recorder = SegmentWriter(directory, **recorder)
        self.notation = Notation()
        self.number = 0
        self.budget = UNLIMITED

    def apply(self, given: Input) -> None:
        apply_input(self.cluster, given)
        self.recorder.write(given)

    def show(self, table: dict[str, Any]) -> None:
        for kind, item in self.notation.objects(table):
            self.add(kind, item)

    def add(self, kind: str, item: Object) -> None:
        self.apply(ObjectSeen(kind, msgspec.convert(item, STATE_KINDS[kind].struct)))

    def delete(self, kind: str, key: str) -> None:
        self.apply(ObjectGone(kind, key))

    def cycle(self) -> Decisions:
        if self.recorder.wants_checkpoint:
            self.recorder.checkpoint(self.cluster, PolicyLoaded("conf", POLICY))
        self.number += 1
        now = EPOCH + 1000.0 + self.number
        decisions = decide(self.cluster, load_policy(POLICY, "conf"), now, budget=self.budget)
        self.apply(Decided(self.number, now, decisions, self.budget))
        for bind in decisions.binds:
            self.apply(Assumed(bind.task, bind.uid, bind.node))
        for evict in decisions.evictions:
            self.apply(Assumed(evict.task, evict.uid))
        return decisions


@pytest.fixture
def scheduler(tmp_path: Path) -> Callable[..., Scheduler]:
    def make(**recorder: int) -> Scheduler:
        return Scheduler(tmp_path / "record", **recorder)

    return make


@pytest.fixture
def reclaimed(scheduler: Callable[..., Scheduler]) -> Path:
    """Record three cycles: queue b fills the node, queue a reclaims two cards for its gang, the gang is bound."""
    live = scheduler()
    live.show({"nodes": [{"name": "n1", "has": "4 gpu"}]})
    live.show({"queues": [{"name": "a", "deserved": "2 gpu"}, {"name": "b", "deserved": "2 gpu"}]})
    live.show({"jobs": [{"name": "old", "queue": "b", "min": 1, "tasks": "4 x 1 gpu running on n1"}]})
    live.cycle()
    live.show({"jobs": [{"name": "new", "queue": "a", "tasks": "2 x 1 gpu", "phase": "Inqueue"}]})
    live.show({"jobs": [{"name": "more", "queue": "a", "tasks": "1 x 1 gpu", "phase": "Inqueue"}]})
    for evict in live.cycle().evictions:
        live.delete("Pod", evict.task)
    live.cycle()
    live.recorder.close()
    return live.recorder.directory
