"""The pages in docs/ name existing scenarios, and their lines have at most 120 characters."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from schedspec.gherkin import documents
from schedspec.report import matrix
from schedspec.scheduler.lint import lint
from schedspec.schedulers.kueue.quota import KueuePolicy

ROOT = Path(__file__).parents[2]
MATRIX = ROOT / "docs" / "matrix.md"
DEFECTS = [*(ROOT / "docs" / "surprises").glob("*.md"), *(ROOT / "docs" / "gallery").glob("*.md")]
SURPRISES = sorted(path for path in DEFECTS if path.name != "README.md")
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *(path for folder in ("docs", "deploy", "kind-config", "hack") for path in sorted((ROOT / folder).rglob("*.md"))),
]
LONGEST = 120


def titles(feature: str) -> set[str]:
    """Return the titles of a feature as pages write them: plain, and with the cells of a row of examples."""
    found = set()
    for node in documents.scenarios_of(documents.read_document(ROOT / feature)):
        rows = [
            dict(zip((cell.value for cell in it.table_header.cells), (cell.value for cell in row.cells), strict=True))
            for it in node.examples
            if it.table_header is not None
            for row in it.table_body or ()
        ]
        for row in rows or [{}]:
            found |= {documents.filled(node.name, row), matrix.title_of(node.name, row)}
    return found


def entries_of_matrix(text: str) -> list[tuple[str, str]]:
    """Return feature and title of every row of the table of differences."""
    cells = [re.split(r"(?<!\\)\|", line) for line in text.splitlines() if line.startswith("| ")]
    places = [it[2].strip().replace("\\|", "|") for it in cells if it[2].startswith(" features/")]
    return [(feature, title) for feature, _, title in (it.partition(": ") for it in places)]


def entries_of_surprise(text: str) -> list[tuple[str, str]]:
    """Return feature and title of the scenarios that a page about a surprise names."""
    return re.findall(r"`(features/[^`]+)`, \*([^*]+)\*", " ".join(text.split()))


@pytest.mark.parametrize("feature", sorted({feature for feature, _ in entries_of_matrix(MATRIX.read_text("utf-8"))}))
def test_every_row_of_the_matrix_names_an_existing_scenario(feature: str) -> None:
    named = {title for of, title in entries_of_matrix(MATRIX.read_text("utf-8")) if of == feature}
    assert named - titles(feature) == set()


@pytest.mark.parametrize("page", SURPRISES, ids=lambda page: page.stem)
def test_every_page_about_a_surprise_names_existing_scenarios(page: Path) -> None:
    named = entries_of_surprise(page.read_text("utf-8"))
    assert named, f"{page.name} names no scenario as `features/…`, *title*"
    assert [(feature, title) for feature, title in named if title not in titles(feature)] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "gallery").glob("*.md")), ids=lambda page: page.stem)
def test_a_page_of_the_gallery_has_its_picture_and_all_sections(page: Path) -> None:
    text = page.read_text("utf-8")
    assert f"]({page.stem}.svg)" in text
    assert page.with_suffix(".svg").is_file()
    for part in ("**Promised.**", "**Seen.**", "```yaml", "\n## Reproduce it without schedspec\n", "\n## Until "):
        assert part in text


def test_the_policy_of_a_gpu_cluster_has_no_lint_error() -> None:
    page = (ROOT / "docs" / "policies.md").read_text("utf-8")
    (text,) = re.findall(r"```yaml\n(# volcano-scheduler.conf of a GPU cluster\n.*?)```", page, re.DOTALL)
    assert [it.render() for it in lint(text, "volcano-scheduler.conf") if it.is_error] == []


def test_the_fields_and_the_policies_of_kueue_are_listed() -> None:
    page = (ROOT / "docs" / "adapters.md").read_text("utf-8")
    for file in sorted((ROOT / "templates" / "kueue" / "policies").glob("*.yaml")):
        assert f"| `{file.stem}` | {file.read_text('utf-8').splitlines()[0].removeprefix('# ')} |" in page
    section = page[
        page.index("The fields of a policy file") : page.index("The policies that the package has for Kueue")
    ]
    assert {*re.findall("`([A-Za-z]+)`(?:,| [|])", section)} >= {*KueuePolicy.__struct_fields__}


def too_long(text: str) -> list[int]:
    """Return the numbers of the lines that are too long, outside of tables, code and pictures."""
    found, fenced = [], False
    for number, line in enumerate(text.splitlines(), 1):
        fenced ^= line.lstrip().startswith("```")
        exempt = fenced or line.startswith(("|", "    ", "!["))
        if len(line) > LONGEST and not exempt:
            found.append(number)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_of_pages_have_at_most_120_characters(page: Path) -> None:
    assert too_long(page.read_text("utf-8")) == []


def test_tables_and_code_may_be_longer() -> None:
    long = "x" * (LONGEST + 1)
    assert too_long(f"{long}\n| {long} |\n```\n{long}\n```\n    {long}\n{long}\n") == [1, 7]
