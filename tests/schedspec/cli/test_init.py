"""`schedspec init` chooses files by the content of the repository and the source of the installed schedspec."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from schedspec.cli import published, repository
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
    monkeypatch.setattr(published, "recorded", lambda: "")
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


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Create a file of 30 kB in place of a wheel, outside of the repository."""
    file = tmp_path / "dist" / "schedspec-1-py3-none-any.whl"
    file.parent.mkdir()
    file.write_bytes(b"x" * 30 * 1024)
    return file


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Create a git repository with one file."""
    folder = tmp_path / "repo"
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    (folder / "app.py").touch()
    return folder


HOOK = "repos:\n- repo: r\n  hooks:\n  - id: check-added-large-files\n"
REFUSING = {
    "ignored at the root": (".gitignore", "*.whl\n", ".gitignore:1:*.whl ignores it"),
    "ignored inside": ("queues/.gitignore", "/*.whl\n", "queues/.gitignore:1:/*.whl ignores it"),
    "a hook with a limit": (".pre-commit-config.yaml", f"{HOOK}    args: [--maxkb=29]\n", "permits 29 kB"),
    "a limit of which the last counts": (
        ".pre-commit-config.yaml",
        f"{HOOK}    args: [--maxkb=900, --maxkb=29]\n",
        "permits 29 kB",
    ),
    "a hook for some files": (
        ".pre-commit-config.yaml",
        f"{HOOK}    files: '[.]whl$'\n    args: [--maxkb=29]\n",
        "permits 29 kB",
    ),
    "a limit as two words": (".pre-commit-config.yaml", f"{HOOK}    args: ['--maxkb', '29']\n", "permits 29 kB"),
}
PERMITTING = {
    "another pattern": (".gitignore", "*.egg\n"),
    "an exception": (".gitignore", "*.whl\n!schedspec-*.whl\n"),
    "the default of the hook": (".pre-commit-config.yaml", HOOK),
    "the same size": (".pre-commit-config.yaml", f"{HOOK}    args: [--maxkb=30]\n"),
    "a hook that excludes wheels": (
        ".pre-commit-config.yaml",
        f"{HOOK}    exclude: '[.]whl$'\n    args: [--maxkb=29]\n",
    ),
    "a hook for other files": (".pre-commit-config.yaml", f"{HOOK}    files: '^data/'\n    args: [--maxkb=29]\n"),
    "hooks that exclude our folder": (".pre-commit-config.yaml", f"exclude: ^queues/\n{HOOK}    args: [--maxkb=29]\n"),
    "other hooks": (".pre-commit-config.yaml", "repos: []\n"),
    "a file that is no YAML": (".pre-commit-config.yaml", "repos: [\n"),
}


@pytest.mark.parametrize(("name", "text", "why"), REFUSING.values(), ids=REFUSING)
def test_a_wheel_that_the_repository_refuses_is_not_written(
    repo: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, why: str
) -> None:
    (repo / name).parent.mkdir(exist_ok=True)
    (repo / name).write_text(text)
    monkeypatch.setattr(repository, "origin_of", lambda _: Origin(wheel=wheel))
    monkeypatch.setattr(published, "recorded", lambda: "")
    printed = CliRunner().invoke(init_command, [str(repo), "--into", "queues"]).output
    assert why in printed
    assert "install by the Action instead (--action OWNER/REPO@COMMIT)" in printed
    assert [*repo.rglob("*.whl"), *repo.rglob(".github")] == []
    assert (repo / "queues/pytest.ini").is_file()
    printed = (
        CliRunner().invoke(init_command, [str(repo), "--into", "other", "--dry-run", "--wheel", str(wheel)]).output
    )
    assert ("the wheel cannot be committed" in printed) == (name != "queues/.gitignore")
    CliRunner().invoke(init_command, [str(repo), "--into", "queues", "--action", f"o/schedspec@{COMMIT}"])
    assert f"o/schedspec@{COMMIT}" in (repo / ".github/workflows/schedspec.yml").read_text()


@pytest.mark.parametrize(("name", "text", "why"), REFUSING.values(), ids=REFUSING)
def test_the_workflow_uses_the_action_by_itself_where_the_wheel_is_refused(
    repo: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, why: str
) -> None:
    (repo / name).parent.mkdir(exist_ok=True)
    (repo / name).write_text(text)
    monkeypatch.setattr(repository, "origin_of", lambda _: Origin(wheel=wheel))
    monkeypatch.setattr(published, "recorded", lambda: f"o/schedspec@{COMMIT}")
    printed = CliRunner().invoke(init_command, [str(repo), "--into", "queues"]).output
    assert "the workflow uses the Action o/schedspec@" in printed
    assert why in printed
    assert f"uses: o/schedspec@{COMMIT}\n" in (repo / ".github/workflows/schedspec.yml").read_text()
    assert [*repo.rglob("*.whl")] == []


REMOTES = {
    "pushed to a branch": ("https://github.com/o/schedspec.git", "refs/remotes/origin/main", True),
    "pushed as a tag": ("git@github.com:o/schedspec", "refs/tags/v1", True),
    "not pushed": ("https://github.com/o/schedspec", "refs/heads/other", False),
    "pushed elsewhere": ("https://git.example.org/o/schedspec", "refs/remotes/origin/main", False),
}


@pytest.mark.parametrize(("remote", "ref", "is_named"), REMOTES.values(), ids=REMOTES)
def test_a_commit_that_github_has_is_named(repo: Path, remote: str, ref: str, *, is_named: bool) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    for words in (
        ["add", "."],
        [*identity, "commit", "--quiet", "-m", "c"],
        ["remote", "add", "origin", remote],
        ["update-ref", ref, "HEAD"],
    ):
        subprocess.run(["git", *words], cwd=repo, check=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repo, capture_output=True, text=True, check=True).stdout
    assert published.published(repo) == (f"o/schedspec@{commit.strip()}" if is_named else "")
    (repo / "inside").mkdir()
    assert published.published(repo / "inside") == "", "a folder of another repository is not its checkout"


@pytest.mark.parametrize(("name", "text"), PERMITTING.values(), ids=PERMITTING)
def test_a_wheel_that_the_repository_permits_is_written(
    repo: Path, wheel: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    (repo / name).write_text(text)
    monkeypatch.setattr(repository, "origin_of", lambda _: Origin(wheel=wheel))
    CliRunner().invoke(init_command, [str(repo)])
    assert (repo / "queues" / wheel.name).is_file()


@pytest.mark.parametrize("into", ["..", "../elsewhere", "/tmp", "a/../../b"])
def test_every_file_stays_inside_the_repository(repo: Path, tmp_path: Path, into: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    printed = CliRunner().invoke(init_command, [str(repo), "--into", into]).output
    assert "the folder is outside of the repository" in printed
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("into", "why"),
    [
        ("", "'' is not the plain name of a folder"),
        ("my queues", "'my queues' is not the plain name of a folder"),
        ("a;b", "'a;b' is not the plain name of a folder"),
        ("README", "a file has this name"),
        ("README/specs", "a file has this name"),
        ("checks", "the folder has tests of its own"),
        ("stories", "the folder has tests of its own"),
        (".git/specs", "git keeps its own files there"),
        ("unit", "the folder has tests of its own"),
    ],
)
def test_a_folder_that_cannot_hold_the_features_is_refused(repo: Path, into: str, why: str) -> None:
    (repo / "README").touch()
    for test in ("checks/deep/test_app.py", "unit/conftest.py", "stories/one.feature"):
        (repo / test).parent.mkdir(parents=True)
        (repo / test).touch()
    before = sorted(repo.rglob("*"))
    done = CliRunner().invoke(init_command, [str(repo), "--into", into])
    assert why in done.output
    assert not isinstance(done.exception, OSError)
    assert sorted(repo.rglob("*")) == before


@pytest.mark.parametrize("into", ["Queues", "schedspec", "checkout", "main", "out"])
def test_a_workflow_that_only_has_the_word_is_not_the_workflow_of_a_folder(repo: Path, into: str) -> None:
    for folder in ("queues", into):
        CliRunner().invoke(init_command, [str(repo), "--into", folder, "--action", f"o/schedspec@{COMMIT}"])
    texts = [file.read_text() for file in (repo / ".github/workflows").iterdir()]
    assert [f"features: {into}\n" in text for text in texts].count(True) == 1


def test_every_folder_gets_a_workflow_that_runs_it(repo: Path) -> None:
    folders = ["queues", "teams/batch", "queues-2"]
    for into in (*folders, *folders):  # the second time nothing changes
        CliRunner().invoke(init_command, [str(repo), "--into", into, "--action", f"o/schedspec@{COMMIT}"])
    files = sorted((repo / ".github/workflows").iterdir())
    assert [file.name for file in files] == ["schedspec-queues-2.yml", "schedspec-teams-batch.yml", "schedspec.yml"]
    assert [f"features: {into}\n" in file.read_text() for file, into in zip(files, folders[::-1], strict=True)] == [
        True
    ] * 3
    assert len({file.read_text().partition("\n")[0] for file in files}) == 3


def test_a_file_that_git_leaves_out_is_named(repo: Path) -> None:
    (repo / ".gitignore").write_text("*.feature\n")
    printed = CliRunner().invoke(init_command, [str(repo)]).output.splitlines()
    why = [after for before, after in itertools.pairwise(printed) if before.endswith("lending.feature")]
    assert why == [
        "             git leaves it out, so that no other checkout has it: .gitignore:1:*.feature ignores it"
    ]
    assert sum("git leaves it out" in line for line in printed) == 1
