"""The record of a running scenario: its sentences with their times, and its result.

Only the plugin's hooks write it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..api import clock
from ..gherkin.selection import shown_path
from ..results import Verdict, of_difference

if TYPE_CHECKING:
    from ..clusters import ClusterFacts
    from ..observe.history import History
    from .session import LiveSession
    from .world import PolicySpan, World


@dataclass(slots=True)
class SentenceRun:
    """One sentence of the scenario and its duration. Times are monotonic."""

    keyword: str
    text: str
    line: int
    began: float = 0.0
    ended: float | None = None
    verdict: Verdict | None = None
    background: bool = False
    table: list[list[str]] = field(default_factory=list)
    doc: str = ""

    def __str__(self) -> str:
        return f"{self.keyword.strip()} {self.text}"


@dataclass(slots=True)
class ScenarioRun:
    """A scenario during or after its run."""

    item: pytest.Item
    feature: str
    path: Path
    name: str
    line: int
    folder: Path
    """Folder of the scenario's files, beside the JUnit report."""
    rule: str = ""
    example: str = ""
    """Id of the row of an outline."""
    tags: list[str] = field(default_factory=list)
    planned: list[SentenceRun] = field(default_factory=list)
    """All sentences as written, including those of backgrounds, whether they ran or not."""
    began: float = field(default_factory=clock.monotonic)
    began_wall: float = field(default_factory=time.time)
    """Seconds since 1970 by the machine's clock, also if the cluster's clock is virtual."""
    sentences: list[SentenceRun] = field(default_factory=list)
    problem: BaseException | None = None
    """The exception that failed the scenario."""
    findings: list[str] = field(default_factory=list)
    """Texts from `pytest_schedspec_judge`."""
    session: LiveSession | None = None
    """Set together with the world, once a sentence needs the cluster."""
    world: World | None = None
    facts: ClusterFacts | None = None
    """Facts about the cluster, which may be gone when the record is written."""
    scheduler: tuple[str, str] = ("", "")
    """Name and version of the scheduler."""
    logs: dict[str, str] = field(default_factory=dict)
    """The last lines of pods' containers at the end of the scenario, by pod."""
    skipped: bool = False
    known: str = ""
    """Why the scenario was expected to fail, if it failed."""
    boot_seconds: float = 0.0
    """Seconds that the first sentence waited for a cluster; not part of the sentence's duration."""
    cleanup_began: float | None = None
    ended: float | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict so far."""
        if self.problem is not None or self.findings:
            return of_difference(self.known) if self.known else "failed"
        return "skipped" if self.skipped else "passed"

    @property
    def history(self) -> History | None:
        """The observed history."""
        return self.world.history if self.world is not None else None

    @property
    def where(self) -> str:
        """`file:line` of the last sentence that ran, else of the scenario."""
        return f"{self.shown_path}:{self.sentences[-1].line if self.sentences else self.line}"

    @property
    def shown_path(self) -> str:
        """The feature file relative to the working directory of the run, for users."""
        return shown_path(self.path, self.item.config)

    @property
    def feature_file(self) -> str:
        """The feature file relative to the root of the run."""
        try:
            return self.path.relative_to(self.item.config.rootpath).as_posix()
        except ValueError:
            return self.path.as_posix()

    @property
    def policy(self) -> str:
        """Text of the policy in force."""
        own = self.world.policy if self.world is not None else ""
        return own or (self.session.policy if self.session is not None else "")

    @property
    def policies(self) -> list[PolicySpan]:
        """The policies in the order in which they were in force."""
        own = self.session.policy if self.session is not None else ""
        spans = self.world.policies if self.world is not None else ()
        return [span if span.text else span._replace(text=own) for span in spans]

    @property
    def policy_name(self) -> str:
        """Name of the policy in force, from the sentence or its file."""
        own = self.world.policy_name if self.world is not None else ""
        return own or (self.session.policy_name if self.session is not None else "")


SCENARIO_RUN: pytest.StashKey[ScenarioRun] = pytest.StashKey()
"""Key of an item's running scenario."""
