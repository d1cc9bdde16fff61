"""The steps that features can use, as one page of text: each sentence with the first line of its docstring.

python -m schedspec.gherkin.catalogue
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from pkgutil import iter_modules

from . import bdd


def text() -> str:
    """The catalogue of every step that was imported, by module."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    own = [it for it in bdd.all_definitions() if not it.function.__module__.startswith("pytest_bdd")]
    for file, definitions in groupby(own, key=lambda it: it.file):
        yield file
        for it in definitions:
            docs = (inspect.getdoc(it.function) or "(it has no docstring)").splitlines()[0]
            yield f"  {(it.type or 'any').capitalize():5} {it.pattern}"
            yield f"        {docs}"
        yield ""


if __name__ == "__main__":
    for module in iter_modules(import_module("steps").__path__, "steps."):
        import_module(module.name)
    sys.stdout.write(text())
