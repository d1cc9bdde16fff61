"""What came of a run, read from what it has written: JUnit files, and what each shard says of itself.

Nothing here knows pytest, nor GitHub.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

import msgspec

from ..api.errors import HarnessError
from .sharding import SHARD_FILE, ShardFacts

Verdict = Literal["passed", "failed", "error", "skipped"]
PLACE = "schedspec-place"
"""The property of a test case that says where its scenario stands: `path:line`."""
LINK = "schedspec-report"
"""The property that says where the report shows it: `page#anchor`."""
_PLACE = re.compile(r"(?P<path>[^\n:]+\.feature):(?P<line>\d+): (?P<text>.*)")
_TAGS: dict[str, Verdict] = {"failure": "failed", "error": "error", "skipped": "skipped"}


class ResultsError(HarnessError):
    """There are no results, or they are not those of one whole run."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a feature file, with what is to be said of it."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Case:
    """One scenario, or one file that could not be collected."""

    name: str
    group: str
    """The feature file, where it is known; else the JUnit class."""
    verdict: Verdict
    seconds: float
    text: str
    """Why it failed, as pytest has printed it; empty for what passed."""
    places: tuple[Place, ...]
    """The lines that the text blames, the first one first."""
    anchor: str = ""
    """Of its section in the report's page, which is that of its record; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Results:
    """A run, or all shards of one."""

    cases: tuple[Case, ...]

    def count(self, verdict: Verdict) -> int:
        """How many scenarios ended so."""
        return sum(case.verdict == verdict for case in self.cases)

    @property
    def bad(self) -> list[Case]:
        """What failed or could not be judged."""
        return [case for case in self.cases if case.verdict in ("failed", "error")]

    @property
    def seconds(self) -> float:
        """The time of all cases; of shards, not the time that somebody waited."""
        return sum(case.seconds for case in self.cases)

    @property
    def verdict(self) -> str:
        """`passed`, `failed`, or `empty` where nothing was judged."""
        if self.bad:
            return "failed"
        return "passed" if self.count("passed") else "empty"


def read(paths: Sequence[Path]) -> Results:
    """The results below these folders, or in these JUnit files.

    Raises ResultsError: there are none, a file cannot be read, or of a suite in shards not every shard is there once.
    """
    files = [file for path in paths for file in ([path] if path.is_file() else sorted(path.rglob("*.xml")))]
    cases = [case for file in files for case in _cases(file)]
    if not files:
        raise ResultsError(f"no JUnit file is there: {', '.join(map(str, paths))}")
    require_whole(facts for path in paths if path.is_dir() for facts in _shards(path))
    return Results(tuple(cases))


def require_whole(shards: Iterable[ShardFacts]) -> None:
    """Every shard of the same suite is there, each once; nothing to say where none is. Raises ResultsError."""
    found = list(shards)
    if not found:
        return
    suites = {(it.of, it.suite) for it in found}
    if len(suites) > 1:
        several = ", ".join(f"{it.shard}/{it.of} of suite {it.suite}" for it in found)
        raise ResultsError(
            f"these are shards of different suites: {several}\n"
            "  do next: run all shards of one commit, with the same durations file and the same selection"
        )
    here = sorted(it.shard for it in found)
    wanted = list(range(1, found[0].of + 1))
    if here != wanted:
        missing = [str(number) for number in wanted if number not in here]
        twice = sorted({str(number) for number in here if here.count(number) > 1})
        what = [f"missing: {', '.join(missing)}"] if missing else []
        what += [f"there more than once: {', '.join(twice)}"] if twice else []
        raise ResultsError(f"not every shard of {found[0].of} is there once; {'; '.join(what)}")


def _shards(folder: Path) -> Iterator[ShardFacts]:
    for file in sorted(folder.rglob(SHARD_FILE)):
        try:
            yield msgspec.json.decode(file.read_bytes(), type=ShardFacts)
        except msgspec.DecodeError as problem:
            raise ResultsError(f"{file}: {problem}") from None


def _cases(file: Path) -> Iterator[Case]:
    try:
        root = ElementTree.parse(file).getroot()  # noqa: S314
    except (ElementTree.ParseError, OSError) as problem:
        raise ResultsError(f"{file}: {problem}") from None
    for case in root.iter("testcase"):
        yield _case(case)


def _case(case: ElementTree.Element) -> Case:
    found = [(_TAGS[child.tag], child) for child in case if child.tag in _TAGS]
    ended = {verdict for verdict, _ in found}  # a scenario that failed may also have left something behind
    order: tuple[Verdict, ...] = ("error", "failed", "skipped")
    verdict: Verdict = next((it for it in order if it in ended), "passed")
    text = "\n".join((child.text or child.get("message") or "").strip("\n") for _, child in found)
    said = {it.get("name"): it.get("value", "") for it in case.iter("property")}
    stands, anchor = said.get(PLACE, ""), said.get(LINK, "").partition("#")[2]
    name = case.get("name", "")
    places = [Place(it["path"], int(it["line"]), it["text"]) for it in _PLACE.finditer(text)]
    if not places and stands:
        path, _, line = stands.rpartition(":")
        places = [Place(path, int(line), next(iter(text.splitlines()), ""))]
    group = stands.rpartition(":")[0] or (name if name.endswith(".feature") else case.get("classname", ""))
    return Case(name, group, verdict, float(case.get("time") or 0), text, tuple(places), anchor)
