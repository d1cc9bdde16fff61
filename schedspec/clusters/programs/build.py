"""Build a program with Go from its pinned module. Knows nothing of caches and downloads."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .. import subprocess_run
from ..protocol import BinaryError
from ..subprocess_run import Tick, silent
from .pinned import Program


def go() -> str | None:
    """The path of Go, if it is installed: in PATH, or where its installer puts it."""
    usual = Path("/usr/local/go/bin/go")
    return shutil.which("go") or (str(usual) if os.access(usual, os.X_OK) else None)


def build(program: Program, to: Path, tick: Tick = silent) -> None:
    """Put a static, stripped build at `to`. `tick` is called every five seconds. Raises BinaryError."""
    compiler = go()
    if compiler is None:
        raise BinaryError(
            f"{program.name} {program.version} has to be built, and Go is not installed",
            "PATH",
            f"install Go (https://go.dev/dl), or set SCHEDSPEC_BINARIES to a folder that has {program.name}",
        )
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
        env={"CGO_ENABLED": "0", "GOWORK": "off", "GOFLAGS": ""},
        tick=tick,
    )
    if done.status != 0 or not to.is_file():
        raise BinaryError(
            f"Go could not build {program.name} {program.version} (exit status {done.status}):\n{done.last_lines}",
            f"cd {program.module} && go build {program.package}",
            "repair what Go says above; if it cannot download modules, look at `go env GOPROXY`",
        )
