"""Build a program with Go from its pinned module. Independent of caches and downloads."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from .. import subprocess_run
from ..protocol import BinaryError
from ..subprocess_run import Tick, silent
from .pinned import Program


def go() -> str | None:
    """Return the path of Go from PATH or its installer's location, or None."""
    usual = Path("/usr/local/go/bin/go")
    return shutil.which("go") or (str(usual) if os.access(usual, os.X_OK) else None)


_ENVIRONMENT = {"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": ""}


def build(program: Program, to: Path, tick: Tick = silent) -> None:
    """Build a static, stripped program at `to`. `tick` is called every five seconds.

    Raises:
        BinaryError: Go is missing or failed.
    """
    compiler = _compiler(program)
    done = subprocess_run.run(
        [
            compiler,
            "build",
            "-mod=readonly",
            "-trimpath",
            "-buildvcs=false",
            "-ldflags",
            f"-s -w {program.ldflags}".strip(),
            "-o",
            to,
            program.package,
        ],
        cwd=program.module,
        env=_ENVIRONMENT,
        tick=tick,
    )
    if done.status != 0 or not to.is_file():
        raise BinaryError(
            f"Go could not build {program.name} {program.version} (exit status {done.status}):\n{done.last_lines}",
            f"cd {program.module} && go build {program.package}",
            "repair the failure that Go reports above; if Go cannot download modules, check `go env GOPROXY`",
        )


def require_buildable(program: Program) -> None:
    """Check within a second that Go can build a program: Go is new enough, and has the source or can download it.

    Raises:
        BinaryError: Go is missing, too old, or cannot download the module.
    """
    compiler, module = _compiler(program), f"{program.require}@{program.version}"
    cache = Path(_go(compiler, program, "env", "GOMODCACHE").strip())
    _go(compiler, program, "list", "-m")
    if not (cache / module).is_dir():
        _go(compiler, program, "list", "-m", module)


def _go(compiler: str, program: Program, *words: str) -> str:
    done = subprocess_run.run([compiler, *words], cwd=program.module, env=_ENVIRONMENT)
    if done.status != 0:
        raise BinaryError(
            f"Go cannot build {program.name} {program.version} (exit status {done.status}):\n{done.last_lines}",
            f"cd {program.module} && go {' '.join(words)}",
            "repair the failure that Go reports above; if Go cannot download modules, check `go env GOPROXY`",
        )
    return done.output


def module_source(program: Program, *, downloads: bool = True) -> Path:
    """Return the folder of the program's Go module as published; `go.sum` verifies it.

    Raises:
        BinaryError: Go is not installed, or cannot download the module; without `downloads`, it is not in Go's cache.
    """
    environment = _ENVIRONMENT if downloads else {**_ENVIRONMENT, "GOPROXY": "off"}
    done = subprocess_run.run(
        [_compiler(program), "mod", "download", "-json", program.require], cwd=program.module, env=environment
    )
    if done.status != 0:
        raise BinaryError(
            f"Go could not download {program.require} {program.version}:\n{done.last_lines}",
            f"cd {program.module} && go mod download {program.require}",
            "repair the failure that Go reports above; if Go cannot download modules, check `go env GOPROXY`",
        )
    return Path(json.loads(done.output[done.output.index("{") :])["Dir"])


def _compiler(program: Program) -> str:
    compiler = go()
    if compiler is None:
        raise BinaryError(
            f"{program.name} {program.version} has to be built, and Go is not installed",
            "PATH",
            f"install Go (https://go.dev/dl), or set SCHEDSPEC_BINARIES to a folder that has {program.name}",
        )
    return compiler
