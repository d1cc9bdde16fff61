"""Split one suite over several machines so that all shards take about the same time.

Every scenario is in exactly one shard, on every machine with the same scenarios and the same durations: the split does
not depend on the machine, its clock or the order in which files are found.

pytest-split does the same, but needs its own store of durations and adds a plugin to every run of pytest. One greedy
pass over the durations that our runs write anyway is enough.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import msgspec

SHARD_FILE = "shard.json"
DURATIONS_FILE = "durations.json"
MAX_SHARDS = 10_000


class ShardError(ValueError):
    """`--shard` or its durations cannot be read. The text shows the correct form."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Shard `number` of `of`, counted from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class ShardFacts(msgspec.Struct, frozen=True):
    """The facts that a shard writes beside its results, so that joining the results detects missing shards."""

    shard: Annotated[int, msgspec.Meta(ge=1, le=MAX_SHARDS)]
    of: Annotated[int, msgspec.Meta(ge=1, le=MAX_SHARDS)]
    suite: Annotated[str, msgspec.Meta(max_length=64)]
    """A checksum of the suite's scenarios and of their shards; equal for all shards of a suite."""
    scenarios: int
    """The number of scenarios of this shard."""


def parse(text: str) -> Shard:
    """Parse a shard such as `2/5`.

    Raises:
        ShardError: The text is not a shard.
    """
    number, slash, of = text.partition("/")
    if not (slash and _is_number(number) and _is_number(of) and 1 <= int(number) <= int(of)):
        raise ShardError("is not a shard: write, for instance, 2/5, the second of five")
    return Shard(int(number), int(of))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= MAX_SHARDS


def read_durations(path: Path) -> dict[str, float]:
    """Return seconds by node id, read from the `durations.json` of a run.

    Raises:
        ShardError: The file cannot be read or does not contain durations.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, float])
    except msgspec.DecodeError as problem:
        raise ShardError(f"is not a file of durations: {problem}") from None
    except OSError as problem:
        raise ShardError(f"cannot be read: {problem.strerror}") from None


def split(names: Sequence[str], of: int, seconds: Mapping[str, float]) -> list[list[str]]:
    """Split the names into `of` shards: assign each name, the longest first, to the shard with the least total so far.

    A name without a duration counts as the median of the known durations.
    """
    median = statistics.median(known) if (known := [seconds[name] for name in names if name in seconds]) else 1.0
    shards: list[list[str]] = [[] for _ in range(of)]
    loads = [0.0] * of
    for name in sorted(names, key=lambda name: (-seconds.get(name, median), name)):
        least = min(range(of), key=lambda at: (loads[at], len(shards[at]), at))
        shards[least].append(name)
        loads[least] += seconds.get(name, median)
    return shards


def facts(shard: Shard, shards: Sequence[Sequence[str]]) -> ShardFacts:
    """Return the facts that this shard writes."""
    suite = hashlib.sha256("\0".join("\n".join(sorted(names)) for names in shards).encode()).hexdigest()[:16]
    return ShardFacts(shard.number, shard.of, suite, len(shards[shard.number - 1]))
