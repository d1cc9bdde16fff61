"""Progress lines: one line that is rewritten on a terminal, one line for each program in a log."""

from __future__ import annotations

import io

import pytest

from schedspec.terminal import Lines, cut

BUILD = [
    ("etcd v1: building with Go, 0 s; 1 more after it; 0 s in all"),
    ("etcd v1: building with Go, 5 s; 1 more after it; 5 s in all"),
    ("kwok v2: downloading the release, 0 s; 0 more after it; 9 s in all"),
    ("kwok v2: no release available (offline); building with Go"),
    ("kwok v2: building with Go, 5 s; 0 more after it; 14 s in all"),
]


def written(*, live: bool) -> str:
    stream = io.StringIO()
    lines = Lines(stream, live=live)
    for text in BUILD:
        lines.show(text)
    lines.close()
    return stream.getvalue()


def test_a_log_has_one_line_for_each_step_of_a_program() -> None:
    assert written(live=False).splitlines() == [
        "etcd v1: building with Go",
        "kwok v2: downloading the release",
        "kwok v2: no release available (offline); building with Go",
        "kwok v2: building with Go",
    ]


def test_a_terminal_has_one_line_a_program_that_is_rewritten() -> None:
    rows = written(live=True).split("\n")
    assert [row.rpartition("\x1b[K")[2].partition(" ")[0] for row in rows] == ["etcd", "kwok", ""]
    assert rows[0].count("\r\x1b[K") == 1
    assert rows[0].endswith("5 s; 1 more after it; 5 s in all")


def test_a_late_tick_does_not_overwrite_another_line() -> None:
    stream = io.StringIO()
    lines = Lines(stream, live=True)
    lines.show("one", "a")
    lines.show("two", "b")
    lines.update("one, 1 s", "a")
    assert stream.getvalue() == "one\ntwo"


@pytest.mark.parametrize(
    ("text", "columns", "shown"),
    [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("等待中", 6, "等待中"), ("等待中", 5, "等待…")],
)
def test_a_line_is_cut_to_the_width_of_the_terminal(text: str, columns: int, shown: str) -> None:
    assert cut(text, columns) == shown
