"""Build a Kind node image where no image registry is reached: Debian from its packages, everything else with Go.

kind-config/node-image/README.md says what kind wants of such an image. Takes about eight minutes with empty caches, one
with warm ones. Nothing here is started unasked.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from .. import subprocess_run
from ..docker import Docker
from ..paths import cache_root, kind_config
from ..programs.binaries import Provider, named_folder
from ..programs.cache import Cache
from ..programs.download import Downloads
from ..programs.kind_programs import CONTROL_PLANE, NETWORK, NODE, node_programs
from ..protocol import BinaryError, Progress
from . import archive_format, archives
from .archive_format import Image

_ROOT_SECONDS = 600.0
_ENTRYPOINT = '["/usr/local/bin/entrypoint", "/sbin/init"]'


def recipe() -> Path:
    return kind_config() / "node-image"


def version() -> str:
    """Of Kubernetes on the node, for instance `v1.36.3`."""
    return node_programs()["kubelet"].version


def key() -> str:
    """Changes with everything that the image is made from: this file, the recipe, the programs."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for name in ("root", "setup"):
        digest.update((recipe() / name).read_bytes())
    for file in sorted(path for path in (recipe() / "files").rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(recipe())}\0".encode() + file.read_bytes())
    for name, program in sorted(node_programs().items()):
        digest.update(f"{name} {program.key}\0".encode())
    return digest.hexdigest()[:12]


def reference() -> str:
    """The image's name in an engine."""
    return f"schedspec.local/node:{version()}-{key()}"


def archive() -> Path:
    """Where the built image is kept, if it was built."""
    return archives.place(f"node-{version()}-{key()}.tar")


def build(docker: Docker, progress: Progress) -> Path:
    """Make the image, load it into the engine and keep its archive in the cache. Raises ClusterError."""
    docker.require()
    return archives.kept(archive().name, lambda path: _Build(docker, progress).make(path), progress)


class _Build:
    """One build; tells its steps and how long they take."""

    def __init__(self, docker: Docker, progress: Progress) -> None:
        self._docker = docker
        self._progress = progress
        self._start = time.monotonic()

    def make(self, to: Path) -> None:
        provider = Provider(Cache(cache_root()), Downloads(), named_folder(None), self._progress)
        programs = {name: binary.path for name, binary in provider.provide(list(node_programs().values())).items()}
        root = archives.kept(f"root-{_digest(recipe() / 'root')}.tar", self._make_root, self._progress)
        with tempfile.TemporaryDirectory(dir=to.parent, prefix=".node-") as folder, self._container(root) as container:
            work = Path(folder)
            names = control_plane_names(programs["kubeadm"])
            self._say("copying files and programs")
            self._furnish(container, programs, names["pause"], work)
            self._say("making the control plane's images")
            self._docker.call("exec", container, "/setup", "kube-proxy", "/kube-proxy.tar")
            self._docker.call("cp", f"{container}:/kube-proxy.tar", work)
            archive_format.write(work / "images.tar", _control_plane(programs, names, work / "kube-proxy.tar"))
            self._say("putting them into containerd's store")
            self._docker.call("cp", work / "images.tar", f"{container}:/images.tar")
            self._docker.call("exec", container, "/setup", "import", "/images.tar")
            self._docker.call("exec", container, "rm", "-f", "/setup", "/kube-proxy.tar")
            self._say("saving the image")
            self._docker.call("commit", "--change", f"ENTRYPOINT {_ENTRYPOINT}", container, reference())
        self._docker.call("save", "--output", to, reference(), tick=lambda s: self._say(f"saving the image, {s:.0f} s"))
        self._say("done")

    @contextmanager
    def _container(self, root: Path) -> Iterator[str]:
        """The container that becomes the image, running; removed in the end, with what it was made from."""
        name = f"schedspec-node-image-{secrets.token_hex(4)}"
        base = f"schedspec.local/node-root:{secrets.token_hex(4)}"
        self._say("starting a container on the Debian root")
        self._docker.call("import", root, base)
        try:
            self._docker.call(
                *("run", "--detach", "--privileged", "--name", name),
                *("--env", "container=docker", "--stop-signal", "SIGRTMIN+3", "--entrypoint", "/bin/sleep"),
                *(base, "infinity"),
            )
            yield name
        finally:
            self._docker.succeeds("rm", "--force", "--volumes", name, deadline=60)
            self._docker.succeeds("rmi", "--force", base, deadline=60)

    def _furnish(self, container: str, programs: Mapping[str, Path], pause: str, work: Path) -> None:
        """Files, programs and what systemd starts."""
        files = work / "files"
        shutil.copytree(recipe() / "files", files)
        containerd = files / "etc/containerd/config.toml"
        containerd.write_text(containerd.read_text("utf-8").replace("@SANDBOX@", pause), "utf-8")
        (files / "kind/version").write_text(version(), "utf-8")
        for folder, names in (("usr/bin", NODE), ("usr/lib/cni", NETWORK)):
            (files / folder).mkdir(parents=True, exist_ok=True)
            for name in names:
                shutil.copy2(programs[name], files / folder / name)
        for path in files.rglob("*"):  # whatever umask the checkout was made with
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        self._docker.call("cp", f"{files}/.", f"{container}:/")
        self._docker.call("cp", recipe() / "setup", f"{container}:/setup")
        self._docker.call("exec", container, "/setup", "system")

    def _make_root(self, to: Path) -> None:
        if shutil.which("mmdebstrap") is None:
            raise BinaryError(
                "the node image needs mmdebstrap, and it is not installed",
                "PATH",
                "apt-get install mmdebstrap (Debian or Ubuntu), or name a node image that exists: --kind-image",
            )
        self._say("installing the Debian root")
        in_memory = {"TMPDIR": "/dev/shm"} if os.access("/dev/shm", os.W_OK) else {}  # noqa: S108 - four times as fast
        done = subprocess_run.run(
            [recipe() / "root", to],
            deadline=_ROOT_SECONDS,
            env=in_memory,
            tick=lambda s: self._say(f"installing the Debian root, {s:.0f} s"),
        )
        if done.status != 0 or not to.is_file():
            raise BinaryError(
                f"mmdebstrap could not make the Debian root (exit status {done.status}):\n{done.last_lines}",
                str(recipe() / "root"),
                "repair what it says above; if it cannot download packages, look at apt's configuration",
            )

    def _say(self, step: str) -> None:
        self._progress(f"node image {version()}: {step}; {time.monotonic() - self._start:.0f} s in all")


def control_plane_names(kubeadm: Path) -> dict[str, str]:
    """Every image that kubeadm starts, with the name that it asks for: `etcd` → `registry…/etcd:3.6.8-0`."""
    command = [str(kubeadm), "config", "images", "list", "--kubernetes-version", version()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    names = {name.rpartition("/")[2].partition(":")[0]: name for name in done.stdout.split()}
    if missing := {"pause", *CONTROL_PLANE} - names.keys():
        raise BinaryError(
            f"kubeadm {version()} does not name the images of {', '.join(sorted(missing))}:\n{done.stderr.strip()}",
            " ".join(command),
            "repair kind-config/tools/kubernetes, or own_programs.py",
        )
    return names


def _control_plane(programs: Mapping[str, Path], names: Mapping[str, str], kube_proxy: Path) -> list[Image]:
    pods = [
        Image(
            names[name],
            {f"/usr/local/bin/{name}": programs[name]},
            entrypoint=[f"/usr/local/bin/{name}"],
            under=kube_proxy if name == "kube-proxy" else None,
        )
        for name in CONTROL_PLANE
    ]
    return [*pods, Image(names["pause"], {"/pause": programs["worker"]}, entrypoint=["/pause"])]


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()[:12]
