"""Each scenario of the suite has exactly one conformance level."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedspec.conformance import levels
from schedspec.conformance.levels import ISSUES, Level
from schedspec.gherkin import documents

FEATURES = Path(__file__).parents[3] / "features"
ALL = sorted(FEATURES.rglob("*.feature"))


def tags_of(path: Path) -> dict[str, set[str]]:
    """Return the tags of each scenario, with those of its feature and of its rule."""
    document = documents.read_document(path)
    found = {}
    for node in documents.scenarios_of(document):
        rules = [rule for rule in documents.rules_of(document) if rule.location.line < node.location.line]
        within = [*document.tags, *(rules[-1].tags if rules else ()), *node.tags]
        found[node.name] = {tag.name.lstrip("@") for tag in within}
    return found


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.relative_to(FEATURES).as_posix())
def test_every_scenario_has_exactly_one_level(path: Path) -> None:
    without = [name for name, tags in tags_of(path).items() if levels.of_tags(tags) is None]
    assert without == [], f"{path.name}: tag each with one of {', '.join(f'@{level}' for level in Level)}"


@pytest.mark.parametrize(
    "path", [path for path in ALL if path.name.endswith(".zh.feature")], ids=lambda path: path.name.partition(".")[0]
)
def test_a_translation_has_the_levels_of_its_original(path: Path) -> None:
    original = path.with_name(path.name.replace(".zh.feature", ".feature"))
    assert list(map(levels.of_tags, tags_of(path).values())) == list(map(levels.of_tags, tags_of(original).values()))


@pytest.mark.parametrize(
    ("tags", "level"),
    [(["core"], Level.CORE), (["needs-gangs", "dialect"], Level.DIALECT), ([], None), (["core", "extended"], None)],
)
def test_the_level_is_the_only_tag_that_names_one(tags: list[str], level: Level | None) -> None:
    assert levels.of_tags(tags) == level


@pytest.mark.parametrize("path", sorted((FEATURES / "gallery").glob("*.feature")), ids=lambda path: path.stem)
def test_every_scenario_of_the_gallery_names_its_issue(path: Path) -> None:
    assert [tags for tags in tags_of(path).values() if len(tags & ISSUES.keys()) != 1] == []


def test_every_level_is_described() -> None:
    assert list(levels.MEANING) == list(Level)
