"""Templates: their output and their errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from schedspec.api.errors import TemplateError
from schedspec.scenario.templates import Rendered, Templates, seconds


@pytest.fixture
def templates(tmp_path: Path) -> Templates:
    (tmp_path / "queue.yaml.j2").write_text(
        """apiVersion: v1
kind: Queue
metadata:
  name: {{ name }}
spec:
  tasks:
    - replicas: {{ n | default(1) }}
"""
    )
    (tmp_path / "broken.yaml.j2").write_text("a: [1,\nb: 2\n")
    (tmp_path / "syntax.yaml.j2").write_text("a: 1\n{% if x %}\n")
    (tmp_path / "nothing.yaml.j2").write_text("just: this\n")
    (tmp_path / "_part.j2").write_text("{% macro m(a) %}\n{{ a.b.c }}\n{% endmacro %}\n")
    (tmp_path / "includes.yaml.j2").write_text('{% import "_part.j2" as part %}\nx: {{ part.m(name) }}\n')
    (tmp_path / "time.yaml.j2").write_text("a: 1\nb: {{ name | seconds }}\n")
    return Templates([tmp_path / "own", tmp_path], {"namespace": "ns"}, [tmp_path / "house"])


def only(rendered: list[Rendered]) -> Rendered:
    assert len(rendered) == 1
    return rendered[0]


def test_a_template_is_rendered_with_its_parameters(templates: Templates) -> None:
    rendered = only(templates.render("queue", {"name": "q", "n": 3}))
    assert rendered.object["metadata"]["name"] == "q"
    assert rendered.object["spec"] == {"tasks": [{"replicas": 3}]}


@pytest.mark.parametrize(
    ("template", "parameters", "text"),
    [
        ("queue", {"nam": "q"}, "queue.yaml.j2:4: 'name' is undefined\n  given: nam"),
        ("absent", {}, "absent.yaml.j2; there are: broken.yaml.j2, includes.yaml.j2, nothing"),
        ("syntax", {}, "syntax.yaml.j2:2: Unexpected end of template"),
        ("broken", {}, "broken.yaml.j2 does not render to valid YAML:"),
        ("broken", {}, "    1 | a: [1,"),
        ("nothing", {}, "nothing.yaml.j2 produces an object without apiVersion, kind or metadata: {'just': 'this'}"),
        ("includes", {"name": {}}, "_part.j2:2: 'dict object' has no attribute 'b'"),
        ("time", {"name": "soon"}, "time.yaml.j2:2: 'soon' is not a duration"),
    ],
)
def test_a_rendering_error_names_file_and_line(
    templates: Templates, template: str, parameters: dict[str, object], text: str
) -> None:
    with pytest.raises(TemplateError) as raised:
        templates.render(template, parameters)
    assert text in str(raised.value)


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("metadata.name", 4),
        ("spec.tasks[0].replicas", 7),
        ("spec.tasks[0].absent", 7),
        ("spec.absent.more", 5),
        ("absent", None),
    ],
)
def test_the_line_of_a_field_is_found(templates: Templates, field: str, line: int | None) -> None:
    assert only(templates.render("queue", {"name": "q"})).line_of(field) == line


HOSTILE = [
    '1", memory: "5Gi',
    "research\n  maxRetry: 9",
    "x]}, y: {",
    "it's: {a}",
    "- a",
    "\x85\u2028",
    "{{ 1 }}",
    "&a *a",
    "no",
]
"""Texts that YAML would read as structure or as another type if they were not quoted."""


@pytest.mark.parametrize("text", HOSTILE)
def test_a_value_is_data_at_every_place_in_a_template(tmp_path: Path, text: str) -> None:
    (tmp_path / "_part.j2").write_text("{% macro m(a) %}{x: {{ a }}, y: {{ [a] | yaml }}}{% endmacro %}\n")
    (tmp_path / "t.yaml.j2").write_text(
        '{% import "_part.j2" as part %}\n'
        "apiVersion: v1\nkind: X\nmetadata: {name: {{ value }}, {{ value }}: 1}\n"
        "spec:\n  plain: {{ value }}\n  map: {{ {value: value} }}\n"
        "  part:\n    {{ part.m(value) | indent(4) }}\n  json: {{ {value: 1} | tojson | yaml }}\n"
    )
    found = only(Templates([tmp_path], {}).render("t", {"value": text})).object
    assert found["metadata"] == {"name": text, text: 1}
    assert found["spec"]["plain"] == text
    assert found["spec"]["map"] == {text: text}
    assert found["spec"]["part"] == {"x": text, "y": [text]}
    assert json.loads(found["spec"]["json"]) == {text: 1}


@pytest.mark.parametrize("text", HOSTILE)
def test_no_value_changes_the_structure_that_our_templates_render(text: str) -> None:
    templates = Templates([Path("templates")], {"namespace": "ns", "scheduler_name": "s", "image": "i"})
    plain = dict.fromkeys(("name", "queue", "priority", "cpu", "memory", "card", "preemptable", "parent", "task"), "a")
    for name in ("job", "gang", "pod", "kubernetesjob", "service", "pytorchjob", "queue"):
        usual = only(templates.render(name, {**plain, "cards": 1})).object
        hostile = only(templates.render(name, {**dict.fromkeys(plain, text), "cards": 1})).object
        assert shape(hostile) == shape(usual)


def shape(value: object) -> object:
    if isinstance(value, dict):
        return {key: shape(child) for key, child in value.items()}
    return [shape(child) for child in value] if isinstance(value, list) else type(value)


def test_quotes_around_a_value_are_explained(tmp_path: Path) -> None:
    (tmp_path / "t.yaml.j2").write_text('apiVersion: "{{ value }}"\n')
    with pytest.raises(TemplateError, match="a value is quoted already"):
        Templates([tmp_path], {}).render("t", {"value": "v1"})


@pytest.mark.parametrize(("text", "value"), [("500ms", 0.5), ("2s", 2), ("1m30s", 90), ("1h", 3600), ("0s", 0)])
def test_durations_are_read_as_seconds(text: str, value: float) -> None:
    assert seconds(text) == value


def test_a_policy_is_read_from_the_first_folder_that_has_it(templates: Templates, tmp_path: Path) -> None:
    for folder, text in (("policies", "ours"), ("own/policies", "beside"), ("house", "own")):
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / f"{text}.yaml").write_text(text)
        (tmp_path / folder / "same.yaml").write_text(text)
    assert [templates.policy(name) for name in ("ours", "beside", "own", "same")] == ["ours", "beside", "own", "own"]
    with pytest.raises(TemplateError, match=r"there is no policy none\.yaml; there are: beside.*, same\.yaml"):
        templates.policy("none")


def test_a_template_of_the_project_takes_precedence_over_ours(templates: Templates, tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/thing.yaml.j2").write_text("{apiVersion: v1, kind: Own, metadata: {name: {{ name }}}}")
    assert templates.render("thing", {"name": "x"})[0].object["kind"] == "Own"
