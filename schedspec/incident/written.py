"""Write a reduced case as a feature file, and its policy beside it unless a sentence can name the policy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import distribution
from .feature import Text, write_feature

MOST_LINES = 30
"""Maximum lines of a short feature; a longer one states its length in a comment."""
_SIMPLEST = ("capacity", "proportion", "gangs", "preempt", "hierarchy", "default")
"""Policies in the order in which they are tried; the simplest first."""


def known_policies() -> dict[str, str]:
    """Return the policies that a sentence can name, the simplest first."""
    files = sorted((distribution.folder("templates") / "policies").glob("*.yaml"))
    order = {name: number for number, name in enumerate(_SIMPLEST)}
    ordered = sorted(files, key=lambda path: (order.get(path.stem, len(order)), path.stem))
    return {path.stem: path.read_text("utf-8") for path in ordered if path.stem != "capacity-and-proportion"}


def write(out: Path, found: Any, comments: Sequence[str], thens: Sequence[str] = ()) -> int:
    """Write the feature of a reduced case; returns its number of lines.

    Args:
        out: The file.
        found: What `scheduler.incident` reduced.
        comments: Comments on the origin of the case.
        thens: The sentences that judge; by default those of the incident.
    """
    room = distribution.load("scheduler.incident")
    name = f'the policy "{found.policy_name}"'
    out.parent.mkdir(parents=True, exist_ok=True)
    if not found.policy_name:
        beside = out.with_suffix(".policy.yaml")
        beside.write_text(found.case.policy, "utf-8")
        name = f'the policy of "{beside.name}"'
    story = room.play(found.case)
    sentences = [*thens] or room.thens_of(found.case, found.signature, story) or thens_of_monitors(found.case)
    text = write_feature(found.case, story, Text(found.title, name, sentences, comments))
    out.write_text(text, "utf-8")
    return len(text.splitlines())


def thens_of_monitors(case: Any) -> list[str]:
    """Return a sentence that holds: monitors judge every scenario, whatever its sentences are."""
    return [f'"{job.name}" runs or is refused' for job in case.jobs[-1:]]


def own_version() -> str:
    """Return the version of schedspec for a comment."""
    return distribution.version() or "of a checkout"
