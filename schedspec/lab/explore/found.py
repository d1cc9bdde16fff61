"""Reduce a finding and write it as a feature, with its seed and the version of schedspec that found it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from ...monitors import MONITORS
from ..reduce import confirm, signature, written
from ..reduce.case import Case, map_work
from ..reduce.live import Live, thens_of
from ..reduce.play import play
from ..reduce.reduce import Reduced, ReductionInput, reduce_case
from .judge import CaseFinding, judge
from .policies import is_refused
from .promises import Worlds
from .rounds import Broken

_SLOWLY = "2s"
"""How long victims terminate if they have to outlast the creation of the next jobs."""


@dataclass(frozen=True, slots=True)
class Written:
    """A feature that shows a finding."""

    path: Path
    lines: int
    objects: int
    unconfirmed: str
    """Why the feature does not show the finding in the simulated cluster; empty if it does."""


@dataclass(frozen=True, slots=True)
class How:
    """How findings are reduced and confirmed.

    Attributes:
        folder: The folder of the features.
        policies: Texts of the policies that a sentence can name, by name.
        site: Where features run.
        options: The options that name scheduler, cluster and profile, each after a space.
        live: Returns the test of a reduction on a cluster, with a new budget; None in virtual time.
    """

    folder: Path
    policies: Mapping[str, str]
    site: confirm.Site
    options: str = ""
    live: Callable[[], Live] | None = None


def write_finding(broken: Broken, origin: str, how: How, is_over: Callable[[], bool]) -> Written:
    """Reduce a finding to the smallest case with the same signature, and write it into the folder.

    `is_over`: whether the budget of candidates in virtual time is used up.
    """
    name = broken.finding.name
    reduced, last, problem = _reduce_live(broken, how) if how.live else _reduce(broken, how, is_over)
    path = how.folder / f"{_slug(name)}.feature"
    comments = [
        f"{origin}, schedspec {written.own_version()}: {name}",
        f"It breaks{' with ' if last.by else ''}{last.by}: {last.text}",
    ]
    lines, unconfirmed = write_shown(path, reduced, last, comments, how)
    return Written(path, lines, reduced.case.size, problem or unconfirmed)


def write_shown(path: Path, reduced: Reduced, last: CaseFinding, comments: Sequence[str], how: How) -> tuple[int, str]:
    """Write a finding as a feature that shows it; return its lines, and why it does not show the finding.

    In virtual time all jobs of a step come before the first victim has ended. In a feature they come one after the
    other: if it passes, it is written again with victims that take time to terminate.
    """
    is_played = how.live is None
    write = partial(
        written.write, path, comments=comments, thens=last.thens, scheduler=how.site.scheduler, is_played=is_played
    )
    lines, unconfirmed = write(reduced), _unconfirmed(path, last, how.site)
    slow = replace(reduced, case=_with_slow_victims(reduced.case)) if is_played and unconfirmed else reduced
    if slow.case != reduced.case:
        slow_lines = write(slow)
        if not _unconfirmed(path, last, how.site):
            return slow_lines, ""
        write(reduced)
    return lines, unconfirmed


def _with_slow_victims(case: Case) -> Case:
    """Return the case with victims that terminate only after the next jobs have come."""
    evicted = {eviction.job for eviction in play(case).evictions}
    return map_work(case, {job.name: replace(job, stop_after=_SLOWLY) for job in case.jobs if job.name in evicted})


def _reduce(broken: Broken, how: How, is_over: Callable[[], bool]) -> tuple[Reduced, CaseFinding, str]:
    """Reduce in virtual time; return the reduced case, the finding in it, and no problem."""
    name = broken.finding.name
    wanted = signature.Broken(name, partial(broken_by, broken.finding))
    reduced = reduce_case(broken.finding.drawn, wanted, ReductionInput(how.policies, is_over))
    last = next(finding for finding in judge(reduced.case, _worlds(name)).findings if finding.name == name)
    reduced.case = last.case
    return reduced, last, ""


def broken_by(finding: CaseFinding, case: Case) -> set[str]:
    """Return the names of a candidate's findings; none if lint refuses a reduced policy: the cause would differ."""
    if any(map(is_refused, {*case.policies} - {*finding.drawn.policies})):
        return set()
    return {found.name for found in judge(case, _worlds(finding.name)).findings}


def _reduce_live(broken: Broken, how: How) -> tuple[Reduced, CaseFinding, str]:
    """Reduce on the cluster if the finding shows again; return the case, the finding, and why it did not show again."""
    assert how.live is not None
    finding, live = broken.finding, how.live()
    wanted = signature.Broken(finding.name, lambda _: set())
    if live.shows(finding.drawn, wanted):
        reduced = reduce_case(finding.drawn, wanted, ReductionInput(how.policies, live.is_over, shows=live.shows))
        problem = ""
    else:
        names = {text: name for name, text in how.policies.items()}
        reduced = Reduced(finding.drawn, wanted, finding.drawn.size, policy_name=names.get(finding.drawn.policy, ""))
        problem = f"it was seen once, but not in {how.site.needed} of {how.site.runs} further runs"
    return reduced, replace(finding, case=reduced.case, thens=tuple(thens_of(reduced.case, finding.name))), problem


def _worlds(name: str) -> Worlds:
    """Return only the variants that the promise needs: a reduction tries hundreds of cases."""
    promise = name.partition(":")[0]
    needed = (promise in ("error", name) for name in ("less", "node-more", "names"))
    return Worlds(*needed)


def _unconfirmed(path: Path, found: CaseFinding, site: confirm.Site) -> str:
    name = found.name.partition(":")[0]
    return confirm.unbroken(path, name if name in MONITORS else "", site)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60]
