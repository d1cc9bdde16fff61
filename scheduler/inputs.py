"""The inputs of the scheduler: every change of its state, as data.

The live scheduler changes its state only through `apply_input`, and `replay` uses the same function. Therefore a
recording of the inputs suffices to repeat the decisions.
"""

from __future__ import annotations

from typing import Any

import msgspec

from .backlog.backlog import EVERY
from .backlog.entries import Waiting
from .core import Core
from .framework.decisions import Decisions
from .framework.work import UNLIMITED, Budget
from .model import objects
from .model.state_kinds import STATE_KINDS


class ObjectSeen(msgspec.Struct, tag="seen"):
    """A watch or list reported an object. `kind` is a key of `STATE_KINDS`."""

    kind: str
    object: Any


class ObjectGone(msgspec.Struct, tag="lost"):
    """The object with this key (and uid) was deleted or became unreadable."""

    kind: str
    key: str
    uid: str = ""


class Assumed(msgspec.Struct, tag="assumed", omit_defaults=True):
    """A write is in flight: a bind to `node` with `annotations`, or an eviction if `node` is empty."""

    key: str
    uid: str
    node: str = ""
    annotations: dict[str, str] = {}


class Nominated(msgspec.Struct, tag="nominated"):
    """A nomination is in flight: capacity on `node` is reserved for the pod, or released if `node` is empty."""

    key: str
    uid: str
    node: str = ""


class Overdue(msgspec.Struct, tag="overdue"):
    """A terminating pod still exists after the longest grace period, `seconds` after the request of its deletion."""

    key: str
    uid: str
    seconds: int = 0


class Reverted(msgspec.Struct, tag="reverted"):
    """The API refused a write that was in flight."""

    key: str
    uid: str


class PolicyLoaded(msgspec.Struct, tag="policy"):
    """This policy is in force from now on. `source` is the name of its file, `text` the content."""

    source: str
    text: str


class Decided(msgspec.Struct, tag="decided"):
    """A cycle ran at `now` (seconds since 1970) on the state so far, with `budget`, and returned `decisions`.

    The next cycle uses a part of the decisions.
    """

    cycle: int
    now: float
    decisions: Decisions
    budget: Budget = UNLIMITED


class Remembered(msgspec.Struct, tag="remembered"):
    """The backlog's state of waiting jobs. It is the last input of a checkpoint."""

    policy: str
    waiting: dict[str, Waiting]
    due: list[str]
    freed: list[str]
    turns: dict[str, dict[str, int]]
    claims: dict[str, str]
    lapses: dict[str, float] = {}
    quotas_moved: bool = False
    """Whether any quota moved. Only older recordings have this field; they do not name the quotas in `moved`."""
    moved: list[str] = []


class Started(msgspec.Struct, tag="started"):
    """First line of a record: how the state was created. The objects up to the first cycle are the checkpoint."""

    version: int
    scheduler_names: list[str]
    node_selector: dict[str, str]


class Noted(msgspec.Struct, tag="noted"):
    """An object of another scheduler, as the API server served it. Dumps and recordings of a cluster have it.

    Our decisions do not read it.
    """

    object: dict[str, Any]


class Taken(msgspec.Struct, tag="taken"):
    """Last line of a dump, or of the checkpoint of a cluster's recording: the time of the state, and notes about it."""

    at: float
    redacted: bool = False
    notes: list[str] = []


class Unnoted(msgspec.Struct, tag="unnoted"):
    """A noted object was deleted. Only recordings of a cluster have it, as all inputs below."""

    api_version: str
    kind: str
    key: str
    uid: str = ""


class Passed(msgspec.Struct, tag="passed"):
    """Time passed: the inputs after it were observed at `at` (seconds since 1970), up to the next of these lines."""

    at: float


class Gap(msgspec.Struct, tag="gap"):
    """The versions of a kind between two times are incomplete, or were observed later than they were written."""

    kind: str
    """Empty: of all kinds."""
    since: float
    until: float
    why: str
    is_lost: bool = True
    """Whether versions may be missing; else all were observed, but only at `until`."""


Input = (
    ObjectSeen
    | ObjectGone
    | Assumed
    | Nominated
    | Overdue
    | Reverted
    | PolicyLoaded
    | Decided
    | Remembered
    | Started
    | Noted
    | Taken
    | Unnoted
    | Passed
    | Gap
)


def apply_input(core: Core, given: Input) -> None:
    """Change the state by one input.

    Raises:
        ValueError: an object is invalid, for instance in a quantity.
    """
    cluster, backlog = core.cluster, core.backlog
    match given:
        case ObjectSeen():
            meta = given.object.metadata
            meta.annotations = objects.read_annotations(meta.annotations)
            STATE_KINDS[given.kind].set(cluster, given.object)
        case ObjectGone(kind="Pod"):
            cluster.delete_pod(given.key, given.uid)
        case ObjectGone():
            STATE_KINDS[given.kind].delete(cluster, given.key)
        case Assumed(node=""):
            cluster.assume_evicted(given.key, given.uid)
        case Assumed():
            cluster.assume_bound(given.key, given.uid, given.node, given.annotations)
        case Nominated():
            cluster.assume_nominated(given.key, given.uid, given.node)
        case Overdue():
            cluster.assume_overdue(given.key, given.uid)
        case Reverted():
            cluster.revert(given.key, given.uid)
        case Decided():
            cluster.refused_binds.clear()
            backlog.apply(given.decisions.memory, given.decisions.pipelined)
        case Remembered():
            cluster.sums()  # as at the end of the cycle before the checkpoint: later changes are reported against it
            backlog.restore(
                given.policy,
                given.waiting,
                due=given.due,
                freed=given.freed,
                turns=given.turns,
                claims=given.claims,
                lapses=given.lapses,
                moved=[*given.moved, *([EVERY] if given.quotas_moved else ())],
            )


_decoder = msgspec.json.Decoder(Input)


def read_line(line: bytes) -> Input:
    """Decode one line of a record.

    Raises:
        ValueError: the line is invalid; msgspec.ValidationError names the field.
        RecursionError: the line is nested too deep.
    """
    given: Input = _decoder.decode(line)
    if isinstance(given, ObjectSeen | ObjectGone) and given.kind not in STATE_KINDS:
        raise msgspec.ValidationError(f"{given.kind!r} is no kind of object that a recording has")
    if isinstance(given, ObjectSeen):
        given.object = msgspec.convert(given.object, STATE_KINDS[given.kind].struct)
    return given


write_line = msgspec.json.Encoder().encode
