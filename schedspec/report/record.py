"""The record of one scenario: all data for reports, pictures and exports, as one JSON document.

A page is drawn from this document alone, so it cannot show anything else. `python -m schedspec.report.record` prints
the schema, `docs/report.md` explains it. All times are seconds of one clock, which is 0 when the scenario's namespace
is requested; quantities are strings in the units of `ScenarioRecord.units`.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec

from ..api import untrusted
from ..api.errors import HarnessError
from . import files

UID: Final = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
"""The uid at the end of a PodGroup's name, which readers do not need."""
SCHEMA: Final = 2
"""Increased when a field changes its meaning or is removed, but not for a new field with a default."""


Line = Annotated[int, msgspec.Meta(ge=0, lt=10_000_000)]
Seconds = Annotated[float, msgspec.Meta(ge=-1e11, le=1e11)]
"""Both are bounded, because records may come from other machines."""


class RecordError(HarnessError):
    """A file is no record, or its schema is not supported by this version."""


class Sentence(msgspec.Struct, frozen=True, omit_defaults=True):
    """One step of the scenario, as written, and its outcome."""

    keyword: str
    text: str
    line: Line
    began: Seconds = 0.0
    seconds: Seconds = 0.0
    verdict: str = "skipped"
    """`passed`, `failed`, or `skipped`: an earlier step failed, and the times are 0."""
    background: bool = False
    """True for a sentence of a `Background`, of the feature or of a Rule."""
    table: list[list[str]] = []
    """The rows of the table under the step, the header first."""
    doc: str = ""
    """The text block under the step."""


class Moment(msgspec.Struct, frozen=True, omit_defaults=True):
    """One version of an object, reduced to its main fields (see `schedspec.report.objects`)."""

    at: Seconds
    change: str
    """`was` (it existed when the scenario began), `added`, `changed` or `gone`."""
    uid: str
    state: dict[str, Any]
    object: dict[str, Any] = {}
    """The whole object of a pod, as the API server sent it; only in scenarios with few versions."""
    cleanup: bool = False
    """True for a version from the clean-up of the scenario; it shows no decision of the scheduler."""


class Story(msgspec.Struct, frozen=True, omit_defaults=True):
    """One object's versions, oldest first. A successor with the same name is in the same story, with another uid."""

    kind: str
    name: str
    moments: list[Moment]
    namespace: str = ""


class QueueMoment(msgspec.Struct, frozen=True, omit_defaults=True):
    """The amounts that a queue held (the sum of its pods) and reported (its object) from a time on."""

    at: Seconds
    queue: str
    held: dict[str, str] = {}
    deserved: dict[str, str] = {}
    capability: dict[str, str] = {}
    guarantee: dict[str, str] = {}
    card_quota: dict[str, str] = {}
    """The number of cards that the queue may hold, by model."""
    parent: str = ""


class ActMoment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A bind or an eviction; an eviction with everything that the scheduler published about it."""

    at: Seconds
    act: str
    """`bind` or `evict`."""
    pod: str
    uid: str
    node: str
    group: str = ""
    queue: str = ""
    amounts: dict[str, str] = {}
    message: str = ""
    action: str = ""
    """`reclaim` or `preempt`."""
    preemptor: str = ""
    """The pod for which the victim was evicted."""
    preemptor_uid: str = ""
    preemptor_queue: str = ""
    inferred: bool = False
    """True if the scheduler named no preemptor; `preemptor` is then the next pod of another group bound to the node."""
    evidence: str = ""
    """How the preemptor of a recorded eviction is known, and which claims about it do not hold."""
    tier: Line = 0
    """The policy's tier that decided, from 1; 0 if the scheduler did not publish it."""
    votes: dict[str, str] = {}
    """Plugin → `permits` or `vetoes`."""
    whole_gang: bool = False


class Reason(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reason that the scheduler published about a waiting pod or job."""

    at: Seconds
    kind: str
    name: str
    message: str
    data: list[dict[str, Any]] = []
    """The reasons as data, if the scheduler published them beside the message (schedspec does for each PodGroup)."""


class Judgement(msgspec.Struct, frozen=True):
    """A monitor's finding."""

    at: Seconds
    monitor: str
    about: str
    text: str


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a scenario failed."""

    text: str
    expected: str = ""
    seen: str = ""
    waited: str = ""
    """The waiting time as a clause: `within 20 s`, or `failed at once: 2 evictions already`."""

    @property
    def headline(self) -> str:
        """The failure in one line, for instance `expected 1 eviction, saw 2 evictions: a-0, a-1`."""
        if not self.expected:
            return (self.text or "it failed").splitlines()[0]
        return headline(self.expected, self.seen)


def headline(expected: str, seen: str) -> str:
    """Return the expectation and the observation in one line; a monitor or an error has only `seen`.

    >>> headline("exactly 1 eviction", "2 evictions: a-0, a-1")
    'expected 1 eviction, saw 2 evictions: a-0, a-1'
    """
    text = (seen or "nothing at all").splitlines()[0]
    return f"expected {expected.splitlines()[0].removeprefix('exactly ')}, saw {text}" if expected else text


class Software(msgspec.Struct, frozen=True, omit_defaults=True):
    """A program of the run."""

    name: str
    version: str = ""
    parts: list[str] = []


class Span(msgspec.Struct, frozen=True):
    """A span of time."""

    began: Seconds
    seconds: Seconds


class EvictedAmounts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The evicted and the requested amounts."""

    pods: int = 0
    evicted: dict[str, str] = {}
    requested: dict[str, str] = {}
    """The requests of the preemptors, without the pods that already had a node."""
    ratio: dict[str, float] = {}
    """Evicted to requested, by resource; 1 means exactly what was needed. Unrequested resources are left out."""


class ScenarioRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One complete scenario."""

    schema: int = SCHEMA
    feature: str
    feature_file: str
    """Relative to the root of the run, with `/`."""
    rule: str = ""
    scenario: str
    example: str = ""
    """The values of an outline's row; in a scenario that runs several times, the number of the run."""
    node_id: str
    """The id by which pytest runs the scenario."""
    line: Line
    tags: list[str] = []
    namespace: str = ""
    cluster: Software
    scheduler: Software
    policy: str
    policy_sha256: str
    policy_name: str = ""
    """The name of the policy in the sentence, or of its file."""
    began: Seconds
    """Time of the clock's 0, in seconds since 1970."""
    seconds: Seconds
    """The duration until the last sentence ended and the monitors had judged."""
    boot_seconds: Seconds = 0.0
    """Duration before 0 of bringing up the cluster, for the first scenario on it."""
    cleanup: Span | None = None
    verdict: str
    """`passed`, `failed`, `skipped`, or `known`: failed with a known difference of this scheduler."""
    known: str = ""
    failure: Failure | None = None
    sentences: list[Sentence] = []
    units: dict[str, str] = {}
    objects: list[Story] = []
    queues: list[QueueMoment] = []
    acts: list[ActMoment] = []
    evicted: EvictedAmounts = EvictedAmounts()
    reasons: list[Reason] = []
    findings: list[Judgement] = []
    monitors_off: list[str] = []
    logs: dict[str, str] = {}
    """Pod → the last lines of its containers at the end, where pods have a kubelet."""
    recording: str = ""
    """The path of the scheduler's own recording of its cycles; empty without one."""

    @property
    def is_private(self) -> bool:
        """Whether the record was made on a shared cluster, and may contain objects of other users."""
        return self.cluster.name == "existing"

    @property
    def title(self) -> str:
        """The scenario's name, with the values of its example that the name does not contain."""
        rest = [part for part in self.example.split("-") if part not in self.scenario]
        return f"{self.scenario} [{'-'.join(rest)}]" if rest else self.scenario

    @property
    def failed_sentence(self) -> Sentence | None:
        return next((sentence for sentence in self.sentences if sentence.verdict == "failed"), None)

    @property
    def where(self) -> str:
        """`file:line` of the failed sentence, else of the scenario."""
        return f"{self.feature_file}:{(self.failed_sentence or self).line}"

    @property
    def headline(self) -> str:
        """For a failed scenario, what was expected and what was seen, in one line; else empty."""
        return self.failure.headline if self.failure is not None else ""

    @property
    def because(self) -> str:
        """For a failed scenario, the scheduler's text that explains it; empty without one."""
        if self.failure is None:
            return ""
        bound = {act.pod for act in self.acts if act.act == "bind"}
        evictions = [f"{act.pod}: {act.message}" for act in self.acts if act.act == "evict"]
        waits = [reason.message for reason in self.reasons if reason.kind != "pod" or reason.name not in bound]
        about_evictions = "evict" in self.failure.expected
        found = [*waits, *evictions] if about_evictions else [*evictions, *waits]
        return UID.sub("", (found[-1] if found else "").replace(f"{self.namespace}/", ""))

    @property
    def anchor(self) -> str:
        """The scenario's anchor in a report: the same in every run, so that other documents can link to it."""
        path = Path(self.feature_file)
        return slug(f"{path.parent.name}-{path.stem}-{self.line}-{self.example}")


def slug(text: str) -> str:
    """Return lower-case letters, digits and single dashes; a checksum replaces letters that are not ASCII."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    if text.isascii():
        return plain
    return f"{plain}-{hashlib.blake2b(text.encode(), digest_size=3).hexdigest()}".strip("-")


def title_of(policy: str) -> str:
    """Return a policy's first comment, which states its purpose."""
    first = policy.partition("\n")[0]
    return first.removeprefix("#").strip() if first.startswith("#") else ""


def digest(policy: str) -> str:
    """Return a checksum of a policy, which is equal for records of the same policy."""
    return hashlib.sha256(policy.encode()).hexdigest()


def write(record: ScenarioRecord, directory: Path) -> Path:
    """Write the record into a file named after feature, line and scenario; return its path. Raises OSError."""
    files.make_folder(directory, private=record.is_private)
    path = directory / f"{slug(f'{Path(record.feature_file).stem}-{record.line}-{record.title}')[:120]}.json"
    return files.write(path, msgspec.json.encode(record), private=record.is_private)


def read(path: Path) -> ScenarioRecord:
    """Return the record in a file. Raises RecordError with a remedy."""
    return _read(path, untrusted.MAX_MEMORY)[0]


def _read(path: Path, left: int) -> tuple[ScenarioRecord, int]:
    """Return the record in a file, and how many of the `left` bytes of memory remain after it."""
    try:
        raw = untrusted.read_bytes(path)
        schema = untrusted.decode(path, raw, _RecordHead, "a record of a scenario").schema
        if not schema:
            raise RecordError(f"{path}: not a record of a scenario: name a folder of out/*/scenarios")
        if schema != SCHEMA:
            raise RecordError(f"{path}: schema {schema}, but this version reads {SCHEMA}: run the scenario again")
        record = untrusted.decode(path, raw, ScenarioRecord, "a record of a scenario", left)
        return record, left - untrusted.memory_of(raw)
    except untrusted.RefusedFileError as problem:
        raise RecordError(str(problem)) from None


def read_all(directories: Iterable[Path]) -> Iterator[ScenarioRecord]:
    """Yield every record below these directories: each scenario once for each cluster, scheduler and version.

    If a scenario has several runs, the newest counts. A record of an earlier run in the same folder does not count.

    Raises:
        RecordError: A folder is missing, or a record cannot be read.
    """
    found: dict[tuple[str, ...], ScenarioRecord] = {}
    left = untrusted.MAX_MEMORY
    for directory in directories:
        if not directory.is_dir():
            raise RecordError(f"{directory}: not a folder")
        for path in sorted(directory.glob(files.RECORDS)):
            record, left = _read(path, left)
            if record.began < _run_began(path.parents[2]):  # an earlier run in the same folder
                continue
            environment = (record.cluster.name, record.cluster.version, record.scheduler.name, record.scheduler.version)
            key = (*environment, record.node_id)
            if key not in found or found[key].began < record.began:
                found[key] = record
    yield from found.values()


def note_run(folder: Path, began: Seconds) -> Path:
    """Write the start of the run into its folder: records of earlier runs there no longer count."""
    return files.write(files.make_folder(folder) / files.RUN, msgspec.json.encode(_Run(began=began)))


def _run_began(folder: Path) -> Seconds:
    """Return the start of the last run in this folder; 0 if it is unknown."""
    path = folder / files.RUN
    if not path.is_file():
        return 0.0
    try:
        return untrusted.decode(path, untrusted.read_bytes(path), _Run, "when a run began").began
    except untrusted.RefusedFileError as problem:
        raise RecordError(str(problem)) from None


class _Run(msgspec.Struct, frozen=True):
    began: Seconds = 0.0


class _RecordHead(msgspec.Struct):
    schema: Annotated[int, msgspec.Meta(ge=0, lt=1_000_000)] = 0


if __name__ == "__main__":
    sys.stdout.buffer.write(
        msgspec.json.format(msgspec.json.encode(msgspec.json.schema(ScenarioRecord)), indent=2) + b"\n"
    )
