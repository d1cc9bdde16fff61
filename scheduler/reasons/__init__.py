"""Reasons of decisions as typed data, and their rendering as text.

Code that decides returns one of these structs, with the numbers of the decision, and composes no sentences. A *why*
(`scheduler.reasons.waiting`) is a rule that keeps a job waiting; a *denial* (`scheduler.reasons.victims`) is a rule
that protects a candidate from eviction.
"""

from __future__ import annotations

from .data import refusal_annotations, refusal_data, victim_annotations
from .text import render_denial, render_overdue, render_refusal, render_victim, render_why
from .victims import (
    CoolingDown,
    GangMinimum,
    NotLower,
    NotNeeded,
    OfNoUse,
    PartOfProtectedGang,
    PingPong,
    PluginMessage,
    Protected,
    ProtectedBy,
    ProtectedCount,
    Protection,
    QueueGuarantee,
    QueueSurplus,
    QueueWithinDeserved,
    Rule,
    SmallerShare,
    StillTerminating,
    Vetoed,
    VictimReason,
)
from .waiting import (
    ClusterLimit,
    GangShort,
    Gated,
    GuaranteeKept,
    NamespaceQuota,
    NeverPreempts,
    NodeRule,
    NodeUnfit,
    NoDomain,
    NoGroup,
    NoNode,
    NotBackfilled,
    NotEntitled,
    NotStarving,
    NoVictims,
    OutOfProportion,
    Outranked,
    OutsideDomain,
    PodsMissing,
    QueueBroken,
    QueueClosed,
    QueueExcess,
    QueueLimit,
    QueueOverused,
    ReclaimedNext,
    Refusal,
    TooCostly,
    TopologyUnmet,
    Unplaceable,
    UnschedulableReason,
    Unsupported,
    WrongCard,
    WrongService,
)
