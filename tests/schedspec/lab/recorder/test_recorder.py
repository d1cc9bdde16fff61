"""A recorder follows a cluster through deaths, new lists, outages and hostile objects; what it missed is marked."""

from __future__ import annotations

import asyncio
import gzip
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from schedspec.lab.recorder.writer import VersionWriter
from schedspec.scheduler.inputs import Gap, ObjectSeen, Taken
from schedspec.scheduler.kube import Client, Unreachable
from schedspec.scheduler.kube.errors import Forbidden, Gone
from schedspec.virtual.cluster.virtual_cluster import VirtualHttp
from schedspec.virtual.state import State, read_state
from schedspec.virtual.state.dump import take_state
from schedspec.virtual.state.over_time import inputs_over_time, segments_over_time, span_of
from tests.schedspec.lab.recorder.recorded_cluster import SPACE, RecordedCluster, recorded


def seen(folder: Path, kind: str = "Pod") -> list[tuple[float, Any]]:
    return [(at, it.object) for at, it in inputs_over_time(folder) if isinstance(it, ObjectSeen) and it.kind == kind]


def gaps(folder: Path, kind: str | None = None) -> list[Gap]:
    found = (it for _, it in inputs_over_time(folder) if isinstance(it, Gap))
    return [gap for gap in found if kind is None or gap.kind == kind]


def text_of(folder: Path) -> str:
    return "".join(gzip.decompress(path.read_bytes()).decode() for path in segments_over_time(folder))


def dumped(cluster: RecordedCluster) -> State:
    async def take() -> State:
        return await take_state(Client(VirtualHttp(cluster.cluster._server)), "here")  # type: ignore[arg-type]

    return cluster.cluster._loop.run_until_complete(take())


# ------------------------------------------------------------------------------------------------------------- states


def test_the_state_at_any_time_is_what_a_dump_would_have_read_then(tmp_path: Path) -> None:
    draw, dumps = random.Random(55), []
    with recorded(tmp_path, scheduler="schedspec") as cluster:
        for number in range(25):
            match draw.randrange(5):
                case 0 | 1:
                    cluster.group(f"g{number}", draw.choice(["online", "batch"]), 2)
                    for index in range(2):
                        cluster.pod(f"g{number}-{index}", f"g{number}", draw.randint(1, 3))
                case 2:
                    cluster.node(f"node-{number}", draw.randint(1, 8))
                case 3:
                    cluster.queue(f"q{number}", deserved={"cpu": str(draw.randint(1, 4))})
                case 4:
                    pods = dumped(cluster).objects["Pod"]
                    if pods:
                        cluster.call("DELETE", f"/api/v1/namespaces/{SPACE}/pods/{min(pods).rpartition('/')[2]}", {})
            cluster.advance(draw.uniform(1.0, 20.0))
            if number == 12:
                cluster.kill()
                cluster.advance(7.0)
                cluster.record()
            dumps.append((cluster.now, dumped(cluster)))
            cluster.advance(0.5)
    assert len({dump.digest for _, dump in dumps}) > 15
    for at, dump in dumps:
        state = read_state(tmp_path, at)
        dump.policy = state.policy  # a dump reads it from a ConfigMap
        assert state.objects == dump.objects
        assert state.digest == dump.digest


def test_a_state_within_a_gap_says_so(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        cluster.advance(5.0)
        cluster.kill()
        killed = cluster.now
        cluster.advance(60.0)
        cluster.record()
    state = read_state(tmp_path, killed + 30.0)
    assert any("the recorder did not run" in note for note in state.notes)
    assert read_state(tmp_path, killed - 1.0).notes == []


@pytest.mark.parametrize("seconds", [-1.0, 1e6])
def test_a_time_outside_of_a_recording_is_refused(tmp_path: Path, seconds: float) -> None:
    with recorded(tmp_path):
        pass
    with pytest.raises(ValueError, match="has no state at"):
        read_state(tmp_path, span_of(tmp_path)[0] + seconds)


# ------------------------------------------------------------------------------------------------------ deaths, outages


def test_of_ten_deaths_nothing_is_lost_but_what_is_marked(tmp_path: Path) -> None:
    draw, made = random.Random(10), {}
    with recorded(tmp_path) as cluster:
        for death in range(10):
            for number in range(draw.randint(1, 6)):
                name = f"pod-{death}-{number}"
                made[name] = cluster.now
                cluster.runs(name, "", "n1", 0)
                cluster.advance(draw.uniform(0.0, 2.0))
            cluster.kill()
            name = f"pod-{death}-unseen"
            made[name] = cluster.now
            cluster.runs(name, "", "n1", 0)
            cluster.call("DELETE", f"/api/v1/namespaces/{SPACE}/pods/{name}", {"gracePeriodSeconds": 0})
            cluster.advance(draw.uniform(1.0, 30.0))
            cluster.record()
    first = {}
    for at, pod in seen(tmp_path):
        first.setdefault(pod.metadata.name, at)
    marked = gaps(tmp_path)
    assert len(marked) == 10
    for name, at in made.items():
        is_marked = any(gap.since <= at <= gap.until for gap in marked)
        assert is_marked or abs(first[name] - at) < 0.1
        assert not name.endswith("unseen") or is_marked


def test_an_orderly_end_and_a_new_start_mark_the_time_between(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        cluster.advance(5.0)
        cluster.stop()
        ended = cluster.now
        cluster.advance(20.0)
        cluster.record()
    [gap] = gaps(tmp_path)
    assert abs(gap.since - ended) < 0.01
    assert gap.until > ended + 20.0


class Faulty(VirtualHttp):
    """An API server whose answers fail as the test says, and whose watches the test breaks."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.fault: Callable[[str], Exception | None] = lambda _path: None
        self.broken = asyncio.Event()

    def check(self, path: str) -> None:
        if (error := self.fault(path)) is not None:
            raise error

    async def request(self, method: str, path: str, *given: Any, **more: Any) -> Any:
        self.check(path)
        return await super().request(method, path, *given, **more)

    @asynccontextmanager
    async def stream(self, path: str, **more: Any) -> AsyncIterator[AsyncIterator[bytes]]:
        self.check(path)
        async with super().stream(path, **more) as pieces:
            yield self._until_broken(pieces, self.broken)

    async def _until_broken(self, pieces: AsyncIterator[bytes], broken: asyncio.Event) -> AsyncIterator[bytes]:
        async for piece in pieces:
            if broken.is_set():
                raise Unreachable("watch", "connection reset", sent=True)
            yield piece

    def break_watches(self) -> None:
        self.broken.set()
        self.broken = asyncio.Event()
        for changes in self._streams:
            changes.put_nowait(b"")  # wakes the reader


@pytest.fixture(autouse=True)
def _faulty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.schedspec.lab.recorder.recorded_cluster.VirtualHttp", Faulty)


def server_of(cluster: RecordedCluster) -> Faulty:
    assert cluster.recorder is not None
    http: Any = cluster.recorder._client.http
    assert isinstance(http, Faulty)
    return http


def watch_of(plural: str, error: Exception) -> Callable[[str], Exception | None]:
    return lambda path: error if f"/{plural}?" in path and "watch=" in path else None


def test_a_version_that_the_server_no_longer_has_is_a_gap_of_its_kind(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        cluster.runs("before", "", "n1", 1)
        server = server_of(cluster)
        server.fault = watch_of("pods", Gone("watch", 410, "Expired", "too old"))
        server.break_watches()
        cluster.runs("unseen", "", "n1", 1)
        made = cluster.now
        cluster.call("DELETE", f"/api/v1/namespaces/{SPACE}/pods/unseen", {"gracePeriodSeconds": 0})
        cluster.advance(2.0)
        server.fault = lambda _path: None
        cluster.runs("after", "", "n1", 1)
        cluster.advance(5.0)
    lost = [gap for gap in gaps(tmp_path, "pods") if gap.is_lost]
    assert "unseen" in {pod.metadata.name for _, pod in seen(tmp_path)} or any(
        gap.since <= made <= gap.until for gap in lost
    )
    assert lost
    assert gaps(tmp_path, "nodes") == []
    assert {"before", "after"} <= {pod.metadata.name for _, pod in seen(tmp_path)}


def test_an_outage_without_a_loss_is_marked_as_late(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        cluster.runs("before", "", "n1", 1)
        server, heard = server_of(cluster), cluster.now
        server.fault = watch_of("pods", Unreachable("watch", "connection refused", sent=False))
        server.break_watches()
        cluster.runs("meanwhile", "", "n1", 1)
        made = cluster.now
        cluster.advance(30.0)
        server.fault = lambda _path: None
        cluster.advance(60.0)
    [gap] = gaps(tmp_path, "pods")
    assert not gap.is_lost
    assert gap.since <= heard <= made <= gap.until
    assert "connection re" in gap.why
    assert "meanwhile" in {pod.metadata.name for _, pod in seen(tmp_path)}


def test_a_broken_watch_that_continues_at_once_is_no_gap(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        for number in range(10):
            cluster.runs(f"pod-{number}", "", "n1", 0)
            server_of(cluster).break_watches()
            cluster.advance(0.5)
    assert gaps(tmp_path) == []
    assert len({pod.metadata.name for _, pod in seen(tmp_path)}) == 10


def test_an_interruption_of_a_second_is_no_gap(tmp_path: Path) -> None:
    with recorded(tmp_path) as cluster:
        for number in range(10):
            cluster.runs(f"pod-{number}", "", "n1", 0)
            server = server_of(cluster)
            server.fault = watch_of("pods", Unreachable("watch", "connection refused", sent=False))
            server.break_watches()
            cluster.advance(0.4)
            server.fault = lambda _path: None
            cluster.advance(0.1)
    assert gaps(tmp_path, "pods") == []


def test_a_recorder_that_finds_no_server_waits_for_it(tmp_path: Path) -> None:
    cluster = RecordedCluster(tmp_path)
    try:
        cluster.node("n1", 8)
        refused = Unreachable("list", "connection refused", sent=False)
        cluster.start()
        server_of(cluster).fault = lambda _path: refused
        cluster.advance(300.0)
        assert segments_over_time(tmp_path) == []
        server_of(cluster).fault = lambda _path: None
        cluster.advance(60.0)
        assert [node.metadata.name for node in read_state(tmp_path).objects["Node"].values()] == ["n1"]
    finally:
        cluster.close()
    assert gaps(tmp_path) == []


def test_a_kind_that_may_not_be_read_is_named_and_the_rest_recorded(tmp_path: Path) -> None:
    cluster = RecordedCluster(tmp_path)
    try:
        cluster.node("n1", 8)
        cluster.start()
        forbidden = Forbidden("list", 403, "Forbidden", "no right")
        server_of(cluster).fault = lambda path: forbidden if "persistentvolumes" in path else None
        cluster.advance(90.0)
    finally:
        cluster.close()
    [taken] = [it for _, it in inputs_over_time(tmp_path) if isinstance(it, Taken)]
    assert [note.partition(" are ")[0] for note in taken.notes] == ["persistentvolumes"]


def test_a_full_disk_pauses_the_recording_with_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Gap] = []
    with recorded(tmp_path) as cluster:
        assert cluster.recorder is not None
        cluster.recorder._sink = lambda _at, given: told.append(given) if isinstance(given, Gap) else None
        cluster.runs("before", "", "n1", 1)

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(VersionWriter, "flush", full)
            patch.setattr(VersionWriter, "begin", full)
            cluster.advance(5.0)
            cluster.runs("meanwhile", "", "n1", 1)
            made = cluster.now
        cluster.advance(5.0)
        cluster.runs("after", "", "n1", 1)
    [gap] = gaps(tmp_path)
    assert gap.since <= made <= gap.until
    assert [(one.kind, one.until) for one in told] == [("", gap.until)]
    assert {pod.metadata.name for _, pod in seen(tmp_path)} == {"before", "meanwhile", "after"}
