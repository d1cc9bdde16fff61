"""Tables of a feature: correct tables are read, all others are refused with row and column."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schedspec.gherkin import tables
from schedspec.scheduler.model import resources

COLUMNS: dict[str, tables.Column] = {
    "queue": ("name", tables.name),
    "cpu": ("cpu", tables.quantity),
    "card": ("card", tables.word),
    "start after": ("start_after", tables.duration),
    "weight": ("weight", tables.whole),
    "cards": ("cards", tables.count),
    "deserved": ("deserved", tables.amounts),
    "reclaimable": ("reclaimable", tables.yes),
}


def test_rows_become_parameters_without_empty_cells() -> None:
    table = [["queue", "weight", "deserved", "reclaimable"], ["a", "3", "cpu 4, memory 8Gi", "no"], ["b", "", "", ""]]
    assert tables.rows(table, COLUMNS) == [
        {"name": "a", "weight": 3, "deserved": {"cpu": "4", "memory": "8Gi"}, "reclaimable": False},
        {"name": "b"},
    ]


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (
            [["queue", "wieght"], ["a", "3"]],
            "unknown column 'wieght' (is 'weight' meant?); this table takes: queue, cpu, card, start after, weight",
        ),
        ([["queue", "queue"], ["a", "b"]], "the column 'queue' appears twice"),
        ([["weight"], ["3"]], "the column 'queue' is missing; there are: weight"),
        ([["queue"], [""]], "row 1: 'queue' is empty"),
        ([["queue", "weight"], ["a", "1"], ["b", "x"]], "row 2: weight 'x': write a whole number"),
        ([["queue", "deserved"], ["a", "4"]], "row 1: deserved '4': write a list of resources"),
        ([["queue", "reclaimable"], ["a", "maybe"]], "row 1: reclaimable 'maybe': write yes or no"),
        (
            [["queue"], ["research\n  maxRetry: 9"]],
            "row 1: queue 'research\\n  maxRetry: 9': write a valid Kubernetes name",
        ),
        ([["queue", "cpu"], ["a", '1", memory: "5Gi']], "row 1: cpu '1\", memory: \"5Gi': write a quantity"),
        ([["queue", "cpu"], ["a", "1 "]], "row 1: cpu '1 ': write a quantity"),
        ([["queue", "cpu"], ["a", "-1"]], "row 1: cpu '-1': write a quantity"),
        ([["queue", "cpu"], ["a", "NaN"]], "row 1: cpu 'NaN': write a quantity"),
        ([["queue", "weight"], ["a", "1_0"]], "row 1: weight '1_0': write a whole number"),
        ([["queue", "cards"], ["a", "-1"]], "row 1: cards '-1': write a whole number that is not below 0"),
        (
            [["queue", "cards"], ["a", "100000000"]],
            "row 1: cards '100000000': write at most 150000: Kubernetes supports",
        ),
        ([["queue", "weight"], ["a", "2147483648"]], "row 1: weight '2147483648': write at most 2147483647"),
        ([["queue", "weight"], ["a", "9" * 5000]], "write a whole number"),
        ([["queue", "card"], ["a", "A: {b}"]], "row 1: card 'A: {b}': write one word"),
        ([["queue", "start after"], ["a", "1.2.3s"]], "row 1: start after '1.2.3s': write a duration"),
        ([["queue", "deserved"], ["a", "cpu 4, cpu 5"]], "row 1: deserved 'cpu 4, cpu 5': cpu appears twice"),
        ([["queue", "deserved"], ["a", "cpu 4}, x: {"]], "row 1: deserved 'cpu 4}, x: {': 'x:' is no name"),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(table: list[list[str]], text: str) -> None:
    with pytest.raises(tables.TableError) as raised:
        tables.rows(table, COLUMNS, required=("queue",))
    assert text in str(raised.value)


RESOURCES = {"job": ("name", tables.name), "gpus": (tables.of_resource("nvidia.com/gpu"), tables.whole_amount)}


def test_a_column_with_the_name_of_a_resource_has_amounts_of_the_resource() -> None:
    table = [["job", "gpus", "amd.com/gpu", "ephemeral-storage"], ["a", "8", "2", "1Gi"], ["b", "", "1", ""]]
    assert tables.rows(table, RESOURCES) == [
        {"name": "a", "resources": {"nvidia.com/gpu": "8", "amd.com/gpu": "2", "ephemeral-storage": "1Gi"}},
        {"name": "b", "resources": {"amd.com/gpu": "1"}},
    ]


@pytest.mark.parametrize(
    ("columns", "table", "text"),
    [
        (RESOURCES, [["job", "amd.com/gpu"], ["a", "half"]], "row 1: amd.com/gpu 'half': write a whole number"),
        (RESOURCES, [["job", "gpu's"], ["a", "1"]], "unknown column \"gpu's\" (is 'gpus' meant?)"),
        (COLUMNS, [["queue", "amd.com/gpu"], ["a", "1"]], "unknown column 'amd.com/gpu'"),
    ],
)
def test_an_invalid_column_of_a_resource_is_refused(
    columns: dict[str, tables.Column], table: list[list[str]], text: str
) -> None:
    with pytest.raises(tables.TableError) as raised:
        tables.rows(table, columns)
    assert text in str(raised.value)


@pytest.mark.parametrize("word", ["gpus", "gpu", "cards", "nvidia.com/gpu"])
def test_amounts_accept_the_words_of_columns(word: str) -> None:
    assert tables.amounts(f"cpu 4, {word} 8") == {"cpu": "4", "nvidia.com/gpu": "8"}


@given(st.text(alphabet=" 0123456789.+-eEmnukMGTPKi_xg٤\t", max_size=6))
@example("256 Gi")
@example("1E")
@example("5.")
def test_a_quantity_is_refused_where_the_scheduler_refuses_it(text: str) -> None:
    def accepted() -> bool:
        try:
            return resources.parse({"cpu": text})["cpu"] >= 0 and not text.startswith("-")
        except resources.QuantityError:
            return False

    try:
        tables.quantity(text)
    except ValueError:
        assert not accepted()
    else:
        assert accepted()


@pytest.mark.parametrize("unit", ["Mi", "Gi", "Ti"])
@pytest.mark.parametrize("resource", ["cpu", "gpus", "amd.com/gpu"])
def test_a_unit_of_memory_is_refused_for_what_is_counted(resource: str, unit: str) -> None:
    with pytest.raises(ValueError, match=r"write (?:cpus|whole devices)"):
        tables.amounts(f"{resource} 2{unit}")
    assert tables.amounts(f"memory 2{unit}, {resource} 2k")["memory"] == f"2{unit}"


@pytest.mark.parametrize("text", ["train", "red/train", f"{'n' * 16}/train"])
def test_a_name_may_begin_with_a_namespace(text: str) -> None:
    assert tables.in_namespace(tables.plain_name)(text) == text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("/train", "write a valid Kubernetes name"),
        ("red/", "write a valid Kubernetes name"),
        ("a/b/train", "write a valid Kubernetes name"),
        ("re.d/train", "write a name without '.'"),
        (f"{'n' * 17}/train", "at most 16 characters before the '/'"),
    ],
)
def test_a_namespace_that_no_cluster_has_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        tables.in_namespace(tables.plain_name)(text)
