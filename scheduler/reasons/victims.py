"""Why a task is or is not a victim, as data.

The one rule: a *denial* is one rule that protected one candidate, with the numbers it was judged by (units of
:mod:`scheduler.model.resources`).
"""

from __future__ import annotations

import msgspec


class PluginMessage(msgspec.Struct, frozen=True, tag="said"):
    """A plugin's own words, for a rule that has no struct here (plugins outside of this package)."""

    plugin: str
    text: str


class QueueWithinDeserved(msgspec.Struct, frozen=True, tag="within-deserved"):
    """Its queue (or an ancestor) is not above what it deserves."""

    queue: str
    dimension: str
    allocated: int
    deserved: int


class QueueGuarantee(msgspec.Struct, frozen=True, tag="guarantee"):
    """Its queue (or an ancestor) would fall below its guarantee."""

    queue: str
    dimension: str
    allocated: int
    guarantee: int


class PingPong(msgspec.Struct, frozen=True, tag="ping-pong"):
    """Its queue could reclaim the room at once."""

    queue: str
    dimension: str = ""
    allocated: int = 0
    deserved: int = 0


class NotLower(msgspec.Struct, frozen=True, tag="not-lower"):
    """Its priority is not lower than the preemptor's."""

    priority: int
    preemptor: int


class GangMinimum(msgspec.Struct, frozen=True, tag="gang-minimum"):
    """Without it its gang would run below the minimum, and the gang as a whole may not go."""

    job: str
    minimum: int


class Protected(msgspec.Struct, frozen=True, tag="protected"):
    """A protection of its own.

    ``by``: preemptable, system, budget, cooldown, service-type, cards, queue, status, preemptor, neighbour.
    """

    by: str
    detail: str = ""


class OfNoUse(msgspec.Struct, frozen=True, tag="of-no-use"):
    """It holds nothing that the preemptor asks for and its queue may reclaim, or too little with all others there."""


class NotNeeded(msgspec.Struct, frozen=True, tag="not-needed"):
    """The victims before it in the order were enough."""


class PartOfProtectedGang(msgspec.Struct, frozen=True, tag="protected-gang"):
    """It could only go with its whole gang, of which another member is protected."""

    job: str
    member: str


Protection = (
    PluginMessage
    | QueueWithinDeserved
    | QueueGuarantee
    | PingPong
    | NotLower
    | GangMinimum
    | Protected
    | OfNoUse
    | NotNeeded
    | PartOfProtectedGang
)


class ProtectedCount(msgspec.Struct, frozen=True):
    """How many candidates one denial spared."""

    count: int
    why: Protection


class VictimReason(msgspec.Struct, frozen=True):
    """Why a task was evicted: for whom, by which action, and by which tier's permission."""

    action: str
    """``reclaim`` or ``preempt``."""
    preemptor: str
    """Job that needed the room."""
    preemptor_task: str
    preemptor_queue: str
    queue: str
    """Queue of the victim."""
    tier: int = 0
    """Number of the tier that decided, from 0."""
    whole_gang: bool = False
    """Whether its gang was judged as one victim."""
    members_that_stay: int = 0
    """How many of such a gang stay, and run on: those above its minimum whose room nobody needs."""
    votes: tuple[tuple[str, bool], ...] = ()
    """What each plugin that had a say said, in the order of the policy; True permits."""
    spared: tuple[ProtectedCount, ...] = ()
    """Why the other candidates were spared."""
