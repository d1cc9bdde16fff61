"""Reduce a finding and write it as a feature, with its seed and the version of schedspec that found it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import distribution
from ..incident import confirm, written
from ..monitors import MONITORS
from .judge import Finding, judge
from .rounds import Broken


@dataclass(frozen=True, slots=True)
class Written:
    """A feature that shows a finding."""

    path: Path
    lines: int
    objects: int
    unconfirmed: str
    """Why the feature does not show the finding in the simulated cluster; empty if it does."""


def write_finding(
    broken: Broken, origin: str, folder: Path, policies: Mapping[str, str], is_over: Callable[[], bool]
) -> Written:
    """Reduce a finding to the smallest case with the same signature, and write it into the folder.

    Args:
        broken: The finding.
        origin: The command that comes to it.
        folder: Where the feature goes.
        policies: Texts of the policies that a sentence can name, by name.
        is_over: Whether the budget of candidates is used up.
    """
    incident, signature = distribution.load("scheduler.incident"), distribution.load("scheduler.incident.signature")
    name = broken.finding.name
    wanted = signature.Broken(name, lambda case: {finding.name for finding in judge(case, _worlds(name)).findings})
    reduced = incident.reduce_case(broken.finding.drawn, wanted, incident.Known(policies, is_over))
    last = next(finding for finding in judge(reduced.case, _worlds(name)).findings if finding.name == name)
    reduced.case = last.case
    path = folder / f"{_slug(name)}.feature"
    comments = [
        f"Found by schedspec {written.own_version()}, {origin}: {name}",
        f"It breaks: {last.text}",
    ]
    lines = written.write(path, reduced, comments, last.thens)
    return Written(path, lines, reduced.case.size, _unconfirmed(path, last))


def _worlds(name: str) -> Any:
    """Return only the worlds that the promise needs: a reduction tries hundreds of cases."""
    promise = name.partition(":")[0]
    return distribution.load("scheduler.explore").Worlds(promise == "node-more", promise == "names")


def _unconfirmed(path: Path, found: Finding) -> str:
    name = found.name.partition(":")[0]
    return confirm.unbroken(path, name if name in MONITORS else "")


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]
