"""Judge cases on a cluster: each is written as a feature and runs with the scheduler's adapter.

A feature shows an eviction or a wait if its sentence holds, and a broken rule if the monitor finds something in it.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from .. import distribution
from . import written
from .confirm import Site, run, shows
from .feature import Text, write_feature


class Live:
    """The test of a reduction on a cluster. It prints a line for each candidate: a run costs seconds."""

    def __init__(self, site: Site, folder: Path, minutes: float) -> None:
        self._site, self._folder, self._minutes = site, folder, minutes
        self._begun, self._tried = time.monotonic(), 0
        self._names = {text: name for name, text in written.known_policies().items()}

    def shows(self, case: Any, wanted: Any) -> bool:
        """Whether enough runs of a case show the incident."""
        feature = self._write(case, wanted)
        monitor = wanted.name.partition(":")[0] if type(wanted).__name__ == "Broken" else ""

        def once() -> bool:
            ran = run([feature], self._site)
            return ran.finds(monitor) if monitor else not ran.problem

        is_shown = shows(self._site, once)
        self._tried += 1
        minutes = (time.monotonic() - self._begun) / 60
        word = "shows it" if is_shown else "does not show it"
        sys.stderr.write(
            f"{self._tried} candidates, {minutes:.1f} of {self._minutes:g} min: {case.size} objects, {word}\n"
        )
        return is_shown

    def _write(self, case: Any, wanted: Any) -> Path:
        room = distribution.load("scheduler.incident")
        feature, policy = self._folder / "candidate.feature", self._folder / "candidate.policy.yaml"
        name = self._names.get(case.policy)
        policy.write_text(case.policy, "utf-8")
        given = f'the policy "{name}"' if name else f'the policy of "{policy.name}"'
        thens = room.thens_of(case, wanted, room.NOT_PLAYED) or written.thens_of_monitor(wanted.name, "", case)
        feature.write_text(write_feature(case, room.NOT_PLAYED, Text("A candidate", given, thens)), "utf-8")
        return feature
