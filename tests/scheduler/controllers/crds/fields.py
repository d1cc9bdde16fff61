"""Read the table of fields (`fields.yaml`): its cases, their objects, and the tests that prove them."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

Body = dict[str, Any]
ROOT = Path(__file__).parents[4]
TABLE: dict[str, dict[str, Body]] = yaml.safe_load((Path(__file__).parent / "fields.yaml").read_text("utf-8"))
_CONTAINERS = {"spec": {"containers": [{"name": "pytorch", "image": "i"}]}}
LEAST: dict[str, Body] = {
    "Job": {"spec": {"tasks": [{"name": "b", "template": _CONTAINERS}, {"name": "a", "template": _CONTAINERS}]}},
    "PodGroup": {"spec": {}},
    "Queue": {"spec": {}},
    "Command": {"action": "AbortJob", "target": {"apiVersion": "x/y", "kind": "Job", "name": "j", "uid": "u"}},
    "PyTorchJob": {
        "metadata": {"name": "t"},
        "spec": {"pytorchReplicaSpecs": {kind: {"template": _CONTAINERS} for kind in ("Master", "Worker")}},
    },
}
"""A minimal object of each kind."""


@dataclass(frozen=True)
class Case:
    """One value of one field."""

    kind: str
    path: str
    row: Body

    def __str__(self) -> str:
        return f"{self.kind} {self.path}={self.row['value']}"

    @property
    def body(self) -> Body:
        """Return a minimal object with this field and the fields that it needs."""
        found = copy.deepcopy(LEAST[self.kind])
        for path, value in {**self.row.get("with", {}), self.path: self.row["value"]}.items():
            _put(found, path.split("."), value)
        return found

    def value_in(self, body: Any) -> Any:
        """Return the field's value in an object."""
        for part in self.path.split("."):
            body = body.get(part.removesuffix("[]")) if isinstance(body, dict) else None
            body = body[0] if part.endswith("[]") and body else body
        return body


def cases() -> Iterator[Case]:
    for kind, fields in TABLE.items():
        for path, row in fields.items():
            yield Case(kind, path, row)
            for other in row.get("but", ()):
                yield Case(kind, path, {"with": row.get("with", {}), **other})


def _put(into: Any, path: list[str], value: Any) -> None:
    name = path[0].removesuffix("[]")
    if len(path) == 1:
        into[name] = value
    elif path[0].endswith("[]"):
        _put(into.setdefault(name, [{}])[0], path[1:], value)
    else:
        _put(into.setdefault(name, {}), path[1:], value)


def leaves(schema: Body, path: str = "") -> Iterator[str]:
    """Yield the fields that a schema declares, without those of metadata and status."""
    for name, inner in schema.get("properties", {}).items():
        if not path and name in ("apiVersion", "kind", "metadata", "status"):
            continue
        yield from _below(inner, f"{path}.{name}" if path else name)


def _below(schema: Body, path: str) -> Iterator[str]:
    if schema.get("items", {}).get("properties"):
        yield from leaves(schema["items"], f"{path}[]")
    elif schema.get("properties") and not path.endswith("template"):
        yield from leaves(schema, path)
    elif path.endswith("pytorchReplicaSpecs"):
        yield from leaves(schema["additionalProperties"], f"{path}.Worker")
    else:
        yield path


@cache
def proofs(file: str) -> frozenset[str]:
    """Return the names of the tests in a file, or of the rows of a table of cases."""
    text = (ROOT / file).read_text("utf-8")
    if file.endswith(".yaml"):
        return frozenset(row["name"] for row in yaml.safe_load(text))
    return frozenset(node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))
