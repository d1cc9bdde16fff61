"""A requirement is matched with all items at once as it is matched with each, at a cost that no value multiplies."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.model.matching import requirement_holds
from schedspec.scheduler.model.objects import SelectorRequirement
from schedspec.scheduler.placement.label_column import LabelColumn, steps_of_requirement
from tests.support.core.lines import counted

OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Near"]
VALUES = st.sampled_from(["", "a", "b", "1", "+1", "-2", "10", "010", "1_0", " 1", "9" * 63, "x"])


@given(st.lists(st.none() | VALUES, max_size=12), st.sampled_from(OPERATORS), st.lists(VALUES, max_size=4))
def test_a_column_holds_where_the_requirement_holds_for_the_item(
    labels: list[str | None], operator: str, values: list[str]
) -> None:
    item = SelectorRequirement("key", operator, values)
    column = LabelColumn(len(labels), {row: value for row, value in enumerate(labels) if value is not None})
    alone = [requirement_holds(item, {} if value is None else {"key": value}) for value in labels]
    assert column.holding(item).tolist() == alone


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_cost_of_a_requirement_does_not_depend_on_how_many_values_the_label_has(operator: str) -> None:
    lines = {}
    for distinct in (1, 4_000):
        column = LabelColumn(4_000, {row: f"{row % distinct}" for row in range(4_000)})
        item = SelectorRequirement("key", operator, ["7"])
        column.holding(item)  # sorts the numbers, once for all requirements
        mask, lines[distinct] = counted(lambda column=column, item=item: column.holding(item))  # type: ignore[misc]
        assert mask.dtype == np.bool_
    assert lines[4_000] <= lines[1] + 8
    assert lines[4_000] <= 4 * steps_of_requirement(item, 4_000)
