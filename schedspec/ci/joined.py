"""Join the results of a run, or of all shards of a run, from their `results.json` and the facts of each shard.

The files may come from other machines. They are read with size limits, and an error names the file that exceeds one.
This module depends neither on pytest nor on GitHub.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..api import untrusted
from ..api.errors import HarnessError
from ..results import FILE, Result, RunResults, read_all
from .sharding import SHARD_FILE, ShardFacts


class ResultsError(HarnessError):
    """There are no results, or they are not exactly those of one complete run."""


@dataclass(frozen=True, slots=True)
class Suite:
    """All results of a run, or of all shards of a run."""

    results: tuple[Result, ...]

    @property
    def passed(self) -> list[Result]:
        return [result for result in self.results if result.verdict == "passed"]

    @property
    def bad(self) -> list[Result]:
        """The results of scenarios that failed or could not be judged."""
        return [result for result in self.results if result.verdict in ("failed", "error")]

    @property
    def skipped(self) -> list[Result]:
        """The results of scenarios that were not run, or that failed with an expected difference."""
        return [result for result in self.results if result.verdict in ("skipped", "lacks", "known", "by design")]

    @property
    def seconds(self) -> float:
        """The sum of the durations. Shards run in parallel, so their wall-clock time is shorter."""
        return sum(result.seconds for result in self.results)

    @property
    def verdict(self) -> str:
        """`passed`, `failed`, or `empty` if no scenario was judged."""
        return "failed" if self.bad else "passed" if self.passed else "empty"


def suite_of(runs: Iterable[RunResults]) -> Suite:
    """Return the results of these runs, with tests that are no scenarios and files that could not be collected."""
    return Suite(tuple(row for run in runs for row in (*run.results, *run.others)))


def read(folders: Sequence[Path]) -> Suite:
    """Return the results below these folders.

    Raises:
        ResultsError: There are none, a file cannot be read, or a shard is missing or present twice.
    """
    runs = list(read_all(folders))
    if not runs:
        raise ResultsError(f"no {FILE} found in: {', '.join(map(str, folders))}")
    require_whole(facts for folder in folders for facts in _shards(folder))
    return suite_of(runs)


def require_whole(shards: Iterable[ShardFacts]) -> None:
    """Check that every shard of one suite is present exactly once; a suite without shards passes.

    Raises:
        ResultsError: A shard is missing or duplicated, or the shards belong to different suites.
    """
    found = list(shards)
    if not found:
        return
    suites = {(shard.of, shard.suite) for shard in found}
    if len(suites) > 1:
        several = ", ".join(f"{shard.shard}/{shard.of} of suite {shard.suite}" for shard in found)
        raise ResultsError(
            f"these are shards of different suites: {several}\n"
            "  do next: run all shards of one commit, with the same durations file and the same selection"
        )
    present = sorted(shard.shard for shard in found)
    wanted = list(range(1, found[0].of + 1))
    if present != wanted:
        missing = [str(number) for number in wanted if number not in present]
        duplicates = sorted({str(number) for number in present if present.count(number) > 1})
        what = [f"missing: {', '.join(missing)}"] if missing else []
        what += [f"present more than once: {', '.join(duplicates)}"] if duplicates else []
        raise ResultsError(f"each of the {found[0].of} shards must be present exactly once; {'; '.join(what)}")


def _shards(folder: Path) -> Iterator[ShardFacts]:
    for file in sorted(folder.rglob(SHARD_FILE)):
        yield untrusted.decode(file, untrusted.read_bytes(file), ShardFacts, "the facts of a shard")
