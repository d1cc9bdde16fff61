"""Check that our scheduler can publish the words of a reason: a scenario that waits for another word never passes.

The known words come from string literals in the scheduler's source, which is read when the first scenario names a
reason. A word may also be a name or a number of the scenario.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator

from .. import distribution
from ..gherkin.tables import nearest

_ROOMS = ("actions", "framework", "model", "placement", "plugins", "preemption", "reasons")
_TELLING = 3
"""Letters of the shortest word that tells one reason from another; shorter words may be names of the scenario."""
_WORD = re.compile(r"[^\W\d_][\w./-]*")


def problem(text: str, names: Iterable[str]) -> str:
    """Return the problem of the first word that the scheduler never publishes; empty if there is none."""
    known, own = _words(), {word for name in names for word in _split(name)}
    own |= {part for name in own for part in re.split(r"[./-]", name) if part}  # a reason is searched for any text
    if not any(word in own or len(word) >= _TELLING for word in _split(text)):
        return f"nearly every reason has the text {text!r}: name a word of the reason, such as capability"
    for word in _split(text):
        if word not in known and word not in own:
            return f"the scheduler publishes no reason with the word {word!r}{nearest(word, known | own, 0.7)}"
    return ""


@functools.cache
def _words() -> frozenset[str]:
    files = (file for room in _ROOMS for file in distribution.folder("scheduler").joinpath(room).rglob("*.py"))
    return frozenset(word for file in files for text in _texts(file.read_text("utf-8")) for word in _split(text))


def _texts(source: str) -> Iterator[str]:
    """Yield the string literals of a module, without its docstrings."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


def _split(text: str) -> list[str]:
    return [word.lower().rstrip(".-/") for word in _WORD.findall(text)]
