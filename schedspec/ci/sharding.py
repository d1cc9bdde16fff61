"""One suite on many machines: which scenarios a shard runs, so that all shards take about as long.

Every scenario is in exactly one shard, on every machine that sees the same scenarios and the same durations: nothing
here depends on the machine, its clock or the order in which files are found.

pytest-split does the same with a store of its own and a plugin for every pytest that it is installed beside; what we
need of it is one greedy pass over the durations that our runs write anyway.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

SHARD_FILE = "shard.json"
DURATIONS_FILE = "durations.json"


class ShardError(ValueError):
    """`--shard` or its durations cannot be read. The text says how they are written."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The `number`th of `of`, counted from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class ShardFacts(msgspec.Struct, frozen=True):
    """What a shard writes beside its results, so that joining them notices what is missing."""

    shard: int
    of: int
    suite: str
    """The same for all shards of a suite: a checksum of its scenarios and of who runs which."""
    scenarios: int
    """How many this shard has."""


def parse(text: str) -> Shard:
    """`2/5`. Raises ShardError."""
    number, slash, of = text.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise ShardError("is not a shard: write, for instance, 2/5, the second of five")
    return Shard(int(number), int(of))


def read_durations(path: Path) -> dict[str, float]:
    """Seconds by node id, as `durations.json` of a run has them. Raises ShardError."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, float])
    except msgspec.DecodeError as problem:
        raise ShardError(f"is not a file of durations: {problem}") from None
    except OSError as problem:
        raise ShardError(f"cannot be read: {problem.strerror}") from None


def split(names: Sequence[str], of: int, seconds: Mapping[str, float]) -> list[list[str]]:
    """The names in `of` shards: the longest first, each to the shard that has least to do.

    What has no duration counts as the median of what has one.
    """
    usual = statistics.median(known) if (known := [seconds[name] for name in names if name in seconds]) else 1.0
    shards: list[list[str]] = [[] for _ in range(of)]
    loads = [0.0] * of
    for name in sorted(names, key=lambda it: (-seconds.get(it, usual), it)):
        least = min(range(of), key=lambda at: (loads[at], len(shards[at]), at))
        shards[least].append(name)
        loads[least] += seconds.get(name, usual)
    return shards


def facts(shard: Shard, shards: Sequence[Sequence[str]]) -> ShardFacts:
    """What this shard says of itself."""
    suite = hashlib.sha256("\0".join("\n".join(sorted(names)) for names in shards).encode()).hexdigest()[:16]
    return ShardFacts(shard.number, shard.of, suite, len(shards[shard.number - 1]))
