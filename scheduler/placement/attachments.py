"""Limit how many volumes a node has attached (semantics: kube-scheduler's `nodevolumelimits`).

A volume counts once per node, however many pods mount it there, against the limit that its driver reports for that
node; a driver without a limit is unlimited. A volume that is attached to a node but mounted by none of the node's pods
does not count: attachments follow the pods with a delay, and the scheduler does not watch them.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ..model.cluster import Cluster
from ..model.nodes import Mask, NodeInfo, Nodes, Vector
from ..model.objects import PersistentVolume
from ..model.task import COMPLETED, Task, TaskStatus
from .pod_index import Spend
from .volumes import FIELD, VOLUME, volumes_of

Attachment = tuple[str, str]
"""Name of the CSI driver, and the driver's name of the volume."""

_IN_TREE = (
    ("aws_elastic_block_store", "volumeID", "ebs.csi.aws.com"),
    ("azure_disk", "diskURI", "disk.csi.azure.com"),
    ("cinder", "volumeID", "cinder.csi.openstack.org"),
    ("gce_persistent_disk", "pdName", "pd.csi.storage.gke.io"),
    ("portworx_volume", "volumeID", "pxd.portworx.com"),
    ("vsphere_volume", "volumePath", "csi.vsphere.vmware.com"),
)
"""In-tree disks that Kubernetes migrates to CSI: field of the volume's spec, key of the disk's name there, driver."""


def attachment_of(volume: PersistentVolume) -> Attachment | None:
    """Return what a node must attach for the volume; None if nothing (a shared file system, for example)."""
    spec = volume.spec
    if spec.csi is not None:
        return spec.csi.driver, spec.csi.volume_handle
    for field, key, driver in _IN_TREE:
        if source := getattr(spec, field):
            return driver, str(source.get(key, volume.metadata.name))
    return None


class AttachLimits:
    """Compute which nodes can attach the volumes that a task mounts; for one cycle."""

    def __init__(self, cluster: Cluster, spend: Spend) -> None:
        self._cluster = cluster
        self._spend = spend
        self._nodes = cluster.nodes
        self._limits: dict[str, Vector] | None = None
        self._tallies: dict[bool, _Tally] = {}
        self._wanted: dict[bytes, dict[str, list[Attachment]]] = {}
        self._attachable: dict[tuple[bytes, bool], tuple[int, dict[str, Mask]]] = {}
        """Shape and `future` → the number of changes on nodes, and the nodes that can attach, by driver."""

    def mask(self, task: Task, *, future: bool) -> Mask | None:
        """Return the nodes that can attach all volumes of the task; None if no node limits any of their drivers."""
        found = self._by_driver(task, future=future)
        return np.logical_and.reduce(list(found.values())) if found else None

    def exhausted_driver(self, task: Task, node: NodeInfo) -> str:
        """Return the first driver that cannot attach the task's volumes to the node; empty if all drivers can."""
        return next((d for d, mask in self._by_driver(task, future=True).items() if not mask[node.row]), "")

    def _by_driver(self, task: Task, *, future: bool) -> dict[str, Mask]:
        """Return the nodes that can attach the volumes of the task, by driver."""
        wanted = self._wanted_by(task)
        if not wanted:
            return {}
        key, now = (task.shape, future), len(self._nodes.touched)
        known = self._attachable.get(key)
        if known is None or known[0] != now:
            self._spend(sum(20 + 2 * len(volumes) for volumes in wanted.values()), FIELD)
            found = {d: self._can_attach(d, volumes, future=future) for d, volumes in wanted.items()}
            known = self._attachable[key] = (now, found)
        return known[1]

    def _wanted_by(self, task: Task) -> dict[str, list[Attachment]]:
        """Return the volumes to attach for the task, by driver. Drivers that no node limits are left out."""
        if not task.pod.spec.volumes or not (limits := self._limits_by_driver()):
            return {}
        known = self._wanted.get(task.shape)
        if known is None:
            self._spend(VOLUME * len(task.pod.spec.volumes), FIELD)
            known = self._wanted[task.shape] = {}
            for attachment in sorted(set(_attachments(self._cluster, task))):
                if attachment[0] in limits:
                    known.setdefault(attachment[0], []).append(attachment)
        return known

    def _limits_by_driver(self) -> dict[str, Vector]:
        """Return how many volumes of each driver each node can have attached."""
        if self._limits is None:
            self._limits = {}
            for name, csi_node in self._cluster.csi_nodes.items():
                node = self._nodes.by_name.get(name)
                for driver in csi_node.spec.drivers or () if node is not None else ():
                    if node is not None and driver.allocatable is not None and driver.allocatable.count is not None:
                        unlimited = np.full(len(self._nodes.rows), np.inf)
                        self._limits.setdefault(driver.name, unlimited)[node.row] = driver.allocatable.count
        return self._limits

    def _can_attach(self, driver: str, volumes: list[Attachment], *, future: bool) -> Mask:
        tally = self._tallies.get(future)
        if tally is None:
            tally = self._tallies[future] = _Tally(self._cluster, future=future)
        tally.refresh()
        new = np.full(len(self._nodes.rows), float(len(volumes)))
        for volume in volumes:
            new[list(tally.rows[volume])] -= 1.0
        fits: Mask = (new == 0) | (tally.counts[driver] + new <= self._limits_by_driver()[driver])
        return fits


class _Tally:
    """Volumes that each node has attached for its pods, now or without the releasing pods; updated within a cycle."""

    def __init__(self, cluster: Cluster, *, future: bool) -> None:
        self._cluster, self._future = cluster, future
        self._nodes: Nodes = cluster.nodes
        self._on_row: list[set[Attachment]] = [set() for _ in self._nodes.rows]
        self.rows: defaultdict[Attachment, set[int]] = defaultdict(set)
        self.counts: defaultdict[str, Vector] = defaultdict(lambda: np.zeros(len(self._nodes.rows)))
        self._seen = len(self._nodes.touched)
        for row in range(len(self._nodes.rows)):
            self._count(row)

    def refresh(self) -> None:
        touched = self._nodes.touched
        if self._seen < len(touched):
            for row in set(touched[self._seen :]):
                self._count(row)
            self._seen = len(touched)

    def _count(self, row: int) -> None:
        gone = COMPLETED | (TaskStatus.RELEASING if self._future else 0)
        tasks = self._nodes.rows[row].tasks.values()
        found = {
            attachment
            for task in tasks
            if task.pod.spec.volumes and not task.status & gone
            for attachment in _attachments(self._cluster, task)
        }
        for attachment in self._on_row[row] ^ found:
            is_new = attachment in found
            (self.rows[attachment].add if is_new else self.rows[attachment].discard)(row)
            self.counts[attachment[0]][row] += 1.0 if is_new else -1.0
        self._on_row[row] = found


def _attachments(cluster: Cluster, task: Task) -> list[Attachment]:
    found = (attachment_of(volume) for volume in volumes_of(cluster, task))
    return [attachment for attachment in found if attachment is not None]
