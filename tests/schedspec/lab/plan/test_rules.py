"""A plan reports the team's own scenarios whose verdict a change of the policy flips."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from schedspec.cli import init
from schedspec.lab.plan.rules import run_rules

INTO = Path(init.__file__).parent / "beginning" / "into"


@pytest.fixture
def team(tmp_path: Path) -> Path:
    """Return a folder with the files that `schedspec init` writes."""
    for source in (path for path in INTO.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        target = tmp_path / source.relative_to(INTO).as_posix().removesuffix(".txt")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    return tmp_path


def test_a_scenario_that_the_change_breaks_flips(team: Path) -> None:
    policy = (team / "policies" / "team.yaml").read_text("utf-8")
    proposed = policy.replace(", reclaim", "")
    (team / "policies" / "team.yaml").write_text(proposed, "utf-8")  # the pull request is checked out
    found = run_rules([team / "features"], (policy, proposed))
    assert found.problem == ""
    assert found.scenarios >= 2
    (flip,) = found.flips
    assert "A release build gets its two gpus" in flip or "a_release_build" in flip
    assert flip.endswith("passed → failed")


@pytest.mark.nightly
@pytest.mark.embedded
def test_an_upgrade_flips_the_scenario_that_it_repairs() -> None:
    """kueue#13607 was repaired in v0.19.1."""
    feature = Path(__file__).parents[4] / "features" / "gallery" / "kueue_13607.feature"
    found = run_rules([feature], ("", ""), ("kueue@v0.19.0", "kueue@v0.19.1"))
    assert (found.problem, len(found.flips)) == ("", 1)
    assert found.flips[0].endswith("→ passed")
    assert found.title == "1 scenario, 1 flip (kueue@v0.19.0 and kueue@v0.19.1)"
