"""Every text that a sentence accepts has one meaning: no second sentence of the same keyword matches it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pytest

from schedspec.gherkin import bdd, documents, step_check, step_decorators
from schedspec.gherkin.sentence_check import check_sentence
from schedspec.gherkin.tables import Shape
from schedspec.gherkin.things import POD, WORKLOAD, KnownThings, RunFacts

SAMPLES = {
    "d": ["2"],
    "Amount": ["8 gpus", "64Gi memory", "a third of the gpus"],
    "Request": ["8 gpus", "64Gi memory"],
    "Range": ["8 gpus", "between 2 and 4 gpus", "half of the cpu"],
    "Span": ["a second", "5 minutes"],
    "Many": ["2", "exactly 1", "at least 2", "at most 2", "between 2 and 4", "all but one of the", "30 % of the"],
}
CHINESE = {
    "Amount": ["8 gpus", "三分之一的 gpus"],
    "Range": ["8 gpus", "2 到 4 gpus", "一半的 cpu"],
    "Span": ["5 分钟", "1 秒"],
    "Many": ["恰好有 1 个", "至少有 2 个", "至多有 2 个", "有 2 到 4 个", "有除一个外的全部的", "有 30 %的"],
}
PLACEHOLDER = re.compile(r"\{(\w+)(?::(\w+))?\}")
OURS = [step for step in bdd.all_definitions() if step.function.__module__.startswith("schedspec.steps.")]


def samples(pattern: str, left: str) -> Iterator[str]:
    """Yield what is left of texts that the sentence accepts, with each value of each of its placeholders."""
    found = PLACEHOLDER.search(left)
    if found is None:
        yield left
        return
    name, kind = found[1], found[2] or ""
    known = SAMPLES if pattern.isascii() else {**SAMPLES, **CHINESE}
    words = known.get(kind) or (step_decorators.facts_of(pattern).words.get(name) if kind else None) or ["some"]
    for word in words:
        for rest in samples(pattern, left[found.end() :]):
            yield left[: found.start()] + word + rest


HOSTILE = ("", " ", ",", "a,", "a, a", "a, b", "=", "%", "{}", "é", "a" * 300, *SAMPLES["Amount"])
"""Values of a name that no name has, and lists of names."""


@pytest.mark.parametrize("step", OURS, ids=lambda step: f"{step.type} {step.pattern}")
def test_no_value_of_a_name_stops_the_check(step: bdd.StepDefinition) -> None:
    index = step_check.StepIndex(OURS)
    for value, other in itertools.product(HOSTILE, HOSTILE[:3]):
        first, *rest = step.pattern.split('"{', 1)
        quoted = "".join([first, *(re.sub(r"^\w+\}", f'"{value}', part) for part in rest)])
        quoted = re.sub(r'"\{\w+\}"', f'"{other}"', quoted)
        text = next(samples(step.pattern, quoted))
        table = (("queue", "job"), ("a", "b")) if step.accepts("datatable") else ()
        sentence = documents.Sentence(str(step.type), "", text, 1, table, tuple(range(2, 2 + len(table))))
        known = KnownThings(RunFacts())
        assert index.find(sentence) == [step]
        assert all(problem for _, problem in check_sentence(sentence, step, known)), text


@pytest.mark.parametrize("step", OURS, ids=lambda step: f"{step.type} {step.pattern}")
def test_no_other_sentence_matches(step: bdd.StepDefinition) -> None:
    texts = list(samples(step.pattern, step.pattern))
    assert texts
    for text in texts:
        matching = [it.pattern for it in OURS if it.type == step.type and it.matches(text)]
        assert matching == [step.pattern], text


OF_WORK = [
    (step, shape, column)
    for step in OURS
    for shape in getattr(step.function, "__schedspec_shapes__", {}).values()
    for column, kind in shape.refers.items()
    if {WORKLOAD, POD} & {*kind.split("|")}
]


@pytest.mark.parametrize(("shape", "column"), [it[1:] for it in OF_WORK], ids=[it[0].pattern for it in OF_WORK])
def test_a_column_that_names_work_takes_work_of_any_namespace(shape: Shape, column: str) -> None:
    row = dict.fromkeys(shape.required, "1") | {column: "red/train"}
    rows, flaws = shape.read([list(row), list(row.values())])
    assert not [flaw for _, flaw in flaws if "red/train" in flaw], flaws
    assert "red/train" in rows[0].values()
