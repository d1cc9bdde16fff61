"""Which programs there are, in which version, and where each comes from: data, and functions over kind-config/tools.

A version is written once, in the go.mod of the module that builds the program. Nothing is downloaded whose checksum
does not stand in kind-config/tools/checksums.txt.
"""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..paths import kind_config
from ..protocol import BinaryError

EMBEDDED = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "kwok", "kwokctl")
"""What an embedded cluster is made of; kwokctl calls kubectl."""


@dataclass(frozen=True, slots=True)
class Release:
    """An official build, with the checksum that kind-config/tools/checksums.txt has of it."""

    url: str
    sha256: str
    member: str | None = None
    """The program's path if `url` is a .tar.gz."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program: how to build it, and the release that is its equal, if its checksum is known."""

    name: str
    version: str
    module: Path
    """The folder with go.mod and go.sum."""
    package: str
    ldflags: str
    release: Release | None

    @property
    def key(self) -> str:
        """Changes with everything that the program is built from."""
        digest = hashlib.sha256()
        parts = [self.name, self.version, self.package, self.ldflags, *target()]
        digest.update("\0".join(parts).encode())
        for name in ("go.mod", "go.sum"):
            digest.update((self.module / name).read_bytes())
        return digest.hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class _Family:
    module: str
    """Folder under kind-config/tools."""
    require: str
    """The module path whose version is the program's."""
    package: str
    """With {name}."""
    ldflags: str = ""
    """With {version} and {minor}."""
    url: str = ""
    """With {name}, {version}, {os}, {arch}."""
    member: str | None = None


_VERSION = "k8s.io/component-base/version"
_KUBERNETES = _Family(
    module="kubernetes",
    require="k8s.io/kubernetes",
    package="k8s.io/kubernetes/cmd/{name}",
    ldflags=f"-X {_VERSION}.gitVersion={{version}} -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor={{minor}}",
    url="https://dl.k8s.io/release/{version}/bin/{os}/{arch}/{name}",
)
_GITHUB = "https://github.com"
_ETCD = f"{_GITHUB}/etcd-io/etcd/releases/download/{{version}}"
_KWOK = _Family(
    module="kwok",
    require="sigs.k8s.io/kwok",
    package="sigs.k8s.io/kwok/cmd/{name}",
    ldflags="-X sigs.k8s.io/kwok/pkg/consts.Version={version}",
    url=f"{_GITHUB}/kubernetes-sigs/kwok/releases/download/{{version}}/{{name}}-{{os}}-{{arch}}",
)
_FAMILIES = {
    "etcd": _Family(
        module="etcd",
        require="go.etcd.io/etcd/server/v3",
        package="go.etcd.io/etcd/server/v3",
        url=f"{_ETCD}/etcd-{{version}}-{{os}}-{{arch}}.tar.gz",
        member="etcd-{version}-{os}-{arch}/etcd",
    ),
    "kind": _Family(
        module="kind",
        require="sigs.k8s.io/kind",
        package="sigs.k8s.io/kind",
        url=f"{_GITHUB}/kubernetes-sigs/kind/releases/download/{{version}}/kind-{{os}}-{{arch}}",
    ),
    "kwok": _KWOK,
    "kwokctl": _KWOK,
    **dict.fromkeys(
        (
            "kube-apiserver",
            "kube-controller-manager",
            "kube-proxy",
            "kube-scheduler",
            "kubeadm",
            "kubectl",
            "kubelet",
        ),
        _KUBERNETES,
    ),
}


_VERSIONED = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""What is of the Kubernetes version that a run asks for; the others may be a minor version apart."""


def kubernetes_versions() -> dict[str, Path]:
    """The minor versions of Kubernetes that are pinned, and the module of each; the first is the default."""
    tools = kind_config() / "tools"
    pinned = required_version(tools / _KUBERNETES.module / "go.mod", _KUBERNETES.require)
    others = sorted(tools.glob(f"{_KUBERNETES.module}-*"))
    return {minor_of(pinned): tools / _KUBERNETES.module, **{it.name.rpartition("-")[2]: it for it in others}}


def minor_of(version: str) -> str:
    """`1.36` of `v1.36.3`."""
    return ".".join(version.removeprefix("v").split(".")[:2])


def program(name: str, kubernetes: str | None = None) -> Program:
    """The program of that name, for this platform; `kubernetes` is a minor version, for what there is in several.

    Raises BinaryError if there is none.
    """
    if name not in _FAMILIES:
        raise BinaryError(f"no program is called {name!r}", "kind-config/tools", f"name one of: {', '.join(_FAMILIES)}")
    family = _FAMILIES[name]
    module = kind_config() / "tools" / family.module
    if kubernetes is not None and name in _VERSIONED:
        module = kubernetes_versions()[kubernetes]
    version = required_version(module / "go.mod", family.require)
    system, arch = target()
    words = {"name": name, "version": version, "minor": version.split(".")[1], "os": system, "arch": arch}
    url = family.url.format(**words)
    known = checksums().get(url)
    release = Release(url, known, family.member.format(**words) if family.member else None) if known else None
    return Program(name, version, module, family.package.format(**words), family.ldflags.format(**words), release)


def checksums() -> dict[str, str]:
    """The SHA-256 of every file that may be downloaded, by URL."""
    lines = (kind_config() / "tools" / "checksums.txt").read_text("utf-8").splitlines()
    return {url: digest for digest, url in (line.split() for line in lines if line and not line.startswith("#"))}


def programs(names: Iterable[str], kubernetes: str | None = None) -> list[Program]:
    return [program(name, kubernetes) for name in names]


def required_version(go_mod: Path, require: str) -> str:
    """The version of a module that a go.mod requires, for instance `v1.36.3`."""
    match = re.search(rf"^\s*(?:require\s+)?{re.escape(require)}\s+(v\S+)", go_mod.read_text("utf-8"), re.MULTILINE)
    if not match:
        raise BinaryError(f"{require} is not required there", str(go_mod), "repair kind-config/tools (git status)")
    return match[1]


def target() -> tuple[str, str]:
    """Operating system and architecture as Go names them, for instance `("linux", "amd64")`."""
    machine = platform.machine().lower()
    return sys.platform, {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
