"""One scenario while it runs: what was said when, and what came of it. Written by the plugin's hooks only."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from ..clusters import ClusterFacts
    from ..observe.history import History
    from .session import LiveSession
    from .world import World

Verdict = Literal["passed", "failed", "skipped", "known"]


@dataclass(slots=True)
class SentenceRun:
    """One sentence of the scenario, and how long it took. Times are monotonic."""

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
    """A scenario that runs, or has run."""

    item: pytest.Item
    feature: str
    path: Path
    name: str
    line: int
    folder: Path
    """Where this scenario's files go, beside the JUnit report."""
    rule: str = ""
    example: str = ""
    """Of an outline: the id of its row."""
    tags: list[str] = field(default_factory=list)
    planned: list[SentenceRun] = field(default_factory=list)
    """All sentences as written, those of the backgrounds included, said or not."""
    began: float = field(default_factory=time.monotonic)
    began_wall: float = field(default_factory=time.time)
    sentences: list[SentenceRun] = field(default_factory=list)
    problem: BaseException | None = None
    """What failed it."""
    findings: list[str] = field(default_factory=list)
    """What `pytest_schedspec_judge` said."""
    session: LiveSession | None = None
    """This and the world are set once a sentence has asked for the cluster."""
    world: World | None = None
    facts: ClusterFacts | None = None
    """Of the cluster, which may be gone when the record is made."""
    scheduler: tuple[str, str] = ("", "")
    """Its name and its version."""
    skipped: bool = False
    known: str = ""
    """Why it was expected to fail, if it has."""
    boot_seconds: float = 0.0
    """How long the first sentence waited for a cluster; not counted as the sentence's own."""
    cleanup_began: float | None = None
    ended: float | None = None

    @property
    def verdict(self) -> Verdict:
        """What became of it, so far."""
        if self.problem is not None or self.findings:
            return "known" if self.known else "failed"
        return "skipped" if self.skipped else "passed"

    @property
    def history(self) -> History | None:
        """What the cluster has shown."""
        return self.world.history if self.world is not None else None

    @property
    def where(self) -> str:
        """`file:line` of the sentence that was said last, else of the scenario."""
        return f"{self.shown_path}:{self.sentences[-1].line if self.sentences else self.line}"

    @property
    def shown_path(self) -> str:
        """The feature file, from the root of the run."""
        try:
            return self.path.relative_to(self.item.config.rootpath).as_posix()
        except ValueError:
            return self.path.as_posix()

    @property
    def policy(self) -> str:
        """The text of the policy in force."""
        own = self.world.policy if self.world is not None else ""
        return own or (self.session.policy if self.session is not None else "")


SCENARIO_RUN: pytest.StashKey[ScenarioRun] = pytest.StashKey()
"""Where an item keeps its running scenario."""
