"""Why: the reasons of decisions as typed data, and the one place where they become text."""

from __future__ import annotations

import msgspec


class VictimReason(msgspec.Struct, frozen=True):
    """Why a task was evicted: for whom, by which action, and by which tier's permission."""

    action: str
    """``reclaim`` or ``preempt``."""
    claimant: str
    """Job that needed the room."""
    claimant_task: str
    claimant_queue: str
    queue: str
    """Queue of the victim."""
    tier: int = 0
    whole_gang: bool = False


class Refusal(msgspec.Struct, frozen=True):
    """Why a job, or some task of it, still waits. Each rule that stood in the way is one item, rendered as one sentence."""

    items: list[str] = []


def render_refusal(refusal: Refusal) -> str:
    """The reason as the user reads it."""
    return "; ".join(refusal.items)


def render_victim(reason: VictimReason) -> str:
    """The reason as the user reads it."""
    verb = "reclaimed" if reason.action == "reclaim" else "preempted"
    return f"{verb} for {reason.claimant} of queue {reason.claimant_queue} (victim's queue: {reason.queue})"
