"""Programs: their versions and sources, as data and as functions over kind-config/tools.

Each pinned version is written once, in the go.mod of the module that builds the program. Only releases with a checksum
in kind-config/tools/checksums.txt are downloaded. Any other version of a scheduler is built from its module as
published, or taken out of its release image.
"""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from ..paths import kind_config
from ..protocol import BinaryError

EMBEDDED = ("etcd", "kube-apiserver", "kube-controller-manager", "kwok", "kwokctl")
"""Programs of an embedded cluster."""
KIND = ("kind", "kubectl", "kwok")
"""Programs of a Kind cluster on this machine."""


@dataclass(frozen=True, slots=True)
class Release:
    """An official build, with its checksum from kind-config/tools/checksums.txt."""

    url: str
    sha256: str
    member: str | None = None
    """The program's path if `url` is a .tar.gz."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program: how to build it, and the equivalent release if its checksum is known."""

    name: str
    version: str
    module: Path | None
    """The folder with go.mod and go.sum; None for a version that is not pinned."""
    package: str
    ldflags: str
    release: Release | None
    require: str = ""
    """The path of the Go module that the program is part of."""
    image: str = ""
    """Its release image, with the tag of this version; empty for none."""
    inside: str = ""
    """The path of the program in that image."""

    @property
    def key(self) -> str:
        """Digest of everything that the program is built from."""
        digest = hashlib.sha256()
        parts = [self.name, self.version, self.package, self.ldflags, *target()]
        digest.update("\0".join(parts).encode())
        if self.module is not None:
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
    """May contain {name}."""
    ldflags: str = ""
    """May contain {version} and {minor}."""
    url: str = ""
    """May contain {name}, {version}, {os} and {arch}."""
    member: str | None = None
    image: str = ""
    """May contain {name}, {version} and {number}, the version without v."""
    inside: str = "/{name}"
    published: str = ""
    """The default version, if no module in kind-config/tools pins one: the module is built as published."""


_VERSION = "k8s.io/component-base/version"
_KUBERNETES = _Family(
    module="kubernetes",
    require="k8s.io/kubernetes",
    package="k8s.io/kubernetes/cmd/{name}",
    ldflags=f"-X {_VERSION}.gitVersion={{version}} -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor={{minor}}",
    url="https://dl.k8s.io/release/{version}/bin/{os}/{arch}/{name}",
)
_KUBE_SCHEDULER = replace(_KUBERNETES, image="registry.k8s.io/{name}:{version}", inside="/usr/local/bin/{name}")
_GITHUB = "https://github.com"
_ETCD = f"{_GITHUB}/etcd-io/etcd/releases/download/{{version}}"
_KWOK = _Family(
    module="kwok",
    require="sigs.k8s.io/kwok",
    package="sigs.k8s.io/kwok/cmd/{name}",
    ldflags="-X sigs.k8s.io/kwok/pkg/consts.Version={version}",
    url=f"{_GITHUB}/kubernetes-sigs/kwok/releases/download/{{version}}/{{name}}-{{os}}-{{arch}}",
)


def _volcano(command: str) -> _Family:
    return _Family(
        module="volcano",
        require="volcano.sh/volcano",
        package=f"volcano.sh/volcano/cmd/{command}",
        ldflags="-X volcano.sh/volcano/pkg/version.Version={version}",
        image="docker.io/volcanosh/{name}:{version}",
    )


def _kai(command: str) -> _Family:
    return _Family(
        module="kai",
        require="github.com/NVIDIA/KAI-scheduler",
        package=f"github.com/NVIDIA/KAI-scheduler/cmd/{command}",
        published="v0.12.0",
    )


_YUNIKORN = _Family(
    module="yunikorn",
    require="github.com/apache/yunikorn-k8shim",
    package="github.com/apache/yunikorn-k8shim/pkg/cmd/shim",
    image="docker.io/apache/yunikorn:scheduler-{number}",
    published="v1.8.0",
)
_KUEUE = _Family(
    module="kueue",
    require="sigs.k8s.io/kueue",
    package="sigs.k8s.io/kueue/cmd/kueue",
    ldflags="-X sigs.k8s.io/kueue/pkg/version.GitVersion={version}",
    image="registry.k8s.io/kueue/kueue:{version}",
    inside="/manager",
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
    "kueue": _KUEUE,
    "kai-scheduler": _kai("scheduler"),
    "kai-binder": _kai("binder"),
    "kai-podgrouper": _kai("podgrouper"),
    "vc-scheduler": _volcano("scheduler"),
    "vc-controller-manager": _volcano("controller-manager"),
    **dict.fromkeys(
        (
            "kube-apiserver",
            "kube-controller-manager",
            "kube-proxy",
            "kubeadm",
            "kubectl",
            "kubelet",
        ),
        _KUBERNETES,
    ),
    "kube-scheduler": _KUBE_SCHEDULER,
    "yunikorn-scheduler": _YUNIKORN,
}


_VERSIONED = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
"""Programs of the Kubernetes version that a run selects; the other programs may be one minor version apart."""


def kubernetes_versions() -> dict[str, Path]:
    """Return the pinned minor versions of Kubernetes with the module of each; the first is the default."""
    tools = kind_config() / "tools"
    pinned = required_version(tools / _KUBERNETES.module / "go.mod", _KUBERNETES.require)
    others = sorted(tools.glob(f"{_KUBERNETES.module}-*"))
    return {
        minor_of(pinned): tools / _KUBERNETES.module,
        **{module.name.rpartition("-")[2]: module for module in others},
    }


def versions(name: str) -> dict[str, Path]:
    """Return the pinned versions of a program with the module of each; the first is the default.

    The modules of other versions than the default are beside the default's, as `MODULE-VERSION`.
    """
    family, tools = _FAMILIES[name], kind_config() / "tools"
    modules = [] if family.published else [tools / family.module, *sorted(tools.glob(f"{family.module}-*"))]
    return {required_version(module / "go.mod", family.require): module for module in modules}


def minor_of(version: str) -> str:
    """Return the minor version: `1.36` for `v1.36.3`."""
    return ".".join(version.removeprefix("v").split(".")[:2])


def program(name: str, kubernetes: str | None = None, version: str = "") -> Program:
    """Return the program of that name for this platform.

    Args:
        name: Name of the program.
        kubernetes: Minor version of Kubernetes, for its programs that are pinned in several minor versions.
        version: Version, for instance `v0.19.1`; empty for the default.

    Raises:
        BinaryError: no program has this name, or it is not pinned in this version and has no release image.
    """
    if name not in _FAMILIES:
        raise BinaryError(f"no program is called {name!r}", "kind-config/tools", f"name one of: {', '.join(_FAMILIES)}")
    family = _FAMILIES[name]
    module: Path | None = kind_config() / "tools" / family.module
    if kubernetes is not None and name in _VERSIONED:
        module = kubernetes_versions()[kubernetes]
    version = version or family.published
    if version:
        module = versions(name).get(version)
        if module is None and not (family.image or family.published):
            todo = f"name one of: {', '.join(versions(name))}"
            raise BinaryError(f"{name} {version} is not pinned", "kind-config/tools", todo)
    if module is not None:
        version = required_version(module / "go.mod", family.require)
    system, arch = target()
    words = {"name": name, "version": version, "os": system, "arch": arch}
    words |= {"number": version.removeprefix("v"), "minor": version.split(".")[1]}
    url = family.url.format(**words)
    known = checksums().get(url)
    return Program(
        name,
        version,
        module,
        family.package.format(**words),
        family.ldflags.format(**words),
        Release(url, known, family.member.format(**words) if family.member else None) if known else None,
        family.require,
        family.image.format(**words),
        family.inside.format(**words),
    )


def checksums() -> dict[str, str]:
    """Return the SHA-256 of every file that may be downloaded, by URL."""
    lines = (kind_config() / "tools" / "checksums.txt").read_text("utf-8").splitlines()
    return {url: digest for digest, url in (line.split() for line in lines if line and not line.startswith("#"))}


def programs(names: Iterable[str], kubernetes: str | None = None, version: str = "") -> list[Program]:
    return [program(name, kubernetes, version) for name in names]


def required_version(go_mod: Path, require: str) -> str:
    """Return the version of a module that a go.mod requires, for instance `v1.36.3`."""
    match = re.search(rf"^\s*(?:require\s+)?{re.escape(require)}\s+(v\S+)", go_mod.read_text("utf-8"), re.MULTILINE)
    if not match:
        raise BinaryError(f"go.mod does not require {require}", str(go_mod), "repair kind-config/tools (git status)")
    return match[1]


def target() -> tuple[str, str]:
    """Return operating system and architecture as Go names them, for instance `("linux", "amd64")`."""
    machine = platform.machine().lower()
    return sys.platform, {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
