"""The tables of the documentation equal the declarations of the plugins' classes."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedspec.scheduler.lint.tables import PAGES, written

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", PAGES)
def test_the_tables_of_a_page_are_up_to_date(name: str) -> None:
    page = (ROOT / name).read_text("utf-8")
    assert page == written(page), f"{name} is out of date; run `python -m scheduler.lint.tables`"


def test_an_outdated_table_is_generated_again() -> None:
    assert "| new |" not in written("<!-- hooks: x -->\n| new |\n<!-- end -->")
