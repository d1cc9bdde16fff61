"""Programs of the node image. Go builds them from pinned modules in hack/images/node-image and kind-config/tools."""

from __future__ import annotations

from pathlib import Path

from schedspec.clusters.images.worker_image import SourceProgram, worker
from schedspec.clusters.programs.pinned import Program, programs, required_version

RECIPE = Path(__file__).parent / "node-image"

CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd", "coredns")
"""Programs that run as images."""
NODE = ("kubelet", "kubeadm", "kubectl", "containerd", "containerd-shim-runc-v2", "ctr")
"""Programs in the node's /usr/bin."""
NETWORK = ("ptp", "host-local", "loopback", "portmap")
"""CNI plugins in the node's /usr/lib/cni."""

_CONTAINERD = "github.com/containerd/containerd/v2"
_CNI = "github.com/containernetworking/plugins"
_CNI_FOLDERS = {"ptp": "main", "loopback": "main", "host-local": "ipam", "portmap": "meta"}


def node_programs() -> dict[str, Program]:
    """Return all programs of the node image by name, including `worker` (kind-config/worker)."""
    names = [*CONTROL_PLANE, *NODE]
    own = [
        worker(),
        _own(SourceProgram, "coredns", RECIPE / "coredns", "github.com/coredns/coredns", "."),
        *(
            _own(Program, name, RECIPE / "containerd", _CONTAINERD, f"{_CONTAINERD}/cmd/{name}")
            for name in names
            if name.startswith(("containerd", "ctr"))
        ),
        *(_own(Program, name, RECIPE / "cni", _CNI, f"{_CNI}/plugins/{_CNI_FOLDERS[name]}/{name}") for name in NETWORK),
    ]
    found = {program.name: program for program in own}
    return found | {program.name: program for program in programs(name for name in names if name not in found)}


def _own(made: type[Program], name: str, module: Path, require: str, package: str) -> Program:
    return made(name, required_version(module / "go.mod", require), module, package, "", None)
