"""The part of the plugin for many machines: `--shard`, and how long each scenario took, for the next run's shards."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

from . import sharding


class Sharding:
    """Leaves the scenarios of one shard, and writes what it left and how long each took into `out`.

    `writes` is False on all but one of the workers of xdist, which all collect the same.
    """

    def __init__(
        self, out: Path, shard: sharding.Shard | None, durations: dict[str, float], *, writes: bool, measures: bool
    ) -> None:
        self._out, self._shard, self._durations = out, shard, durations
        self._writes, self._measures = writes, measures
        self._seconds: dict[str, float] = defaultdict(float)
        self._emptied = False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """After -k and -m: what is left of the suite is what is shared out."""
        if self._shard is None:
            return
        shards = sharding.split([item.nodeid for item in items], self._shard.of, self._durations)
        own = set(shards[self._shard.number - 1])
        others = [item for item in items if item.nodeid not in own]
        self._emptied = bool(items) and not own
        items[:] = [item for item in items if item.nodeid in own]
        config.hook.pytest_deselected(items=others)
        if self._writes:
            self._write(sharding.SHARD_FILE, sharding.facts(self._shard, shards))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A scenario takes as long as its cluster, its sentences and its clean-up."""
        if self._measures:
            self._seconds[report.nodeid] += report.duration

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """The file that a later `--shard-durations` reads; and a shard that got nothing is no failure."""
        if self._seconds:
            self._write(sharding.DURATIONS_FILE, {key: round(took, 2) for key, took in sorted(self._seconds.items())})
        if self._emptied and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK

    def _write(self, name: str, content: object) -> None:
        self._out.mkdir(parents=True, exist_ok=True)
        text = msgspec.json.format(msgspec.json.encode(content), indent=1)
        (self._out / name).write_bytes(text + b"\n")
