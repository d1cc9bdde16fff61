"""The scheduler as an image, made from this checkout by deploy/Dockerfile: what runs is what is under test.

The one rule: the build itself uses no network. The wheels are fetched before, by pip as it is configured here.

python -m schedspec.clusters.images.scheduler_image     # makes it, prints its name and the archive's path
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from ... import terminal
from .. import subprocess_run
from ..docker import Docker
from ..paths import part
from ..protocol import BinaryError, ClusterError, Progress
from . import archives, python_base

NAME = "schedspec.local/scheduler"
"""The image's name in deploy/deployment.yaml; its tag there is replaced by ours."""

_FETCH_SECONDS = 600.0
_BUILD_SECONDS = 600.0
_MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
_PLATFORMS = ("manylinux_2_28", "manylinux_2_17", "manylinux2014")


def tag() -> str:
    """Changes with everything of ours that the image is made from."""
    digest = hashlib.sha256(python_base.recipe().read_bytes())
    for file in [_lock(), _dockerfile(), *_sources()]:
        digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def archive(docker: Docker, progress: Progress) -> tuple[str, Path]:
    """The image's tag and its archive, as `Cluster.load_image` takes it, made if need be. Raises ClusterError."""
    docker.require()
    now = tag()
    return now, archives.kept(f"scheduler-{now}.tar", lambda path: _make(docker, now, path, progress), progress)


def _make(docker: Docker, now: str, to: Path, progress: Progress) -> None:
    base = python_base.provide(docker, progress)
    reference = f"{NAME}:{now}"
    wheels = _wheels(docker, progress)
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=".scheduler-") as folder:
        context = Path(folder)
        _fill(context, wheels)
        progress(f"{reference}: building on {base}")
        docker.call(
            *("build", "--quiet", "--network", "none", "--tag", reference, "--file", _dockerfile()),
            *("--build-arg", f"BASE={base}", "--build-arg", "PIP_NO_INDEX=1", context),
            deadline=_BUILD_SECONDS,
            tick=lambda s: progress(f"{reference}: building on {base}, {s:.0f} s"),
        )
    docker.call("save", "--output", to, reference, tick=lambda s: progress(f"{reference}: saving, {s:.0f} s"))
    for old in docker.call("images", "--format", "{{.Tag}}", NAME).split():
        if old != now:
            docker.succeeds("rmi", f"{NAME}:{old}", deadline=60)


def _fill(context: Path, wheels: Path) -> None:
    """What the Dockerfile copies, readable by anybody whatever umask the checkout was made with."""
    (context / "deploy").mkdir()
    shutil.copy(_lock(), context / "deploy")
    root = part("scheduler")
    for source in _sources():
        copy = context / "scheduler" / source.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
    with tarfile.open(wheels) as tar:
        tar.extractall(context / "wheels", filter="data")
    for path in context.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def _wheels(docker: Docker, progress: Progress) -> Path:
    """The locked packages for the engine's machine and the base's Python, as a tar of wheels."""
    said = docker.call("version", "--format", "{{.Server.Arch}}").split()[-1]
    machine = _MACHINES.get(said, said)
    key = hashlib.sha256(f"{machine} {python_base.PYTHON}\0".encode() + _lock().read_bytes()).hexdigest()[:12]
    return archives.kept(f"wheels-{key}.tar", lambda path: _fetch(machine, path, progress), progress)


def _fetch(machine: str, to: Path, progress: Progress) -> None:
    with tempfile.TemporaryDirectory(dir=to.parent, prefix=".wheels-") as folder:
        command = [*(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check")]
        command += ["--require-hashes", "--only-binary", ":all:", "--dest", folder, "--requirement", str(_lock())]
        command += ["--implementation", "cp", "--python-version", python_base.PYTHON]
        for platform in _PLATFORMS:
            command += ["--platform", f"{platform}_{machine}"]
        done = subprocess_run.run(
            command,
            deadline=_FETCH_SECONDS,
            tick=lambda s: progress(f"{NAME}: fetching the locked packages, {s:.0f} s"),
        )
        if done.status != 0:
            raise BinaryError(
                f"pip could not fetch the packages of the scheduler (exit status {done.status}):\n{done.last_lines}",
                str(_lock()),
                "repair what it says above; if it reaches no index, look at `pip config list`",
            )
        with tarfile.open(to, "w") as tar:
            for wheel in sorted(Path(folder).iterdir()):
                tar.add(wheel, wheel.name)


def _lock() -> Path:
    return part("deploy") / "requirements.lock"


def _dockerfile() -> Path:
    return part("deploy") / "Dockerfile"


def _sources() -> list[Path]:
    return sorted(part("scheduler").rglob("*.py"))


def main() -> int:
    lines = terminal.on_stderr()
    try:
        now, path = archive(Docker(), lines.tell)
    except ClusterError as error:
        lines.close()
        sys.stderr.write(f"{error}\n")
        return 1
    lines.close()
    sys.stdout.write(f"{NAME}:{now}\n{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
