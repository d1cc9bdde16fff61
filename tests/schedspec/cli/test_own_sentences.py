"""`schedspec steps` lists a project's own sentences before those of schedspec."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from schedspec.cli.project import steps_command

CONFTEST = '''
from schedspec.gherkin.step_decorators import given

@given('the tenant "{name}" pays')
def _(name):
    """A tenant has paid its bill."""
'''
FEATURE = 'Feature: f\n  Scenario: s\n    Given the tenant "a" pays\n'


def listed(*words: str) -> list[str]:
    done = CliRunner().invoke(steps_command, words, standalone_mode=False, catch_exceptions=False)
    return done.output.splitlines()


def test_a_sentence_of_the_project_is_listed_with_its_meaning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "f.feature").write_text(FEATURE)
    found = listed("tenant")
    assert '  Given the tenant "{name}" pays' in found
    assert "        A tenant has paid its bill." in found


def test_without_a_project_the_sentences_of_schedspec_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = listed("never", "holds")
    assert [it.strip() for it in found if "Then" in it] == [
        'Then  queue "{name}" never holds less than {amount:Amount}',
        'Then  队列 "{name}" 持有不再少于 {amount:Amount}',
    ]


def test_only_sentences_for_scenarios_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "acts" in listed()
    assert not [it for it in listed() if it.split()[1:] == ["trace"]], "pytest-bdd's own step is not listed"
