"""pytest plugin (`-p tests.test_the_tests.keep_judging`): judge the other `Then` sentences after one has failed.

After the first failed claim, only claims are judged, and no other sentence runs. The scenario still fails.
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


class _Now:
    """The current sentence: whether it is a claim, and its unmet expectation."""

    claims = False
    unmet: Unmet | None = None


def _noting(expectation: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(expectation)
    def noted(*args: Any, **named: Any) -> None:
        if _Now.unmet is not None:  # the rest of the sentence depends on the unmet expectation
            return
        try:
            expectation(*args, **named)
        except Unmet as unmet:
            if not _Now.claims:
                raise
            _Now.unmet = unmet

    return noted


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Note unmet expectations. Names are not checked: without its `When`, a scenario names jobs that do not exist."""
    config.stash[RUN_FACTS] = replace(config.stash[RUN_FACTS], checks_names=False)
    for name in ("now", "eventually", "settles", "consistently"):
        setattr(Expect, name, _noting(getattr(Expect, name)))


def pytest_bdd_before_step(request: pytest.FixtureRequest, step: Any) -> None:
    """After a failed claim, refuse every sentence that is not a claim."""
    _Now.unmet, _Now.claims = None, step.type == "then"
    broken = request.node.stash.setdefault(BROKEN, [])
    if broken and not _Now.claims:
        raise broken[0]


@pytest.hookimpl(trylast=True)
def pytest_bdd_after_step(request: pytest.FixtureRequest) -> None:
    """Record the failed claim."""
    if _Now.unmet is not None:
        request.node.stash[BROKEN].append(_Now.unmet)
        running = request.node.stash[SCENARIO_RUN]
        running.sentences[-1].verdict = "failed"
        running.problem = running.problem or _Now.unmet
    _Now.unmet, _Now.claims = None, False  # the scenario may end here


@pytest.hookimpl(trylast=True)
def pytest_bdd_after_scenario(request: pytest.FixtureRequest) -> None:
    """Fail the scenario if any claim has failed."""
    _Now.unmet, _Now.claims = None, False
    if broken := request.node.stash.get(BROKEN, []):
        raise broken[0]
