"""What people read controls no terminal, and no line of it is a command of a CI system."""

from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schedspec.scheduler.model.printable import PrintableStream, drawable, one_line, printable
from schedspec.scheduler.reasons import QueueBroken, Refusal, Unsupported, render_refusal

HOSTILE = "\x1b]0;title\x07\x1b[2J\n::error::x\r\u202egnp.exe"


@given(st.text())
def test_no_control_character_is_left(text: str) -> None:
    assert not {char for char in printable(text) if unicodedata.category(char) == "Cc" and char not in "\n\t"}
    assert not {char for char in one_line(text) if unicodedata.category(char) in ("Cc", "Zl", "Zp")}
    assert not any(
        unicodedata.bidirectional(char) in ("RLO", "LRO", "RLE", "LRE", "RLI", "LRI") for char in printable(text)
    )


@given(st.text(alphabet=st.characters(categories=("L", "N", "P", "S", "Zs"))))
def test_other_text_is_unchanged(text: str) -> None:
    assert printable(text) == one_line(text) == text


@pytest.mark.parametrize(
    "why", [QueueBroken("q", HOSTILE), Unsupported("t/pod", HOSTILE)], ids=lambda why: type(why).__name__
)
def test_a_condition_with_a_tenants_text_is_one_line(why: QueueBroken | Unsupported) -> None:
    text = render_refusal(Refusal((why,)))
    assert "\\x1b[2J\\n::error::x\\r\\u202e" in text
    assert text.isprintable()


def test_a_stream_for_people_shows_codes() -> None:
    stream = io.StringIO()
    PrintableStream(stream).write(HOSTILE)
    PrintableStream(stream).writelines([HOSTILE])
    assert "\x1b" not in stream.getvalue()
    assert stream.getvalue().count("\\x1b[2J") == 2


def test_what_the_program_itself_draws_controls_the_terminal() -> None:
    stream = io.StringIO()
    for one in (stream, PrintableStream(stream)):
        drawable(one).write("\r\x1b[K")
    assert stream.getvalue() == 2 * "\r\x1b[K"
