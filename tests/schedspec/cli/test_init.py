"""`schedspec init` chooses files by the content of the repository and the source of the installed schedspec."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from schedspec.cli import repository
from schedspec.cli.init import init_command
from schedspec.cli.repository import Origin

COMMIT = "0123456789abcdef0123456789abcdef01234567"
GIT = {"url": "https://github.com/o/schedspec.git", "vcs_info": {"vcs": "git", "commit_id": COMMIT}}
URL = {"url": "https://example.org/schedspec-1-py3-none-any.whl", "archive_info": {"hash": "sha256=00"}}
ORIGINS = {
    "a checkout on GitHub": (GIT, Origin(action=f"o/schedspec@{COMMIT}")),
    "a checkout elsewhere": ({**GIT, "url": "https://git.example.org/o/schedspec"}, Origin()),
    "a wheel of a URL": (URL, Origin(url=f"{URL['url']}#sha256=00")),
    "a wheel that is gone": ({"url": "file:///gone/schedspec-1-py3-none-any.whl", "archive_info": {}}, Origin()),
    "a folder": ({"url": "file:///src/schedspec", "dir_info": {"editable": True}}, Origin()),
    "an index": ({}, Origin()),
}


@pytest.mark.parametrize(("facts", "origin"), ORIGINS.values(), ids=ORIGINS)
def test_the_source_of_an_installation_is_read(facts: dict[str, object], origin: Origin) -> None:
    assert repository.read_origin(json.dumps(facts)) == origin


def test_a_wheel_with_spaces_in_its_path_is_found(tmp_path: Path) -> None:
    wheel = tmp_path / "my wheels" / "schedspec-1-py3-none-any.whl"
    wheel.parent.mkdir()
    wheel.touch()
    assert repository.read_origin(json.dumps({"url": wheel.as_uri(), "archive_info": {}})) == Origin(wheel=wheel)


@pytest.mark.parametrize(
    "given", [["--action", f"o/schedspec@{COMMIT}"], ["--wheel", URL["url"]]], ids=["Action", "URL"]
)
def test_the_workflow_installs_nothing_from_an_index(tmp_path: Path, given: list[str]) -> None:
    (tmp_path / "app.py").touch()
    assert CliRunner().invoke(init_command, [str(tmp_path), *map(str, given)]).exit_code in (0, None)
    file = tmp_path / ".github/workflows/schedspec.yml"
    text = file.read_text()
    assert "pip install schedspec" not in text
    assert (f"uses: o/schedspec@{COMMIT}" in text) != (str(URL["url"]) in text)
    assert "@INTO@" not in text
    found = [str(Path(sys.executable).with_name("zizmor")), "--offline", "--no-progress", "--quiet", str(file)]
    done = subprocess.run(found, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("wrong", [["--action", "o/schedspec@main"], ["--wheel", "missing.whl"]])
def test_an_invalid_action_or_wheel_is_rejected_and_nothing_is_written(tmp_path: Path, wrong: list[str]) -> None:
    CliRunner().invoke(init_command, [str(tmp_path), *wrong])
    assert [*tmp_path.iterdir()] == []


def test_without_a_source_no_workflow_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "origin_of", lambda _: Origin())
    printed = CliRunner().invoke(init_command, [str(tmp_path)]).output
    assert "no workflow: name what it installs" in printed
    assert not (tmp_path / ".github").exists()


OPTIONS = {
    "pyproject.toml": "[tool.pytest.ini_options]\nschedspec_features = ['queues']\n",
    "setup.cfg": "[tool:pytest]\nschedspec_features = queues\n",
    "tox.ini": "[pytest]\n schedspec_features = queues\n",
    "pytest.ini": "[pytest]\nschedspec_policy=a.yaml\n",
}


@pytest.mark.parametrize("name", OPTIONS)
def test_a_folder_with_a_schedspec_option_is_found(tmp_path: Path, name: str) -> None:
    (tmp_path / "queues").mkdir()
    (tmp_path / "queues" / name).write_text(OPTIONS[name])
    (tmp_path / name).write_text(OPTIONS[name].partition("schedspec_")[0])
    assert repository.homes(tmp_path) == [tmp_path / "queues"]
    assert repository.options_file(tmp_path) == tmp_path / name


def test_a_folder_with_its_own_pytest_options_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs/pytest.ini").write_text("[pytest]\n")
    printed = CliRunner().invoke(init_command, [str(tmp_path), "--into", "specs"]).output
    assert "the folder has pytest options of its own" in printed
    assert [it.name for it in tmp_path.rglob("*")] == ["specs", "pytest.ini"]
