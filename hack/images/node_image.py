"""Build a Kind node image without an image registry: Debian from its packages, all programs from source with Go.

hack/images/node-image/README.md lists what kind requires of a node image. A build takes about eight minutes with empty
caches and one minute with warm ones.

    python -m hack.images.node_image build     # build the image and keep its archive in the cache
    python -m hack.images.node_image where     # print the image that a Kind cluster would get; fails on an old build
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from hack.images import command, debian_root
from hack.images.node_programs import CONTROL_PLANE, NETWORK, NODE, RECIPE, node_programs
from schedspec.clusters.docker import Docker
from schedspec.clusters.images import archives
from schedspec.clusters.images import node_image as found
from schedspec.clusters.images.archives import Image
from schedspec.clusters.paths import cache_root
from schedspec.clusters.programs.binaries import Provider, named_folder
from schedspec.clusters.programs.cache import Cache
from schedspec.clusters.programs.download import Downloads
from schedspec.clusters.protocol import BinaryError, Progress, Settings

_ENTRYPOINT = '["/usr/local/bin/entrypoint", "/sbin/init"]'


def version() -> str:
    """Return the Kubernetes version of the node, for instance `v1.36.3`."""
    return node_programs()["kubelet"].version


def key() -> str:
    """Return a digest of everything that the image is made from: this file, the recipe, the programs."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for name in ("root", "setup"):
        digest.update((RECIPE / name).read_bytes())
    for file in sorted(path for path in (RECIPE / "files").rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(RECIPE)}\0".encode() + file.read_bytes())
    for name, program in sorted(node_programs().items()):
        digest.update(f"{name} {program.key}\0".encode())
    return digest.hexdigest()[:12]


def archive() -> Path:
    """Return the path of the built image in the cache. The file may be missing."""
    return archives.place(f"node-{version()}-{key()}.tar")


def reference() -> str:
    """Return the image's name in an engine."""
    return found.reference_of(archive())


def build(docker: Docker, progress: Progress) -> Path:
    """Return the image's archive in the cache. If it is missing, build it, which also leaves the image in the engine.

    Raises:
        ClusterError: a program or the image could not be built.
    """
    return archives.kept(archive().name, lambda path: _Build(docker, progress).make(path), progress)


def where(docker: Docker) -> str:
    """Return the image that a Kind cluster would get here.

    Raises:
        ClusterError: there is none, or the built one is older than the recipe.
    """
    image = found.require(Settings(kind="kind"), docker)
    if image.reference.startswith(found.OWN) and image.reference != reference():
        raise found.NodeImageError(
            f"the node image {image.reference} was built from another recipe",
            reference(),
            "build the image again: python -m hack.images.node_image build",
        )
    return f"{image.reference} ({image.how})"


class _Build:
    """One build. Reports each step with the time since the start."""

    def __init__(self, docker: Docker, progress: Progress) -> None:
        self._docker = docker
        self._progress = progress
        self._start = time.monotonic()

    def make(self, to: Path) -> None:
        provider = Provider(Cache(cache_root()), Downloads(), named_folder(None), self._progress)
        programs = {name: binary.path for name, binary in provider.provide(list(node_programs().values())).items()}
        root = archives.kept(f"root-{_digest(RECIPE / 'root')}.tar", self._make_root, self._progress)
        with tempfile.TemporaryDirectory(dir=to.parent, prefix=".node-") as folder, self._container(root) as container:
            work = Path(folder)
            names = control_plane_names(programs["kubeadm"])
            self._report("copying files and programs")
            self._install(container, programs, names["pause"], work)
            self._report("making the control plane's images")
            self._docker.call("exec", container, "/setup", "kube-proxy", "/kube-proxy.tar")
            self._docker.call("cp", f"{container}:/kube-proxy.tar", work)
            archives.write(work / "images.tar", _control_plane(programs, names, work / "kube-proxy.tar"))
            self._report("putting them into containerd's store")
            self._docker.call("cp", work / "images.tar", f"{container}:/images.tar")
            self._docker.call("exec", container, "/setup", "import", "/images.tar")
            self._docker.call("exec", container, "rm", "-f", "/setup", "/kube-proxy.tar")
            self._report("saving the image")
            self._docker.call("commit", "--change", f"ENTRYPOINT {_ENTRYPOINT}", container, reference())
        self._docker.call(
            "save", "--output", to, reference(), tick=lambda s: self._report(f"saving the image, {s:.0f} s")
        )
        self._report("done")

    @contextmanager
    def _container(self, root: Path) -> Iterator[str]:
        """Run the container that becomes the image; remove the container and its base image at the end."""
        name = f"schedspec-node-image-{secrets.token_hex(4)}"
        base = f"schedspec.local/node-root:{secrets.token_hex(4)}"
        self._report("starting a container on the Debian root")
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

    def _install(self, container: str, programs: Mapping[str, Path], pause: str, work: Path) -> None:
        """Copy files and programs into the container and enable the units that systemd starts."""
        files = work / "files"
        shutil.copytree(RECIPE / "files", files)
        containerd = files / "etc/containerd/config.toml"
        containerd.write_text(containerd.read_text("utf-8").replace("@SANDBOX@", pause), "utf-8")
        (files / "kind/version").write_text(version(), "utf-8")
        for folder, names in (("usr/bin", NODE), ("usr/lib/cni", NETWORK)):
            (files / folder).mkdir(parents=True, exist_ok=True)
            for name in names:
                shutil.copy2(programs[name], files / folder / name)
        for path in files.rglob("*"):  # the umask of the checkout must not matter
            path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)
        self._docker.call("cp", f"{files}/.", f"{container}:/")
        self._docker.call("cp", RECIPE / "setup", f"{container}:/setup")
        self._docker.call("exec", container, "/setup", "system")

    def _make_root(self, to: Path) -> None:
        self._report("installing the Debian root")
        debian_root.make(
            RECIPE / "root",
            to,
            lambda s: self._report(f"installing the Debian root, {s:.0f} s"),
            "name a node image that exists: --kind-image",
        )

    def _report(self, step: str) -> None:
        self._progress(f"node image {version()}: {step}; {time.monotonic() - self._start:.0f} s in all")


def control_plane_names(kubeadm: Path) -> dict[str, str]:
    """Map each program to the image name that kubeadm requires: `etcd` → `registry…/etcd:3.6.8-0`."""
    command = [str(kubeadm), "config", "images", "list", "--kubernetes-version", version()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    names = {name.rpartition("/")[2].partition(":")[0]: name for name in done.stdout.split()}
    if missing := {"pause", *CONTROL_PLANE} - names.keys():
        raise BinaryError(
            f"kubeadm {version()} does not name the images of {', '.join(sorted(missing))}:\n{done.stderr.strip()}",
            " ".join(command),
            "correct kind-config/tools/kubernetes or CONTROL_PLANE in hack/images/node_programs.py",
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


if __name__ == "__main__":
    sys.exit(
        command.run(
            "python -m hack.images.node_image",
            {"build": lambda docker, progress: str(build(docker, progress)), "where": lambda docker, _: where(docker)},
        )
    )
