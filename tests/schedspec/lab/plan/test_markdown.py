"""No text of a plan becomes more than text in Markdown: no link, picture, element, mention, or second row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from markdown_it import MarkdownIt

from schedspec.lab.plan import Plan
from schedspec.lab.plan.text import render_markdown
from tests.schedspec.lab.plan.test_at_once import gpus, plan, queue

HOSTILE = (
    "[free cards](https://evil.example)",
    "![seen](https://evil.example/x.png)",
    "<https://evil.example>",
    "<img src=x onerror=y><script>z</script>",
    "https://evil.example and www.evil.example",
    "[a]: https://evil.example\n\n[a]",
    "x\n\n# a heading\n\n* [b](javascript:z)",
    "</details>\n::error::z",
    "`` ` [c](d) ` ``",
    "x | y | [e](f)",
)
OWN_HTML = ("<details>", "</details>", "<summary>", "</summary>")


def texts_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of each text in the parts of a plan."""
    if isinstance(value, str):
        yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from texts_of(part, (*path, key))


def with_text(value: Any, path: tuple[Any, ...], text: str) -> Any:
    if not path:
        return text
    found = dict(value) if isinstance(value, dict) else list(value)
    found[path[0]] = with_text(value[path[0]], path[1:], text)
    return found


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_plan_is_more_than_text(tmp_path: Path, text: str) -> None:
    files = {"q.yaml": queue("a", deserved=gpus(4), guarantee={"resource": gpus(2)})}
    parts = msgspec.to_builtins(plan(tmp_path, files, load="drain", run_times="1h"))
    parser = MarkdownIt("commonmark", {"linkify": False}).enable("table")
    headings = render_markdown(msgspec.convert(parts, Plan)).count("\n#")
    tried = 0
    for path in texts_of(parts):
        if path == ("subject", "sha256"):
            continue  # computed here
        try:
            changed = msgspec.convert(with_text(parts, path, text), Plan)
        except msgspec.ValidationError:
            continue  # one of a few words
        shown, tried = render_markdown(changed), tried + 1
        tokens = [part for token in parser.parse(shown) for part in (token, *(token.children or ()))]
        types = {token.type for token in tokens}
        assert not types & {"link_open", "image"}, (path, shown)
        html = [token.content for token in tokens if token.type in ("html_block", "html_inline")]
        left = "".join(html)
        for own in OWN_HTML:
            left = left.replace(own, "")
        assert "<" not in left, (path, left)
        assert shown.count("\n#") == headings, (path, shown)
        assert "://evil" not in shown, (path, shown)
        assert "www.evil" not in shown, (path, shown)
    assert tried > 20
