"""pytest plugin (`-p tests.test_the_tests.keep_judging`): after a failed `Then`, judge the other `Then` sentences too.

A `Then` sentence is called a claim. After the first failed claim only claims run. The scenario still fails.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from schedspec.api.errors import Unmet
from schedspec.gherkin.collection import RUN_FACTS
from schedspec.observe.expect import Expect
from schedspec.scenario.run import SCENARIO_RUN

BROKEN: pytest.StashKey[list[Unmet]] = pytest.StashKey()


class _Current:
    """The current sentence: whether it is a claim, and its unmet expectation."""

    claims = False
    unmet: Unmet | None = None


def _recording(expectation: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(expectation)
    def recorded(*args: Any, **named: Any) -> None:
        if _Current.unmet is not None:  # the rest of the sentence depends on the unmet expectation
            return
        try:
            expectation(*args, **named)
        except Unmet as unmet:
            if not _Current.claims:
                raise
            _Current.unmet = unmet

    return recorded


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Record unmet expectations. Names are unchecked: without its `When`, a scenario names jobs that do not exist."""
    config.stash[RUN_FACTS] = replace(config.stash[RUN_FACTS], checks_names=False)
    for name in ("now", "eventually", "settles", "consistently"):
        setattr(Expect, name, _recording(getattr(Expect, name)))


def pytest_bdd_before_step(request: pytest.FixtureRequest, step: Any) -> None:
    """After a failed claim, refuse every sentence that is not a claim."""
    _Current.unmet, _Current.claims = None, step.type == "then"
    broken = request.node.stash.setdefault(BROKEN, [])
    if broken and not _Current.claims:
        raise broken[0]


@pytest.hookimpl(trylast=True)
def pytest_bdd_after_step(request: pytest.FixtureRequest) -> None:
    """Record the failed claim."""
    if _Current.unmet is not None:
        request.node.stash[BROKEN].append(_Current.unmet)
        running = request.node.stash[SCENARIO_RUN]
        running.sentences[-1].verdict = "failed"
        running.problem = running.problem or _Current.unmet
    _Current.unmet, _Current.claims = None, False  # this may be the last sentence


@pytest.hookimpl(trylast=True)
def pytest_bdd_after_scenario(request: pytest.FixtureRequest) -> None:
    """Fail the scenario if any claim has failed."""
    _Current.unmet, _Current.claims = None, False
    if broken := request.node.stash.get(BROKEN, []):
        raise broken[0]
