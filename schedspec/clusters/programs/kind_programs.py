"""Programs that only a Kind cluster needs, as values: what runs in its pods, and what its node image is made of.

They are built from modules of kind-config/ that no release corresponds to.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from ..paths import kind_config
from .pinned import Program, programs, required_version, target

_CONTAINERD = "github.com/containerd/containerd/v2"
_CNI = "github.com/containernetworking/plugins"

CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd", "coredns")
"""Run as images."""
NODE = ("kubelet", "kubeadm", "kubectl", "containerd", "containerd-shim-runc-v2", "ctr")
"""Stand in the node's /usr/bin."""
NETWORK = ("ptp", "host-local", "loopback", "portmap")
"""CNI plugins, in the node's /usr/lib/cni."""


class SourceProgram(Program):
    """A program whose sources stand beside its go.mod, so that they belong to what it is built from."""

    __slots__ = ()

    @property
    def key(self) -> str:
        digest = hashlib.sha256("\0".join([self.name, self.version, self.package, self.ldflags, *target()]).encode())
        for source in sorted([*self.module.glob("go.*"), *self.module.glob("*.go")]):
            digest.update(f"\0{source.name}\0".encode() + source.read_bytes())
        return digest.hexdigest()[:12]


def worker() -> Program:
    """The program of the worker image; see kind-config/worker/main.go for what it does."""
    return SourceProgram("worker", "v1", kind_config() / "worker", ".", "", None)


def node_programs() -> dict[str, Program]:
    """All programs of the node image, by name; `worker` is its sandbox program."""
    recipe = kind_config() / "node-image"
    names = [*CONTROL_PLANE, *NODE]
    own = [
        worker(),
        _own(SourceProgram, "coredns", recipe / "coredns", "github.com/coredns/coredns", "."),
        *(
            _own(Program, name, recipe / "containerd", _CONTAINERD, f"{_CONTAINERD}/cmd/{name}")
            for name in names
            if name.startswith(("containerd", "ctr"))
        ),
        *(_own(Program, name, recipe / "cni", _CNI, f"{_CNI}/plugins/{_cni_folder(name)}/{name}") for name in NETWORK),
    ]
    found = {program.name: program for program in own}
    return found | {program.name: program for program in programs(name for name in names if name not in found)}


def _own(made: type[Program], name: str, module: Path, require: str, package: str) -> Program:
    return made(name, required_version(module / "go.mod", require), module, package, "", None)


def _cni_folder(name: str) -> str:
    return {"ptp": "main", "loopback": "main", "host-local": "ipam", "portmap": "meta"}[name]
