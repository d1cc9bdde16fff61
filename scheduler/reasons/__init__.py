"""Why: the reasons of decisions as typed data, and the one place where they become text.

The one rule: who decides says why with one of these structs, numbers included; nobody else composes a sentence. A
*why* (:mod:`scheduler.reasons.waiting`) is one rule that stood in the way of a job; a *denial*
(:mod:`scheduler.reasons.victims`) is one rule that protected a candidate.
"""

from __future__ import annotations

from .data import victim_annotations
from .text import render_denial, render_refusal, render_victim, render_why
from .victims import (
    GangMinimum,
    NotLower,
    NotNeeded,
    OfNoUse,
    PartOfProtectedGang,
    PingPong,
    PluginMessage,
    Protected,
    ProtectedCount,
    Protection,
    QueueGuarantee,
    QueueWithinDeserved,
    VictimReason,
)
from .waiting import (
    ClusterLimit,
    GangShort,
    Gated,
    NeverPreempts,
    NodeRule,
    NodeUnfit,
    NoGroup,
    NoNode,
    NotBackfilled,
    NotEntitled,
    NoVictims,
    Outranked,
    PodsMissing,
    QueueBroken,
    QueueClosed,
    QueueLimit,
    Refusal,
    TooCostly,
    UnschedulableReason,
    Unsupported,
    WrongCard,
    WrongService,
)

__all__ = [
    "ClusterLimit",
    "GangMinimum",
    "GangShort",
    "Gated",
    "NeverPreempts",
    "NoGroup",
    "NoNode",
    "NoVictims",
    "NodeRule",
    "NodeUnfit",
    "NotBackfilled",
    "NotEntitled",
    "NotLower",
    "NotNeeded",
    "OfNoUse",
    "Outranked",
    "PartOfProtectedGang",
    "PingPong",
    "PluginMessage",
    "PodsMissing",
    "Protected",
    "ProtectedCount",
    "Protection",
    "QueueBroken",
    "QueueClosed",
    "QueueGuarantee",
    "QueueLimit",
    "QueueWithinDeserved",
    "Refusal",
    "TooCostly",
    "UnschedulableReason",
    "Unsupported",
    "VictimReason",
    "WrongCard",
    "WrongService",
    "render_denial",
    "render_refusal",
    "render_victim",
    "render_why",
    "victim_annotations",
]
