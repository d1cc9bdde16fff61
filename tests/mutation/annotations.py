"""Find a module's type annotations: with `from __future__ import annotations` they are never evaluated."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Place = tuple[int, int]
"""Line from 1, column from 0."""


@dataclass(frozen=True)
class Annotations:
    """The spans of one module's annotations, and of its `if TYPE_CHECKING:` blocks."""

    spans: tuple[tuple[Place, Place], ...]

    @classmethod
    def of(cls, file: Path) -> Annotations:
        tree = ast.parse(file.read_text("utf-8"))
        return cls(tuple(((it.lineno, it.col_offset), _end(it)) for it in _idle(tree)))

    def has(self, place: Place) -> bool:
        return any(start <= place < end for start, end in self.spans)


def _idle(tree: ast.Module) -> Iterator[ast.expr | ast.stmt]:
    for node in ast.walk(tree):
        match node:
            case ast.arg(annotation=ast.expr() as found) | ast.AnnAssign(annotation=found):
                yield found
            case ast.FunctionDef(returns=ast.expr() as found):
                yield found
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                yield node


def _end(node: ast.expr | ast.stmt) -> Place:
    return (node.end_lineno or node.lineno, node.end_col_offset or 0)
