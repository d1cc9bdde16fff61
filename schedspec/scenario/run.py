"""One scenario while it runs: what was said when, and what came of it. Written by the plugin's hooks only."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from ..observe.history import History
    from .session import LiveSession
    from .world import World

Verdict = Literal["passed", "failed"]


@dataclass(slots=True)
class SentenceRun:
    """One sentence of the scenario, and how long it took. Times are monotonic."""

    keyword: str
    text: str
    line: int
    began: float
    ended: float | None = None
    verdict: Verdict | None = None

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
    ended: float | None = None

    @property
    def history(self) -> History | None:
        """What the cluster has shown."""
        return self.world.history if self.world is not None else None

    @property
    def where(self) -> str:
        """`file:line` of the sentence that was said last, else of the scenario."""
        try:
            shown = self.path.relative_to(self.item.config.rootpath)
        except ValueError:
            shown = self.path
        return f"{shown}:{self.sentences[-1].line if self.sentences else self.line}"

    @property
    def policy(self) -> str:
        """The text of the policy in force."""
        own = self.world.policy if self.world is not None else ""
        return own or (self.session.policy if self.session is not None else "")


SCENARIO_RUN: pytest.StashKey[ScenarioRun] = pytest.StashKey()
"""Where an item keeps its running scenario."""
