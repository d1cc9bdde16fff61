"""Rules for tests: a test imports only from its own folder and tests/support, and names of tests are short."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from schedspec import steps

HERE = Path(__file__).parent
ROOT = HERE.parent
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def room(module: str) -> str:
    """Return the package of a module's tests: `tests.scheduler.live` for `tests.scheduler.live.test_loop`."""
    parts = module.split(".")
    return ".".join(parts[:3] if parts[1] in ("scheduler", "schedspec") else parts[:2])


def imported(file: Path) -> set[str]:
    """Return the modules of tests/ and benchmarks/ that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return {name for name in found if name.split(".")[0] in ("tests", "benchmarks")}


@pytest.mark.parametrize("file", sorted(HERE.rglob("*.py")), ids=lambda file: str(file.relative_to(HERE)))
def test_a_test_imports_from_its_own_room_and_from_support_only(file: Path) -> None:
    own = room(".".join(file.relative_to(ROOT).with_suffix("").parts))
    foreign = {
        name for name in imported(file) if room(name) not in (own, "tests.support") or name.startswith("benchmarks")
    }
    assert not foreign, f"move shared code to tests/support: {', '.join(sorted(foreign))}"


def test_names_of_tests_have_at_most_80_characters() -> None:
    found = {
        node.name
        for file in HERE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, FUNCTIONS)
    }
    assert sorted(name for name in found if name.startswith("test_") and len(name) > 80) == []


def test_no_module_of_ours_is_imported_by_a_computed_name() -> None:
    """Contracts, types and pictures see no other import than a statement. Modules of users are the exception."""
    calls = {
        f"{file.relative_to(ROOT)}: {ast.unparse(node.func)}"
        for top in ("schedspec", "scheduler", "steps")
        for file in sorted((ROOT / top).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("import_module", "__import__")
    }
    assert calls == {"schedspec/schedulers/__init__.py: importlib.import_module"}


def test_every_module_of_sentences_is_registered() -> None:
    files = {file.stem for file in (ROOT / "steps").glob("*.py")} - {"__init__"}
    assert {module.__name__ for module in steps.MODULES} == {f"schedspec.steps.{name}" for name in files}
