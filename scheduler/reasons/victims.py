"""Why a task is or is not a victim, as data.

A *denial* is one rule that protects one candidate, with the numbers of the decision (units of
`scheduler.model.resources`).
"""

from __future__ import annotations

import enum

import msgspec


class PluginMessage(msgspec.Struct, frozen=True, tag="said"):
    """A text from a plugin outside of this package, for a rule that has no struct here."""

    plugin: str
    text: str


class QueueWithinDeserved(msgspec.Struct, frozen=True, tag="within-deserved"):
    """The candidate's queue (or an ancestor) holds no more than it deserves."""

    queue: str
    dimension: str
    allocated: int
    deserved: int


class QueueGuarantee(msgspec.Struct, frozen=True, tag="guarantee"):
    """The candidate's queue (or an ancestor) would fall below its guarantee."""

    queue: str
    dimension: str
    allocated: int
    guarantee: int


class PingPong(msgspec.Struct, frozen=True, tag="ping-pong"):
    """The candidate's queue could reclaim the room at once."""

    queue: str
    dimension: str = ""
    allocated: int = 0
    deserved: int = 0


class NotLower(msgspec.Struct, frozen=True, tag="not-lower"):
    """The candidate's priority is not lower than the preemptor's."""

    priority: int
    preemptor: int


class GangMinimum(msgspec.Struct, frozen=True, tag="gang-minimum"):
    """The candidate's gang needs it for the minimum, and may not be evicted as a whole."""

    job: str
    minimum: int
    pods: int = 0
    """The number of the gang's pods that hold capacity; 0 if not recorded."""
    tier: int = 0
    """Number of the last tier in which the gang plugin vetoed, from 0."""


class StillTerminating(msgspec.Struct, frozen=True, tag="still-terminating"):
    """A victim still exists after the longest grace period of an eviction, so another victim may be chosen."""

    node: str
    seconds: int


class ProtectedBy(enum.StrEnum):
    """Properties that protect a task, whatever the amounts are. `scheduler.reasons.text` has the words for each."""

    PREEMPTABLE = "preemptable"
    SYSTEM = "system"
    BUDGET = "budget"
    SERVICE_TYPE = "service-type"
    CARDS = "cards"
    QUEUE = "queue"
    STATUS = "status"
    NEIGHBOUR = "neighbour"
    BEST_EFFORT = "best-effort"
    PREEMPTOR = "preemptor"


class Protected(msgspec.Struct, frozen=True, tag="protected"):
    """A protection without numbers; `detail` is the name of the protecting object, such as a disruption budget."""

    by: ProtectedBy
    detail: str = ""


class CoolingDown(msgspec.Struct, frozen=True, tag="cooling-down"):
    """The candidate, or a member of its gang, was placed recently; its cooldown lasts `seconds` more."""

    pod: str
    seconds: int


class OfNoUse(msgspec.Struct, frozen=True, tag="of-no-use"):
    """The candidate holds nothing that the preemptor requests and may reclaim, or all candidates hold too little."""


class NotNeeded(msgspec.Struct, frozen=True, tag="not-needed"):
    """The victims before the candidate in the order of eviction suffice."""


class PartOfProtectedGang(msgspec.Struct, frozen=True, tag="protected-gang"):
    """The candidate could only be evicted with its whole gang, and another member of the gang is protected."""

    job: str
    member: str


class SmallerShare(msgspec.Struct, frozen=True, tag="smaller-share"):
    """Without the candidate, its job would have a smaller cluster share (in thousandths) than the preemptor's job."""

    job: str
    share: int
    """The share that the candidate's job holds now."""
    preemptor: int
    """The share that the preemptor's job would hold."""


Rule = (
    PluginMessage
    | QueueWithinDeserved
    | QueueGuarantee
    | PingPong
    | NotLower
    | GangMinimum
    | Protected
    | CoolingDown
    | OfNoUse
    | NotNeeded
    | PartOfProtectedGang
    | SmallerShare
)


class Vetoed(msgspec.Struct, frozen=True, tag="vetoed"):
    """A plugin of the policy protects the candidate."""

    plugin: str
    tier: int
    """Number of the plugin's tier, from 0."""
    why: Rule | None = None
    """None if the plugin returns no reason."""


Protection = Rule | Vetoed


class QueueSurplus(msgspec.Struct, frozen=True):
    """What a queue with candidates holds above its deserved amount, in one dimension that the preemptor requests."""

    queue: str
    dimension: str
    allocated: int
    deserved: int


class ProtectedCount(msgspec.Struct, frozen=True):
    """The number of candidates that one denial protects."""

    count: int
    why: Protection


class VictimReason(msgspec.Struct, frozen=True):
    """Why a task was evicted: by which action, for which job, and which tier permitted the eviction."""

    action: str
    """`reclaim` or `preempt`."""
    preemptor: str
    """Job that needed the room."""
    preemptor_task: str
    preemptor_queue: str
    queue: str
    """Queue of the victim."""
    tier: int = 0
    """Number of the tier that decided, from 0."""
    whole_gang: bool = False
    """Whether the victim's gang was judged as one victim."""
    members_that_stay: int = 0
    """The number of members of such a gang that keep running: members above its minimum whose room nobody needs."""
    votes: tuple[tuple[str, bool], ...] = ()
    """The vote of each plugin that voted, in the order of the policy; True permits."""
    spared: tuple[ProtectedCount, ...] = ()
    """The protections of the other candidates."""
