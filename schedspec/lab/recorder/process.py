"""The recorder as a process: it reads a cluster until a signal ends it, and serves health and metrics."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ...scheduler.inputs import Input, PolicyLoaded
from ...scheduler.kube import Client, Http, connect_as_kubectl
from ...scheduler.live.server import METRICS, Endpoint, ListenError, Server, text
from ...schedulers import Adapter
from .judge import Finding, Judge
from .versions import VersionReader
from .watch import FLUSH, Recorder, Sink
from .writer import FolderError, VersionWriter

AGENT = "schedspec-record"
_IN_FLIGHT = 8
_HUNG = 60.0
"""Seconds without a flush after which the process is not healthy."""


@dataclass(frozen=True, slots=True)
class RecordOptions:
    out: Path
    keep: float
    """Seconds."""
    most: int
    """Bytes."""
    kubeconfig: Path | None = None
    context: str | None = None
    policy: PolicyLoaded | None = None
    redacted: Callable[[Input], Input] | None = None
    is_judged: bool = False
    adapter: Adapter | None = None
    """The scheduler whose monitors judge; None: the one whose objects the cluster has."""
    listen: tuple[str, int] | None = None


class SteadyClock:
    """The time in seconds since 1970, which goes on at its rate if the machine's clock is set back."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._at, self._since = wall(), steady()

    def __call__(self) -> float:
        now = self._steady()
        self._at, self._since = max(self._wall(), self._at + now - self._since), now
        return self._at


class Tally:
    """Counts what a judge finds, by monitor and queue."""

    def __init__(self, options: RecordOptions) -> None:
        self.findings: Counter[tuple[str, str]] = Counter()
        self.judge = Judge(self._count)
        named = None if options.policy is None else options.policy.text
        self._reader = VersionReader(self.judge, options.adapter, named)

    def read(self, at: float, given: Input) -> None:
        self._reader.read(at, given)

    def _count(self, finding: Finding) -> None:
        self.findings[finding.monitor, finding.queue] += 1
        sys.stdout.write(f"{finding.line}\n")
        sys.stdout.flush()


class RecorderMetrics(Collector):
    """The metrics of a recorder. A scrape reads the counters of its parts, in the server's thread."""

    def __init__(self, recorder: Recorder, writer: VersionWriter, tally: Tally | None) -> None:
        self._recorder, self._writer, self._tally = recorder, writer, tally
        self._registry = CollectorRegistry(auto_describe=True)
        self._registry.register(self)

    def render(self) -> bytes:
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        for name, help_, number in (
            ("versions", "Versions that were recorded", self._recorder.versions),
            ("gaps", "Gaps of single kinds that were recorded", self._recorder.gaps),
            ("unreadable_objects", "Versions that are left out because they cannot be read", self._recorder.unreadable),
        ):
            yield CounterMetricFamily(f"schedspec_recorder_{name}", help_, number)
        size = "Bytes of all segments"
        yield GaugeMetricFamily("schedspec_recorder_size_bytes", size, self._writer.bytes)
        age = max(time.time() - self._writer.at, 0.0)
        yield GaugeMetricFamily("schedspec_recorder_age_seconds", "Seconds since the last line", age)
        if self._tally is not None:
            what = "What monitors found, by monitor and queue"
            found = CounterMetricFamily("schedspec_findings", what, labels=["monitor", "queue"])
            for labels, number in sorted(self._tally.findings.copy().items()):
                found.add_metric(labels, number)
            yield found


def endpoints(recorder: Recorder, writer: VersionWriter, metrics: RecorderMetrics) -> Mapping[str, Endpoint]:
    def healthz() -> tuple[int, str, bytes]:
        late = time.time() - writer.at
        hangs = recorder.begun.is_set() and late > _HUNG
        return text(503, f"no line for {late:.0f} s") if hangs else text(200, "ok")

    def readyz() -> tuple[int, str, bytes]:
        problems = [] if recorder.begun.is_set() else ["the recording has not begun", *recorder.silent]
        return text(503, "; ".join(problems)) if problems else text(200, "ok")

    return {
        "/healthz": lambda _query: healthz(),
        "/readyz": lambda _query: readyz(),
        "/metrics": lambda _query: (200, METRICS, metrics.render()),
    }


async def record(options: RecordOptions) -> int:
    """Record until SIGTERM or SIGINT.

    Raises:
        ConfigError: no cluster can be reached by this configuration.
        FolderError: the folder cannot be used, or not in these bounds.
        ListenError: the address cannot be used.
    """
    connection = connect_as_kubectl(options.kubeconfig, options.context)
    clock = SteadyClock()
    writer = VersionWriter(options.out, options.keep, options.most, clock)
    tally = Tally(options) if options.is_judged else None
    sink: Sink = tally.read if tally is not None else lambda _at, _given: None
    http = Http(connection, _IN_FLIGHT, agent=AGENT, may_write=lambda: False)
    recorder = Recorder(Client(http), writer, clock, redacted=options.redacted, policy=options.policy, sink=sink)
    server = None
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    work, stopped, ready = (
        asyncio.create_task(recorder.run()), asyncio.create_task(stopping.wait()),
        asyncio.create_task(_tell(recorder, options.out, connection.netloc)),
    )  # fmt: skip
    try:
        if options.listen is not None:
            server = Server(*options.listen, endpoints(recorder, writer, RecorderMetrics(recorder, writer, tally)))
            sys.stdout.write(f"listening on {server.address}\n")
            sys.stdout.flush()
            server.start()
        await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            work.result()
        return 0
    except ExceptionGroup as problems:  # of the recorder's tasks
        full = problems.subgroup(FolderError)
        raise (full.exceptions[0] if full is not None else problems) from None
    finally:
        for task in (work, stopped, ready):
            task.cancel()
        await asyncio.gather(work, stopped, ready, return_exceptions=True)
        recorder.close()
        if server is not None:
            server.close()
        await http.close()


async def _tell(recorder: Recorder, out: Path, source: str) -> None:
    """Print when the recording has begun, and why it has not yet."""
    with suppress(asyncio.CancelledError):
        while True:
            try:
                async with asyncio.timeout(10 * FLUSH):
                    await recorder.begun.wait()
            except TimeoutError:
                sys.stderr.write(f"{source}: not yet recorded: {'; '.join(recorder.missing[:3]) or 'no answer'}\n")
                continue
            sys.stdout.write(f"recording {source} into {out}\n")
            for missing in recorder.missing:
                sys.stdout.write(f"  without {missing}\n")
            sys.stdout.flush()
            return


__all__ = ["ListenError", "RecordOptions", "record"]
