"""Run one shard of a suite (`--shard`), and record each scenario's duration to balance the shards of the next run."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import msgspec
import pytest

from . import sharding


class Sharding:
    """Deselects the scenarios of other shards; writes the shard's facts and durations into `out`.

    Args:
        writes: Write the shard's facts: True in one process only, because all workers of xdist collect the same.
    """

    def __init__(
        self,
        out: Path,
        shard: sharding.Shard | None,
        durations: dict[str, float],
        *,
        writes: bool,
        measures: bool,
    ) -> None:
        self._out, self._shard, self._durations = out, shard, durations
        self._writes, self._measures = writes, measures
        self._seconds: dict[str, float] = defaultdict(float)
        self._emptied = False

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Split the scenarios that `-k` and `-m` have selected into shards, and keep this shard's scenarios."""
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
        """Add up a scenario's duration: cluster, sentences and clean-up."""
        if self._measures:
            self._seconds[report.nodeid] += report.duration

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the durations that a later `--shard-durations` reads. An empty shard is no failure."""
        if self._seconds:
            self._write(sharding.DURATIONS_FILE, {key: round(took, 2) for key, took in sorted(self._seconds.items())})
        if self._emptied and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            session.exitstatus = pytest.ExitCode.OK

    def _write(self, name: str, content: object) -> None:
        self._out.mkdir(parents=True, exist_ok=True)
        text = msgspec.json.format(msgspec.json.encode(content), indent=1)
        (self._out / name).write_bytes(text + b"\n")
