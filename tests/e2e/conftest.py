"""Install the wheel in a separate environment, and run its programs in a folder outside of this repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Call = Callable[..., "subprocess.CompletedProcess[str]"]
Start = Callable[..., "subprocess.Popen[str]"]


@dataclass(frozen=True)
class Environment:
    """A virtual environment with the built wheel and its dependencies, but without the checkout."""

    folder: Path

    @property
    def site(self) -> Path:
        """Return its site-packages."""
        return Path(sysconfig.get_path("purelib", "venv", {"base": str(self.folder), "platbase": str(self.folder)}))

    def program(self, name: str) -> str:
        """Return the path of one of its programs."""
        return str(self.folder / "bin" / name)

    @property
    def variables(self) -> dict[str, str]:
        """Return the environment variables of its programs."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "PYTHON", "GITHUB"))}
        return {**kept, "PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Build the wheel and install it with pip; its dependencies are those of the tests' environment."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # as it is released: without files that git ignores
    ignored = shutil.ignore_patterns(".*", "out", "__pycache__", "tests", "benchmarks")
    shutil.copytree(ROOT, source, ignore=ignored)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    found = Environment(folder / "venv")
    venv.create(found.folder, with_pip=False, symlinks=True)
    (found.site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = ["install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", str(wheel)]
    python = found.program("python")
    subprocess.run([sys.executable, "-m", "pip", "--python", python, *install], check=True, capture_output=True)
    for program in ("pytest",):
        (found.folder / "bin" / program).write_text(f"#!{python}\nimport pytest\nraise SystemExit(pytest.main())\n")
        (found.folder / "bin" / program).chmod(0o755)
    return found


@pytest.fixture
def start(environment: Environment, tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a program of `environment` in `tmp_path`; kill the programs at the end."""
    started: list[subprocess.Popen[str]] = []

    def begin(program: str, *arguments: object) -> subprocess.Popen[str]:
        command = [environment.program(program), *map(str, arguments)]
        with (tmp_path / f"{len(started)}.log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=tmp_path, env=environment.variables, stdout=subprocess.PIPE, stderr=log, text=True
            )
        started.append(process)
        return process

    yield begin
    for process in started:
        with process:  # waits for the process, and closes its output
            process.kill()


@pytest.fixture
def call(environment: Environment, tmp_path: Path) -> Call:
    """Return a function that runs a program of `environment` in `tmp_path`, with stdout and stderr as one text."""

    def run(
        program: str, *arguments: object, cwd: Path = tmp_path, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [environment.program(program), *map(str, arguments)],
            cwd=cwd,
            env={**environment.variables, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    return run
