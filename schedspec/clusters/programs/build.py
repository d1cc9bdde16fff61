"""Build a program with Go, from its pinned module or from the module as published. Independent of caches.

A version that is not pinned is built in a copy of its module, as its own authors build it: Go heeds the replacements in
the go.mod of a main module only. Go verifies the module by the checksum database, and its dependencies by its go.sum.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

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
    flags = ("-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {program.ldflags}".strip(), "-o", to)
    with _main_module(program) as folder:
        mode = "-mod=mod" if program.module is None else "-mod=readonly"
        done = subprocess_run.run(
            [_compiler(program), "build", mode, *flags, program.package], cwd=folder, env=_ENVIRONMENT, tick=tick
        )
    if done.status != 0 or not to.is_file():
        raise _failed(program, f"go build {program.package}", done)


def require_buildable(program: Program) -> None:
    """Check within a second that Go can build a program: Go is new enough, and has the source or can download it.

    Raises:
        BinaryError: Go is missing, too old, or cannot download the module.
    """
    compiler, module = _compiler(program), f"{program.require}@{program.version}"
    cache = Path(_go(compiler, program, "env", "GOMODCACHE").strip())
    if program.module is not None:
        _go(compiler, program, "list", "-m")
    if not (cache / module).is_dir():
        _go(compiler, program, "list", "-m", module)


def module_source(program: Program, *, downloads: bool = True) -> Path:
    """Return the folder of the program's Go module as published; Go verifies it.

    Raises:
        BinaryError: Go is not installed, or cannot download the module; without `downloads`, it is not in Go's cache.
    """
    version = "" if program.module else f"@{program.version}"
    answer = _go(
        _compiler(program),
        program,
        *("mod", "download", "-json", f"{program.require}{version}"),
        environment={} if downloads else {"GOPROXY": "off"},
    )
    return Path(json.loads(answer[answer.index("{") :])["Dir"])


@contextmanager
def _main_module(program: Program) -> Iterator[Path]:
    """Yield a folder in which Go builds the program: the pinned module, or a copy of the published one."""
    if program.module is not None:
        yield program.module
        return
    source = module_source(program)
    with tempfile.TemporaryDirectory(prefix="schedspec-module-") as new:
        folder = Path(new) / "module"
        shutil.copytree(source, folder, copy_function=shutil.copyfile)
        folder.chmod(0o755)  # Go's cache is read-only, and Go completes go.mod and go.sum
        _replace_parts(program, folder)
        yield folder


def _replace_parts(program: Program, folder: Path) -> None:
    """Replace the parts of the module's own tree, which are not published with it, by their published versions.

    The staging modules of Kubernetes v1.36.3 are published as v0.36.3. Others have the version of the module itself, or
    that of its minor version.
    """
    compiler = _compiler(program)
    found = json.loads(_go(compiler, program, "mod", "edit", "-json", folder=folder))
    for replaced in found.get("Replace") or ():
        part, place = replaced["Old"]["Path"], replaced["New"]["Path"]
        if not place.startswith("."):
            continue
        version = program.version
        if program.require == "k8s.io/kubernetes":
            version = f"v0.{version.partition('.')[2]}"
        if not _is_published(program, f"{part}@{version}"):
            version = f"{version.rpartition('.')[0]}.0"
        _go(compiler, program, "mod", "edit", f"-replace={part}={part}@{version}", folder=folder)


def _is_published(program: Program, module: str) -> bool:
    command = [_compiler(program), "list", "-m", module]
    with tempfile.TemporaryDirectory() as outside:
        return subprocess_run.run(command, cwd=Path(outside), env=_ENVIRONMENT).status == 0


def _go(
    compiler: str,
    program: Program,
    *words: str,
    folder: Path | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Run Go in a folder, by default in the pinned module or outside of any module, and return what it prints."""
    with tempfile.TemporaryDirectory() as outside:
        where = folder or program.module or Path(outside)
        done = subprocess_run.run([compiler, *words], cwd=where, env={**_ENVIRONMENT, **environment})
    if done.status != 0:
        raise _failed(program, f"go {' '.join(words)}", done)
    return done.output


def _failed(program: Program, command: str, done: subprocess_run.Finished) -> BinaryError:
    return BinaryError(
        f"Go cannot build {program.name} {program.version} (exit status {done.status}):\n{done.last_lines}",
        f"cd {program.module} && {command}" if program.module else command,
        "repair the failure that Go reports above; if Go cannot download modules, check `go env GOPROXY`",
    )


def _compiler(program: Program) -> str:
    compiler = go()
    if compiler is None:
        raise BinaryError(
            f"{program.name} {program.version} has to be built, and Go is not installed",
            "PATH",
            f"install Go (https://go.dev/dl), or set SCHEDSPEC_BINARIES to a folder that has {program.name}",
        )
    return compiler
