"""The result file: JSON Lines, one object a line, each with its `kind`.

1. `run`: the first line; the inputs of the run.
2. `queues`: what each queue held, at most once in `sample` seconds of virtual time.
3. `job`: one line for each job, as soon as it is over; jobs that are not over follow at the end of the run.
4. `finding`: what a monitor found, if monitors judged the run.
5. `end`: the last line; the metrics. A file without it was cut off.

Times are seconds since 1970 (UTC), spans are seconds, cards are whole units of `resource`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import msgspec

from ...monitors import Violation
from ...scheduler.model.input_files import open_input
from .columns import InputError

FORMAT = 1


class Run(msgspec.Struct, frozen=True, tag_field="kind", tag="run"):
    format: int
    policy: str
    load: str
    """File of the trace or of the synthetic load."""
    resource: str
    cards: float
    """Cards of all nodes."""
    nodes: int
    jobs: int | None
    queues: list[str]
    sample: float
    seed: int | None = None


class QueueSample(msgspec.Struct, frozen=True):
    """A queue at one moment, in cards; `capability` is None without a limit."""

    held: float
    deserved: float
    guarantee: float
    capability: float | None
    requested: float
    waiting: int
    """Jobs that were submitted and do not run."""


class Sample(msgspec.Struct, frozen=True, tag_field="kind", tag="queues"):
    at: float
    queues: dict[str, QueueSample]


class JobEviction(msgspec.Struct):
    """Pods of a job that were evicted at one moment for one preemptor, or were lost with their node."""

    at: float
    pods: int
    cards: float
    action: str
    """`reclaim`, `preempt` and the like; for a node `drained`, `failed` or `removed`."""
    preemptor: str = ""
    preemptor_queue: str = ""
    lost: float = 0.0
    """Card-seconds of work that have to be run again."""
    reason: str = ""


class Wait(msgspec.Struct):
    """One kind of reason for which a job waited."""

    since: float
    """Time at which the job first waited for this kind of reason."""
    seconds: float
    types: list[str]
    text: str
    """The last such reason."""


class JobRecord(msgspec.Struct, tag_field="kind", tag="job"):
    job: str
    queue: str
    user: str
    priority: int
    pods: int
    min_member: int
    requests: dict[str, str]
    cards: float
    """Cards of all pods."""
    run_time: float | None
    """Run time in seconds; None: for ever."""
    submitted: float
    admitted: float | None = None
    started: float | None = None
    """Time at which the job first ran with `min_member` pods."""
    ended: float | None = None
    outcome: str = "waiting"
    """`completed`, `aborted`; at the end of the run `running` or `waiting`."""
    attempts: int = 1
    evictions: list[JobEviction] = []
    held: list[tuple[float, float, float]] = []
    """Begin, end and number of cards of each span in which the job held cards."""
    card_seconds_used: float = 0.0
    """Sum over its pods of cards × seconds for which the pod held them."""
    card_seconds_lost: float = 0.0
    """The part of this work that was lost to evictions and failed nodes."""
    waits: list[Wait] = []

    @property
    def wait(self) -> float | None:
        """Seconds from the submission to the first start."""
        return None if self.started is None else self.started - self.submitted

    @property
    def completion(self) -> float | None:
        """Seconds from the submission to the end of a completed job."""
        return self.ended - self.submitted if self.ended is not None and self.outcome == "completed" else None


class Finding(msgspec.Struct, frozen=True, tag_field="kind", tag="finding"):
    """A violation of a rule that must hold in every run."""

    monitor: str
    at: float
    cycle: int
    about: str
    """The job."""
    text: str
    reason: str = ""
    """The scheduler's own reason; empty if it gave none."""

    @classmethod
    def of(cls, found: Violation) -> Finding:
        return cls(found.monitor, found.time, found.cycle, found.job, found.text, found.reason)


class _Spread(TypedDict):
    jobs: int
    mean: NotRequired[float]
    p50: NotRequired[float]
    p95: NotRequired[float]
    p99: NotRequired[float]
    max: NotRequired[float]


class _OfQueue(TypedDict):
    used_card_hours: float
    lost_card_hours: float
    evicted_cards: float
    below_deserved_seconds: float
    below_deserved_longest_seconds: float
    below_guarantee_seconds: float
    distance_from_deserved: float | None


class _Metrics(TypedDict):
    """What readers of a result rely on."""

    jobs: int
    outcomes: dict[str, int]
    wait_seconds: _Spread
    wait_seconds_by_queue: dict[str, _Spread]
    wait_seconds_by_size: dict[str, _Spread]
    completion_seconds: _Spread
    makespan_seconds: float
    utilisation: float | None
    used_card_hours: float
    lost_card_hours: float
    evicted_pods: int
    evicted_jobs: int
    evictions_per_job: float
    evicted_to_requested: float | None
    distance_from_deserved: float | None
    jain: float | None
    queues: dict[str, _OfQueue]


class End(msgspec.Struct, frozen=True, tag_field="kind", tag="end"):
    """The end of a run, with its metrics (docs/simulation.md)."""

    at: float
    interrupted: bool
    cycles: int
    metrics: dict[str, Any]

    def __post_init__(self) -> None:
        msgspec.convert(self.metrics, _Metrics)  # somebody may have edited the file


Record = Run | Sample | JobRecord | Finding | End

_decode = msgspec.json.Decoder(Record).decode


def read_result(path: Path) -> Iterator[Record]:
    """Yield the records of a result file. Raises InputError."""
    try:
        with open_input(path) as file:
            for number, line in enumerate(file, 1):
                try:
                    yield _decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError) as error:
                    remedy = "name a complete result file of `simulate`"
                    raise InputError(f"{path}:{number}", f"not a line of a result: {error}", remedy) from error
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}", "name a result file of `simulate`") from error
