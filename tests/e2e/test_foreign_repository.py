"""The wheel in a foreign repository: the repository's own test run does not change, and ours runs beside it."""

from __future__ import annotations

import re
import subprocess
import venv
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e import foreign
from tests.e2e.conftest import Call, Environment

Plain = Callable[..., str]
_VARYING = (
    (re.compile(r"\d+\.\d+s(?: \(\d+:\d\d:\d\d\))?"), "N s"),
    (re.compile(r"={3,}"), "==="),  # their number depends on the width of the time
    (re.compile(r"^plugins: .*$", re.MULTILINE), "plugins: …"),
    (re.compile(r"^\[gw\d\] \[ *\d+%\] ", re.MULTILINE), ""),
    (re.compile(r"^(created|ready|bringing up|\[gw\d\]).*$", re.MULTILINE), ""),
)
REPOSITORIES = {"pyproject, importlib": foreign.FILES, "setup.cfg, prepend": foreign.with_setup_cfg(foreign.FILES)}
RUNS = ([], ["-n", "2"], ["."], ["tests/bdd", "--cluster", "production", "--fixtures"])


@pytest.fixture(params=REPOSITORIES.values(), ids=REPOSITORIES)
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Create a foreign repository; return its folder."""
    for name, text in request.param.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "--quiet", "--initial-branch=trunk"], cwd=tmp_path, check=True)
    return tmp_path


@pytest.fixture(scope="session")
def bare(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return the same environment without the wheel."""
    found = Environment(tmp_path_factory.mktemp("bare") / "venv")
    venv.create(found.folder, with_pip=False, symlinks=True)
    dependencies = (environment.site / "dependencies.pth").read_text()
    (found.site / "dependencies.pth").write_text(dependencies)
    return found


@pytest.fixture
def plain(bare: Environment, environment: Environment, repository: Path) -> Plain:
    """Return a function that runs the repository's own tests and returns the output without parts that vary."""

    def run(*arguments: str, wheel: bool) -> str:
        chosen = environment if wheel else bare
        command = [chosen.program("python"), "-m", "pytest", "-v", "-p", "no:cacheprovider", *arguments]
        variables = {**chosen.variables, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, cwd=repository, env=variables, capture_output=True, text=True, check=False)
        text = f"{done.returncode}\n{done.stdout}{done.stderr}".replace(str(chosen.folder), "VENV")
        for pattern, instead in _VARYING:
            text = pattern.sub(instead, text)
        lines = [line for line in text.splitlines() if line.strip()]
        if "-n" not in arguments:
            return "\n".join(lines)
        return "\n".join(sorted(line for line in lines if re.match(r"\d|PASSED|XFAIL|FAILED|ERROR|=", line)))

    return run


def content(folder: Path) -> dict[str, str]:
    """Return the text of every file except git's own: path → text."""
    files = (path for path in folder.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8", "replace") for path in files}


@pytest.mark.slow
def test_the_wheel_does_not_change_the_repositorys_own_test_run(repository: Path, plain: Plain, call: Call) -> None:
    before, files = [plain(*it, wheel=False) for it in RUNS], content(repository)
    assert before[0].startswith("0\n"), before[0]
    assert [plain(*it, wheel=True) for it in RUNS] == before
    assert content(repository) == files
    assert call("schedspec", "init").returncode == 0
    files = content(repository)
    assert [plain(*it, wheel=True) for it in RUNS] == before
    assert plain(".", wheel=False) == before[2]
    assert content(repository) == files


def test_init_writes_its_files_into_one_folder_where_they_can_be_run(repository: Path, call: Call) -> None:
    before = content(repository)
    shown = call("schedspec", "init", "--dry-run").stdout
    assert content(repository) == before
    assert "+++ queues/pytest.ini" in shown
    assert "+/queues/out/" in shown
    assert "-__pycache__" not in shown
    init_output = call("schedspec", "init").stdout
    after = content(repository)
    assert {name for name in after if after[name] != before.get(name)} - {".gitignore"} == {
        "queues/features/lending.feature",
        "queues/policies/team.yaml",
        "queues/pytest.ini",
        "queues/steps/lending.py",
        "queues/schedspec-0.1.0-py3-none-any.whl",
        ".github/workflows/schedspec.yml",
    }, init_output
    assert after[".gitignore"] == f"{before['.gitignore']}\n/out/\n/queues/out/\n.pytest_cache/\n"
    call("schedspec", "init")
    assert content(repository) == after
    assert call("schedspec", "init", "--dry-run").stdout == ""
    for command in (["pytest", "queues", "--collect-only", "-q"], ["schedspec", "test", "--collect-only", "-q"]):
        done = call(*command)
        assert "2 tests collected" in done.stdout, done.stdout
    done = call("schedspec", "check")
    assert (done.returncode, "2 scenarios, 1 policy: no errors" in done.stdout) == (0, True), done.stdout
    assert "out" not in {path.name for path in repository.iterdir()}


def test_the_workflow_installs_the_wheel_in_the_repository(repository: Path, call: Call) -> None:
    call("schedspec", "init")
    text = (repository / ".github/workflows/schedspec.yml").read_text()
    (installed,) = re.findall(r"pip\" install .* (\S+)$", text, re.MULTILINE)
    assert (repository / installed).is_file()
    assert 'branches: ["trunk"]' in text
    assert "schedspec-${{ runner.os }}-${{ steps.locks.outputs.hash }}" in text
    assert "ci --features queues --cluster embedded --out queues/out/ci" in text


def test_the_doctor_names_version_conflicts(repository: Path, call: Call) -> None:
    doctor_output = call("schedspec", "doctor").stdout
    assert "versions clash: pyproject.toml: pytest<9 (schedspec needs pytest>=9.2)" in doctor_output
    assert "versions clash: pyproject.toml: pytest-bdd==8.1.0 (schedspec needs pytest-bdd==9.0.1)" in doctor_output
    assert "run: schedspec test" in doctor_output


def test_the_repositorys_suite_and_ours_can_run_in_one_pytest_run(repository: Path, call: Call) -> None:
    call("schedspec", "init")
    steps = (
        "from pytest_bdd import given\n\n@given('a basket of ours')\ndef _(world):\n    assert world['bought'] == []\n"
    )
    (repository / "queues/steps/lending.py").write_text(steps)
    feature = "Feature: Both\n  Scenario: A basket\n    Given a basket of ours\n    Then nothing is evicted\n"
    (repository / "queues/features/lending.feature").write_text(feature)
    settings = ["schedspec_features=queues/features", "schedspec_steps=queues/steps"]
    given = [word for it in settings for word in ("-o", it)]
    done = call("pytest", "-v", "-p", "no:cacheprovider", *given, "-o", "schedspec_cluster=embedded", "tests", "queues")
    # The project's own option --cluster conflicts with ours, which is reported before anything runs.
    assert "--cluster" in done.stdout
    conftest = repository / "conftest.py"
    conftest.write_text(
        re.sub(r"    parser.*\n", "", conftest.read_text())
        .replace("world(request)", "world()")
        .replace('request.config.getoption("--cluster")', '"staging"')
        .replace("(parser):\n", "(parser):\n    pass\n")
    )
    done = call("pytest", "-v", "-p", "no:cacheprovider", *given, "tests/bdd", "queues")
    assert "3 passed" in done.stdout, done.stdout
    assert "own templates replace ours" not in done.stdout
    assert "schedspec: conftest.py:8 defines its own fixture 'world'; schedspec's is schedspec_world" in done.stdout
