"""Fixtures that run pytest inside pytest, with the plugin schedspec.plugin and steps that need no cluster."""

from __future__ import annotations

from collections.abc import Callable

import numpy  # noqa: F401 - a process can load it only once, and an inner run forgets its imports
import pytest

from schedspec.clusters.programs import binaries

STEPS = '''
from pytest_bdd import given, when, then, parsers
from schedspec.gherkin.step_decorators import given as own_given

@given(parsers.parse('there are {n:d} pods'))
def pods(n):
    """Use this number of pods."""

@when("nothing happens")
def nothing():
    """Nothing at all."""

@then("all is well")
def well():
    """It is."""

@then("all is lost")
def lost():
    """It is not."""
    assert 1 + 1 == 3
'''

Run = Callable[..., pytest.RunResult]


@pytest.fixture(autouse=True)
def without_programs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the check for programs in runs of `specs`, which boot no cluster: nothing is built for them."""
    if "specs" in request.fixturenames and "bare_machine" not in request.fixturenames:
        monkeypatch.setattr(binaries, "require", lambda *_words, **_named: None)


@pytest.fixture
def specs(pytester: pytest.Pytester) -> Run:
    """Return a function that writes features (by name, without suffix) and steps, and runs pytest on them."""
    pytester.makeini("[pytest]\nstrict = true\nminversion = 9.0\nmarkers =\n    smoke: a quick scenario\n")

    def run(*arguments: str, steps: str = "", **features: str) -> pytest.RunResult:
        pytester.makeconftest(STEPS + steps)
        for name, text in features.items():
            (pytester.path / f"{name}.feature").write_text(text, "utf-8")
        return pytester.runpytest_inprocess("-p", "schedspec.plugin", "-p", "no:cacheprovider", *arguments)

    return run
