"""Judge cases on a cluster: each is written as a feature and runs with the scheduler's adapter.

A feature shows an eviction or a wait if its sentence holds, and a broken rule if the monitor finds something in it.
Exploration judges promises too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ...observe.view import count
from . import feature, written
from .case import Case
from .confirm import FeatureRun, Site, run, shows
from .feature import Text, write_feature
from .play import NOT_PLAYED
from .signature import Signature, rule_of

OWED, TOLD = "owed", "told"
"""The general promises that are checked on a cluster."""
Finds = Callable[[Case, FeatureRun], set[str]]
"""Returns the signatures that a case and a run of it show."""


class Live:
    """The test of a reduction on a cluster. It prints a line for each candidate, because a run takes seconds."""

    def __init__(self, site: Site, folder: Path, minutes: float, finds: Finds | None = None) -> None:
        self._site, self._folder, self._minutes, self._finds = site, folder, minutes, finds
        self._begun, self._tried = time.monotonic(), 0
        self._names = {text: name for name, text in written.known_policies().items()}

    def is_over(self) -> bool:
        return time.monotonic() - self._begun > self._minutes * 60

    def shows(self, case: Case, wanted: Signature) -> bool:
        sentences = feature.thens_of(case, wanted, NOT_PLAYED) or thens_of(case, rule_of(wanted))
        file = self.write(case, "candidate", sentences)
        monitor = rule_of(wanted).partition(":")[0]

        def once() -> bool:
            ran = run([file], self._site)
            if self._finds is not None:
                return rule_of(wanted) in self._finds(case, ran)
            return ran.finds(monitor) if monitor else not ran.problem

        is_shown = shows(self._site, once)
        self._tried += 1
        minutes = (time.monotonic() - self._begun) / 60
        word = "shows it" if is_shown else "does not show it"
        tried, size = count(self._tried, "candidate"), count(case.size, "object")
        sys.stderr.write(f"{tried}, {minutes:.1f} of {self._minutes:g} min: {size}, {word}\n")
        return is_shown

    def write(self, case: Case, name: str, thens: Sequence[str]) -> Path:
        """Write a case as a feature of this name in the folder."""
        scheduler, file = self._site.scheduler, self._folder / f"{name}.feature"
        policy = written.given_policy(file, case.policy, self._names, scheduler)
        text = Text("A candidate", policy, thens, work=written.kind_of_work(scheduler))
        file.write_text(write_feature(case, NOT_PLAYED, text), "utf-8")
        return file


def thens_of(case: Case, name: str) -> list[str]:
    """Return sentences about the subject of the case that would hold if the monitor or promise were not broken."""
    promise = name.partition(":")[0]
    if case.subject and promise == OWED:
        return [f'"{case.subject}" runs']
    if case.subject and promise == TOLD:
        return [f'"{case.subject}" runs or is refused']
    return written.thens_of_monitor(name, case.subject, case)
