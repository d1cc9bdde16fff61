"""Chinese features equal their English originals: each sentence has the same function, values and table."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from schedspec import steps
from schedspec.gherkin import bdd, catalogue, documents
from schedspec.steps.zh import COLUMNS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "features" / "cross_queue_reclaim"
ENGLISH = sorted(path for path in FOLDER.glob("*.feature") if ".zh." not in path.name)

Call = tuple[Callable[..., object], dict[str, Any], list[list[str]]]
"""The call of a sentence: its function, its values, and its table in English."""


def calls(path: Path) -> Iterator[tuple[list[str], list[Call]]]:
    """Yield, for every scenario and every row of its examples, its tags and the calls of its sentences."""
    for _, node in documents.placed_scenarios(documents.read_document(path)):
        template = bdd.scenario_wrapper_template_registry[bdd.bind(path, node)]
        rows = [row for examples in template.examples for row in examples.as_contexts()] or [{}]
        yield from ((sorted(template.tags), [call(step) for step in template.render(row).steps]) for row in rows)


def call(step: Any) -> Call:
    """Return the call of a sentence of ours. Other tests define steps, too, in the same process."""
    (found,) = [
        context
        for context in bdd.step_function_context_registry.values()
        if context.type in (None, step.type)
        and context.parser.is_matching(step.name)
        and bdd.is_ours(inspect.unwrap(context.step_func))
    ]
    raw = [list(row) for row in step.datatable.raw()] if step.datatable is not None else []
    table = [[COLUMNS.get(name, name) for name in row] for row in raw[:1]] + raw[1:]
    return inspect.unwrap(found.step_func), found.parser.parse_arguments(step.name) or {}, table


@pytest.mark.parametrize("path", ENGLISH, ids=lambda path: path.stem)
def test_a_chinese_feature_equals_its_english_original(path: Path) -> None:
    chinese = path.with_suffix(".zh.feature")
    assert "# language: zh-CN" in chinese.read_text("utf-8")
    sentences = list(calls(path))
    assert sentences
    assert list(calls(chinese)) == sentences


def test_every_sentence_can_be_said_in_chinese() -> None:
    wordings: dict[Callable[..., object], list[str]] = {}
    for step in bdd.all_definitions():
        if step.function.__module__.startswith("schedspec.steps."):
            wordings.setdefault(inspect.unwrap(step.function), []).append(step.pattern)
    assert wordings
    assert [patterns for patterns in wordings.values() if all(map(str.isascii, patterns))] == []


def test_every_column_has_a_chinese_name() -> None:
    columns = {
        name
        for entry in catalogue.sentences(steps.MODULES)
        if entry.language == "en"
        for names in entry.columns.values()
        for name in names
    }
    assert columns
    assert sorted(columns - set(COLUMNS.values()) - {"cpu", "pods"}) == []


def test_the_samples_of_the_page_are_scenarios(tmp_path: Path) -> None:
    samples = re.findall(r"```gherkin\n(.*?)```", (ROOT / "docs/writing-scenarios.md").read_text("utf-8"), re.DOTALL)
    assert [sample for sample in samples if "zh-CN" in sample]
    for sample in samples:
        (tmp_path / "sample.feature").write_text(sample, "utf-8")
        assert [sentences for _, sentences in calls(tmp_path / "sample.feature") if sentences]
