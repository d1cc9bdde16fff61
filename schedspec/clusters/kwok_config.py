"""Make the texts of the configuration files of kwokctl and KWOK, from programs, ports and stages.

KWOK runs without node leases. With them, KWOK plays a node and its pods only while its cache shows that KWOK holds the
node's lease. A new node with the name of a deleted node inherits the old lease, which the garbage collector deletes a
moment later. The node's pods then stay Pending until KWOK creates a new lease, after a quarter of the lease's duration;
longer, if KWOK lists the pods before its cache has that lease (v0.8.0: node_lease_controller.go, pod_controller.go).
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from .programs.pinned import EMBEDDED, programs


class Ports(NamedTuple):
    etcd_peer: int
    etcd: int
    kube_apiserver: int
    kube_controller_manager: int
    kwok: int


class Gates(NamedTuple):
    """Feature gates and API versions that are enabled in addition to a Kubernetes version's defaults."""

    features: tuple[str, ...] = ()
    """Feature gates of the API server and of the controller manager."""
    apis: tuple[str, ...] = ()
    """Versions of API groups to serve."""

    @property
    def feature_gates(self) -> str:
        """Return the value of `--feature-gates`; empty for none."""
        return ",".join(f"{name}=true" for name in self.features)


NO_GATES = Gates()
_GANG_FEATURES = ("GenericWorkload", "TopologyAwareWorkloadScheduling")
GANG_GATES = {
    "1.36": Gates((*_GANG_FEATURES, "GangScheduling", "WorkloadAwarePreemption"), ("scheduling.k8s.io/v1alpha2",)),
    "1.37": Gates(_GANG_FEATURES, ("scheduling.k8s.io/v1beta1",)),
}
"""Gates for the PodGroups of scheduling.k8s.io with gang scheduling, topology and preemption, by minor version."""

_KWOK_API = "config.kwok.x-k8s.io/v1alpha1"
_COMPONENTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kwok-controller")
_EXTRA_ARGS = {
    "kwok-controller": {"node-lease-duration-seconds": "0"},
    # The cluster lives as long as a run: no data has to survive a power cut.
    "etcd": {"unsafe-no-fsync": "true"},
    # With the default of 20 requests a second, a Deployment of 100 pods would take 5 s. A silent node stays Ready for a
    # year, so that thousands of nodes need no heartbeats; so does a node whose name a former node had (recover.yaml).
    "kube-controller-manager": {
        "kube-api-qps": "1000",
        "kube-api-burst": "2000",
        "leader-elect": "false",
        "node-monitor-grace-period": "8760h",
        "node-startup-grace-period": "8760h",
    },
}
GO = {"GOGC": "400", "GOMEMLIMIT": "1536MiB"}
"""Environment of each program: Go collects garbage later than by default, up to the memory limit.

On a busy cluster that saves a tenth to a sixth of the CPU.
"""
KWOK_OPTIONS = {
    "cidr": "10.64.0.0/12",
    "podPlayStageParallelism": 8,
    "podsOnNodeSyncParallelism": 4,
    "nodePlayStageParallelism": 4,
}


def kwokctl_config(
    binaries: Mapping[str, Path],
    kube_version: str,
    ports: Ports,
    stages: Path,
    gates: Gates = NO_GATES,
    *,
    audit_policy: Path | None = None,
    with_controllers: bool = True,
) -> str:
    """Return the YAML documents for `kwokctl create cluster --config`.

    Args:
        binaries: Path of each program.
        kube_version: Version of Kubernetes.
        ports: Port of each program.
        stages: Folder of *.yaml files.
        gates: Feature gates and API versions beyond the defaults.
        audit_policy: File; with it the API server writes an audit log.
        with_controllers: Whether kube-controller-manager runs.
    """
    without = ["kube-scheduler", *([] if with_controllers else ["kube-controller-manager"])]
    options = {
        "runtime": "binary",
        "kubeVersion": kube_version,
        "bindAddress": "127.0.0.1",
        "disable": without,
        "etcdBinary": str(binaries["etcd"]),
        "kubeApiserverBinary": str(binaries["kube-apiserver"]),
        "kubeControllerManagerBinary": str(binaries["kube-controller-manager"]),
        "kwokControllerBinary": str(binaries["kwok"]),
        "kubectlBinary": shutil.which(
            "true"
        ),  # kwokctl only waits with it for the API server, as `EmbeddedCluster` does
        "etcdPeerPort": ports.etcd_peer,
        "etcdPort": ports.etcd,
        "kubeApiserverPort": ports.kube_apiserver,
        "kubeControllerManagerPort": ports.kube_controller_manager,
        "kwokControllerPort": ports.kwok,
    }
    if audit_policy is not None:
        options["kubeAuditPolicy"] = str(audit_policy)
    patches = [
        {
            "name": component,
            "extraArgs": [{"key": key, "value": value} for key, value in _arguments(component, gates).items()],
            "extraEnvs": [{"name": name, "value": value} for name, value in GO.items()],
        }
        for component in _COMPONENTS
        if component not in without
    ]
    kwokctl = {"apiVersion": _KWOK_API, "kind": "KwokctlConfiguration", "options": options}
    return yaml.safe_dump(kwokctl | {"componentsPatches": patches}) + "---\n" + kwok_config(stages)


def _arguments(component: str, gates: Gates) -> dict[str, str]:
    found = dict(_EXTRA_ARGS.get(component, {}))
    if gates.features and component in ("kube-apiserver", "kube-controller-manager"):
        # Without the gates the controller manager would never remove a PodGroup's finalizer.
        found["feature-gates"] = gates.feature_gates
    if gates.apis and component == "kube-apiserver":
        found["runtime-config"] = ",".join(f"{api}=true" for api in gates.apis)
    return found


def kwok_config(*stages: Path) -> str:
    """Return the YAML documents for `kwok --config`: the options and the stages of these folders."""
    kwok: dict[str, Any] = {"apiVersion": _KWOK_API, "kind": "KwokConfiguration", "options": KWOK_OPTIONS}
    files = [path.read_text("utf-8").strip() + "\n" for folder in stages for path in sorted(folder.glob("*.yaml"))]
    return "---\n".join([yaml.safe_dump(kwok), *files])


def fingerprint(stages: Path, kubernetes: str | None = None, gates: Gates = NO_GATES) -> str:
    """Return a digest of everything that an embedded cluster is made of.

    Clusters with equal digests are interchangeable.
    """
    digest = hashlib.sha256(repr((_EXTRA_ARGS, GO, gates, kwok_config(stages))).encode())
    for program in programs(EMBEDDED, kubernetes):
        digest.update(program.key.encode())
    return digest.hexdigest()[:8]
