"""Return the problems that the collection reports for the text of a feature, with our sentences and no cluster."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from schedspec.gherkin import bdd, documents, step_check
from schedspec.gherkin.things import RunFacts

MistakesOf = Callable[..., list[str]]

POLICIES = {
    "capacity": "",
    "broken": "the scheduler rejects the policy 'broken':\n    broken.yaml:1: actions: no",
}


def policy(name: str, lints: bool) -> str:
    if name not in POLICIES:
        return f"there is no policy {name!r} (is 'capacity' meant?); there are: broken, capacity"
    return POLICIES[name] if lints else ""


@pytest.fixture
def mistakes_of(tmp_path: Path, request: pytest.FixtureRequest) -> MistakesOf:
    """Return a function that yields the problems of a feature: `line: text`."""
    definitions = bdd.definitions_for(request.node.getparent(pytest.Module))

    def mistakes(feature: str, facts: RunFacts = RunFacts(policy)) -> list[str]:  # noqa: B008 - it is frozen
        path = tmp_path / "some.feature"
        path.write_text(feature, "utf-8")
        document = documents.read_document(path)
        found = [
            *step_check.check_document(document, {"smoke"}),
            *step_check.check_steps(document, feature.splitlines(), step_check.StepIndex(definitions), facts),
        ]
        return [f"{problem.line}: {problem.text}" for problem in sorted(found, key=lambda problem: problem.line)]

    return mistakes


def scenario(text: str) -> str:
    """Return a feature whose steps begin in line 3; a scenario without a Then gets one."""
    then = "" if "Then " in text else '    Then queue "default" is Open\n'
    return f"Feature: f\n  Scenario: s\n{text}{then}"


def table(sentence: str, *rows: str) -> str:
    return "\n".join([f"    {sentence}", *(f"      | {row} |" for row in rows)]) + "\n"


JOB = table("When these jobs are submitted:", "job | cpu", "build | 1")
