"""A night of each scheduler: what is planted is found, shown, named and reduced, and nothing else is found.

The nights are short here. `python -m tests.schedspec.lab.recorder.nights` runs nights of 20 minutes.
"""

from __future__ import annotations

import html
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from schedspec.cli import schedspec
from schedspec.scheduler.model.times import timestamp
from schedspec.virtual.state.over_time import span_of
from tests.schedspec.lab.recorder.nights import SCHEDULERS, judged, night, own_of
from tests.schedspec.lab.recorder.plants import Planted

pytestmark = [pytest.mark.embedded, pytest.mark.nightly]
MINUTES = 4.0
"""A wait is hopeless after two of them."""


def run(*arguments: object) -> Result:
    return CliRunner().invoke(schedspec, [*map(str, arguments)], standalone_mode=False)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_in_a_quiet_night_nothing_is_found(tmp_path: Path, scheduler: str) -> None:
    night(scheduler, MINUTES, tmp_path, is_planted=False)
    assert [one.line for one in judged(tmp_path / "recording")] == []


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_what_is_planted_in_a_night_is_found_shown_named_and_reduced(tmp_path: Path, scheduler: str) -> None:
    planted, recording = night(scheduler, MINUTES, tmp_path, is_planted=True), tmp_path / "recording"
    found = judged(recording)
    assert [one.line for one in own_of(found, planted)] == []
    page = page_of(recording, tmp_path / "night.html")
    for plant in planted:
        [one, *_] = filter(plant.is_found_by, found)
        assert one.text in page
        assert one.about in page
        if plant.job:
            assert_is_named(recording, plant)
        feature = tmp_path / f"{plant.monitor}.feature"
        reduced = run("reduce", recording, "--because", plant.because, "-o", feature)
        assert reduced.return_value == 0, reduced.output
        first = feature.read_text("utf-8").splitlines()[1]
        assert f"by its model in the place of {scheduler}, from " in first
        if plant.is_own:
            by = ["--scheduler", scheduler, "--cluster", "embedded", "--minutes", 15]
            again = run("reduce", recording, "--because", plant.because, "-o", tmp_path / "own.feature", *by)
            assert again.return_value == 0, again.output


def page_of(recording: Path, page: Path) -> str:
    since, until = span_of(recording)
    assert run("report", recording, "--from", timestamp(since), "--to", timestamp(until), "-o", page).return_value == 0
    return html.unescape(page.read_text("utf-8"))


def assert_is_named(recording: Path, plant: Planted) -> None:
    answer = run("who", "evicted", plant.job, "--recording", recording)
    assert answer.return_value == 0, answer.output
    assert plant.preemptor in answer.output
    assert ("inferred" in answer.output) == plant.is_inferred
