"""Explore a handful of scenarios on an embedded cluster with our scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from schedspec.cli.clusters import down_command
from schedspec.cli.explore import explore_command


@pytest.fixture
def _cluster_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("SCHEDSPEC_STATE", str(tmp_path / "state"))
    yield
    CliRunner().invoke(down_command, [], standalone_mode=False, catch_exceptions=False)


@pytest.mark.embedded
@pytest.mark.slow
@pytest.mark.usefixtures("_cluster_is_deleted")
def test_a_handful_of_scenarios_is_played_and_judged(tmp_path: Path) -> None:
    words = ["--cluster", "embedded", "--seeds", "4", "--without", "guarantee", "--out", str(tmp_path / "found")]
    ran = CliRunner().invoke(explore_command, words, standalone_mode=False, catch_exceptions=False)
    assert ran.return_value == 0, ran.output
    assert "4 scenarios from seed 1, no findings" in ran.output
    assert "not judged" not in ran.output
