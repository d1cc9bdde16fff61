"""Documents of users and clusters are read within bounds: what exceeds them is refused in one sentence."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from schedspec.lab.plan.changes import ChangeError, Side
from schedspec.lab.simulate.columns import InputError
from schedspec.lab.simulate.inputs import read_scene
from schedspec.scheduler.lint import lint
from schedspec.scheduler.model.documents import MAX_DEPTH, DocumentError, compose, construct
from schedspec.scheduler.model.errors import BadInputError, PlacedError
from schedspec.scheduler.policy.loader import PolicyError, load_policy
from schedspec.virtual.state import StateError, read_state
from tests.support.damage import BOMB, damaged_text

ROOT = Path(__file__).parents[3]
REAL = [
    *sorted((ROOT / "templates" / "policies").glob("*.yaml")),
    *sorted((ROOT / "features" / "manifests").glob("*.yaml")),
    *sorted((ROOT / "features" / "manifests").glob("*.conf")),
    *sorted((ROOT / "deploy").glob("*.yaml")),
]


@pytest.mark.parametrize("key", ["a", "'a'", '"a"'])
@pytest.mark.parametrize(
    "text", ["a: 1\n{}: 2\n", "x:\n- {{a: 1, b: 2,\n   {}: 3}}\n", "x: {{y: {{a: [],\n {}: 1}}}}\n"]
)
def test_a_key_that_is_written_twice_is_refused_at_its_second_line(text: str, key: str) -> None:
    (node,) = compose(text.format(key))
    with pytest.raises(DocumentError, match="'a' is written twice") as refused:
        construct(node)
    assert refused.value.line == text.format(key).count("\n")


@pytest.mark.parametrize("text", ["1:30", "2026-01-01", "2026-01-01T10:00:00Z", "2024-99-99", "190:20:30.15"])
def test_a_date_and_a_number_with_colons_are_texts_as_for_kubectl(text: str) -> None:
    (node,) = compose(f"a: {text}\nb: [{{c: {text}}}]\n")
    assert construct(node) == {"a": text, "b": [{"c": text}]}


def test_a_merged_mapping_may_overrule_its_keys() -> None:
    (node,) = compose("x: &x {a: 1, b: 2}\ny: {<<: *x, a: 3}\nz: [*x, *x]\n")
    assert construct(node)["y"] == {"a": 3, "b": 2}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (BOMB, "aliases stand for too many values"),
        ("[" * 100_000, "nested too deep"),
        ("".join(" " * n + "a:\n" for n in range(MAX_DEPTH + 2)), "nested too deep"),
        ("a: &a\n  b: *a\n", "contains itself"),
        ("a: [1\n", "not YAML"),
        ("a: \x00\n", "not YAML"),
        ("a: *b\n", "not YAML"),
        ("kind: \ud800\n", "not YAML"),
    ],
)
def test_a_text_beyond_the_bounds_is_refused_in_one_sentence(text: str, problem: str) -> None:
    with pytest.raises(DocumentError, match=problem) as refused:
        compose(text)
    assert "\n" not in f"{refused.value.problem}; {refused.value.remedy}"


@pytest.mark.parametrize("text", ["!!python/object:os.system x", "!!timestamp soon", "!unknown {}"])
def test_a_value_that_is_not_plain_is_refused(text: str) -> None:
    with pytest.raises(DocumentError, match="not an object"):
        construct(*compose(text))


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
def test_real_files_are_read_as_before(path: Path) -> None:
    text = path.read_text("utf-8")
    assert [construct(node) for node in compose(text)] == [one for one in yaml.safe_load_all(text) if one is not None]


def test_shared_values_are_no_bomb() -> None:
    text = "base: &base {cpu: 4, memory: 8Gi}\nqueues:\n" + "".join(f"- {{q: {n}, has: *base}}\n" for n in range(2000))
    assert len(construct(*compose(text))["queues"]) == 2000


def _state(text: str, folder: Path) -> None:
    path = folder / "state.yaml"
    path.write_text(text, "utf-8", "surrogatepass")
    read_state(path)


def _scene(text: str, folder: Path) -> None:
    path = folder / "queues.yaml"
    path.write_text(text, "utf-8", "surrogatepass")
    read_scene(["1x1"], [path], "nvidia.com/gpu")


READERS: dict[str, Callable[[str, Path], Any]] = {
    "lint": lambda text, _: lint(text, "policy", [("queues", text)]),
    "a policy": lambda text, _: load_policy(text, "policy"),
    "plan": lambda text, _: Side("new", {"a.yaml": text}).declared(None),
    "a state": _state,
    "simulate": _scene,
}
REFUSALS = (BadInputError, ChangeError, InputError, PlacedError, PolicyError, StateError)


@pytest.mark.parametrize("reader", READERS)
@given(data=st.data())
def test_mutated_and_truncated_files_never_end_in_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, reader: str, data: st.DataObject
) -> None:
    text = damaged_text(data, data.draw(st.sampled_from(REAL)).read_text("utf-8"))
    with contextlib.suppress(*REFUSALS):
        READERS[reader](text, tmp_path_factory.getbasetemp())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1 << 20, "more than 1 GB"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("part", ["metadata: name", "spec: [1]", "metadata: [a]", "spec: text"])
@pytest.mark.parametrize("kind", ["Queue", "Node", "PriorityClass", "PodDisruptionBudget", "ClusterRole"])
def test_a_part_of_another_type_never_ends_in_a_traceback(reader: str, part: str, kind: str, tmp_path: Path) -> None:
    with contextlib.suppress(*REFUSALS):
        READERS[reader](f"apiVersion: v1\nkind: {kind}\n{part}\n", tmp_path)
