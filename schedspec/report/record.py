"""The record of one scenario: everything that a report, a picture or an export of it needs, as one JSON document.

The one rule: whoever draws a page draws it from this document and from nothing else; so what is not here cannot be
shown. ``python -m schedspec.report.record`` prints the schema, ``docs/report.md`` explains it. All times are seconds of
one clock, which stands at 0 when the scenario's namespace is asked for; quantities are strings in the units of
:attr:`ScenarioRecord.units`.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from ..api.errors import HarnessError
from . import files

SCHEMA: Final = 2
"""Raised when a field changes its meaning or goes; a new field with a default does not raise it."""


class RecordError(HarnessError):
    """A file is no record, or of a schema that this version does not read."""


class Sentence(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step of the scenario, as written, and how it went."""

    keyword: str
    text: str
    line: int
    began: float = 0.0
    seconds: float = 0.0
    verdict: str = "skipped"
    """``passed``, ``failed``, or ``skipped``: one before it failed; its times are 0 then."""
    background: bool = False
    """It stands under ``Background`` of the feature or the Rule."""
    table: list[list[str]] = []
    """The rows under it, the header first."""
    doc: str = ""
    """The text block under it."""


class Moment(msgspec.Struct, frozen=True, omit_defaults=True):
    """One version of an object, reduced to what people look at; :mod:`schedspec.report.objects` says what that is."""

    at: float
    change: str
    """``was`` (there when the scenario began), ``added``, ``changed`` or ``gone``."""
    uid: str
    state: dict[str, Any]
    cleanup: bool = False
    """Seen while the harness took the scenario away: nobody's decision."""


class Story(msgspec.Struct, frozen=True, omit_defaults=True):
    """One object's versions, oldest first. A successor of the same name is in the same story, with another uid."""

    kind: str
    name: str
    moments: list[Moment]
    namespace: str = ""


class QueueMoment(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a queue held (summed from its pods) and said (its object) from a time on."""

    at: float
    queue: str
    held: dict[str, str] = {}
    deserved: dict[str, str] = {}
    capability: dict[str, str] = {}
    guarantee: dict[str, str] = {}
    card_quota: dict[str, str] = {}
    """How many cards of which model it may hold."""
    parent: str = ""


class ActMoment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A bind or an eviction; of an eviction all that the scheduler said about it."""

    at: float
    act: str
    """``bind`` or ``evict``."""
    pod: str
    uid: str
    node: str
    group: str = ""
    queue: str = ""
    amounts: dict[str, str] = {}
    """What the pod holds."""
    message: str = ""
    action: str = ""
    """``reclaim`` or ``preempt``."""
    preemptor: str = ""
    """The pod that takes the place."""
    preemptor_uid: str = ""
    preemptor_queue: str = ""
    inferred: bool = False
    """The scheduler did not say for whom: it is the next pod of another group that got to that node."""
    tier: int = 0
    """The policy's tier that decided, from 1; 0 if the scheduler did not say."""
    votes: dict[str, str] = {}
    """Plugin → ``permits`` or ``vetoes``."""
    whole_gang: bool = False


class Reason(msgspec.Struct, frozen=True):
    """What the scheduler published about something that waits."""

    at: float
    kind: str
    name: str
    message: str


class Judgement(msgspec.Struct, frozen=True):
    """A monitor's finding."""

    at: float
    monitor: str
    about: str
    text: str


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a scenario failed."""

    text: str
    """All of it."""
    expected: str = ""
    seen: str = ""
    waited: str = ""
    """How long, as a clause: ``within 20 s``."""


class Software(msgspec.Struct, frozen=True, omit_defaults=True):
    """A program that took part."""

    name: str
    version: str = ""
    parts: list[str] = []


class Span(msgspec.Struct, frozen=True):
    """A stretch of time."""

    began: float
    seconds: float


class Evicted(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was evicted against what it was evicted for."""

    pods: int = 0
    evicted: dict[str, str] = {}
    requested: dict[str, str] = {}
    """What the pods that it was for asked for, those that had a node already left out."""
    ratio: dict[str, float] = {}
    """Evicted to requested, by resource; 1 is exactly what was needed, 0.0 as ``requested`` is left out."""


class ScenarioRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario, whole."""

    schema: int = SCHEMA
    feature: str
    feature_file: str
    """Relative to the root of the run, with ``/``."""
    rule: str = ""
    scenario: str
    example: str = ""
    """Of an outline: the values of the row; of a scenario that is run several times: which run."""
    node_id: str
    """What pytest runs it by."""
    line: int
    tags: list[str] = []
    namespace: str = ""
    cluster: Software
    scheduler: Software
    policy: str
    policy_sha256: str
    began: float
    """When the clock stood at 0, in seconds since 1970."""
    seconds: float
    """Until all was said and judged."""
    boot_seconds: float = 0.0
    """Before 0: bringing up the cluster, if this scenario was its first."""
    cleanup: Span | None = None
    verdict: str
    """``passed``, ``failed``, ``skipped``, or ``known``: it failed as it is known to with this scheduler."""
    known: str = ""
    """The known difference."""
    failure: Failure | None = None
    sentences: list[Sentence] = []
    units: dict[str, str] = {}
    """Resource → unit of its quantities."""
    objects: list[Story] = []
    queues: list[QueueMoment] = []
    acts: list[ActMoment] = []
    evicted: Evicted = Evicted()
    reasons: list[Reason] = []
    findings: list[Judgement] = []
    monitors_off: list[str] = []
    recording: str = ""
    """Where the scheduler's own recording of its cycles is, if it kept one."""

    @property
    def title(self) -> str:
        """The scenario's name, with what it does not say itself of the row of its examples."""
        rest = [part for part in self.example.split("-") if part not in self.scenario]
        return f"{self.scenario} [{'-'.join(rest)}]" if rest else self.scenario

    @property
    def where(self) -> str:
        """`file:line` of the sentence that failed, else of the scenario."""
        line = next((said.line for said in self.sentences if said.verdict == "failed"), self.line)
        return f"{self.feature_file}:{line}"

    @property
    def headline(self) -> str:
        """Of a scenario that failed: what was seen, in one line; else empty."""
        if self.failure is None:
            return ""
        return (self.failure.seen or self.failure.text or "it failed").splitlines()[0]

    @property
    def anchor(self) -> str:
        """Its place in a report: the same in every run, for links from elsewhere."""
        path = Path(self.feature_file)
        return slug(f"{path.parent.name}-{path.stem}-{self.line}-{self.example}")


def slug(text: str) -> str:
    """Lower-case letters, digits and single dashes; a checksum in the place of letters that are not ASCII."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if text.isascii():
        return plain
    return f"{plain}-{hashlib.blake2b(text.encode(), digest_size=3).hexdigest()}".strip("-")


def digest(policy: str) -> str:
    """The checksum by which two records are known to be of one policy."""
    return hashlib.sha256(policy.encode()).hexdigest()


def write(record: ScenarioRecord, directory: Path) -> Path:
    """Write the record into a file named after feature, line and scenario; give its path. Raises OSError."""
    files.make_folder(directory)
    path = directory / f"{slug(f'{Path(record.feature_file).stem}-{record.line}-{record.title}')[:120]}.json"
    return files.write(path, msgspec.json.encode(record))


def read(path: Path) -> ScenarioRecord:
    """Raises RecordError, which says what to do."""
    raw = path.read_bytes()
    try:
        schema = msgspec.json.decode(raw, type=_Versioned).schema
        if schema != SCHEMA:
            raise RecordError(f"{path}: a record of schema {schema}; this version reads {SCHEMA}: run it again")
        return msgspec.json.decode(raw, type=ScenarioRecord)
    except msgspec.MsgspecError as problem:
        raise RecordError(f"{path}: not a record of a scenario: {problem}") from None


def read_all(directories: Iterable[Path]) -> Iterator[ScenarioRecord]:
    """Every record below these directories, each scenario once a cluster and scheduler, in their versions: of several
    runs of it the youngest.

    Raises RecordError.
    """
    found: dict[tuple[str, ...], ScenarioRecord] = {}
    for directory in directories:
        if not directory.is_dir():
            raise RecordError(f"{directory}: not a folder")
        for path in sorted(directory.glob(files.RECORDS)):
            record = read(path)
            environment = (record.cluster.name, record.cluster.version, record.scheduler.name, record.scheduler.version)
            key = (*environment, record.node_id)
            if key not in found or found[key].began < record.began:
                found[key] = record
    yield from found.values()


class _Versioned(msgspec.Struct):
    schema: int = 0


if __name__ == "__main__":
    sys.stdout.buffer.write(
        msgspec.json.format(msgspec.json.encode(msgspec.json.schema(ScenarioRecord)), indent=2) + b"\n"
    )
