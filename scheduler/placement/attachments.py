"""How many volumes a node can have attached (semantics: kube-scheduler's ``nodevolumelimits``).

The one rule: a volume counts once on a node, however many pods there mount it, and against the limit that its driver
names for that node; a driver that names none has none. What is attached to a node and mounted by no pod of it does not
count: attachments are made and undone after pods, and nobody here follows them.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ..model.cluster import Cluster
from ..model.nodes import Mask, NodeInfo, Nodes, Vector
from ..model.objects import PersistentVolume
from ..model.task import COMPLETED, Task, TaskStatus
from .volumes import volumes_of

Attachment = tuple[str, str]
"""Driver, and the volume's name there."""

_BEFORE_CSI = (
    ("aws_elastic_block_store", "volumeID", "ebs.csi.aws.com"),
    ("azure_disk", "diskURI", "disk.csi.azure.com"),
    ("cinder", "volumeID", "cinder.csi.openstack.org"),
    ("gce_persistent_disk", "pdName", "pd.csi.storage.gke.io"),
    ("portworx_volume", "volumeID", "pxd.portworx.com"),
    ("vsphere_volume", "volumePath", "csi.vsphere.vmware.com"),
)
"""Disks that Kubernetes hands to a CSI driver: field of the volume, its name in there, the driver."""


def attachment_of(volume: PersistentVolume) -> Attachment | None:
    """What a node has to attach for the volume; None for one that is not attached (a shared file system, say)."""
    spec = volume.spec
    if spec.csi is not None:
        return spec.csi.driver, spec.csi.volume_handle
    for field, name, driver in _BEFORE_CSI:
        if source := getattr(spec, field):
            return driver, str(source.get(name, volume.metadata.name))
    return None


class AttachLimits:
    """Which nodes can attach what a task mounts; for one cycle."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes = cluster.nodes
        self._limits: dict[str, Vector] | None = None
        self._tallies: dict[bool, _Tally] = {}

    def mask(self, task: Task, *, future: bool) -> Mask | None:
        """Nodes that can attach all that the task mounts; None if nothing of it is limited anywhere."""
        wanted = self._wanted(task)
        if not wanted:
            return None
        mask = np.ones(len(self._nodes.rows), dtype=np.bool_)
        for driver, volumes in wanted.items():
            mask &= self._can_attach(driver, volumes, future=future)
        return mask

    def full(self, task: Task, node: NodeInfo) -> str:
        """The first driver that has no attachment left for the task on the node; empty if none."""
        wanted = self._wanted(task).items()
        return next((d for d, volumes in wanted if not self._can_attach(d, volumes, future=True)[node.row]), "")

    def _wanted(self, task: Task) -> dict[str, list[Attachment]]:
        """What the task has to have attached, by driver; only of drivers that have a limit on some node."""
        if not task.pod.spec.volumes or not (limits := self._limited()):
            return {}
        wanted: dict[str, list[Attachment]] = {}
        for attachment in sorted(set(_attachments(self._cluster, task))):
            if attachment[0] in limits:
                wanted.setdefault(attachment[0], []).append(attachment)
        return wanted

    def _limited(self) -> dict[str, Vector]:
        """By driver, how many volumes each node can have attached."""
        if self._limits is None:
            self._limits = {}
            for name, csi_node in self._cluster.csi_nodes.items():
                node = self._nodes.by_name.get(name)
                for driver in csi_node.spec.drivers or () if node is not None else ():
                    if node is not None and driver.allocatable is not None and driver.allocatable.count is not None:
                        none = np.full(len(self._nodes.rows), np.inf)
                        self._limits.setdefault(driver.name, none)[node.row] = driver.allocatable.count
        return self._limits

    def _can_attach(self, driver: str, volumes: list[Attachment], *, future: bool) -> Mask:
        tally = self._tallies.get(future)
        if tally is None:
            tally = self._tallies[future] = _Tally(self._cluster, future=future)
        tally.refresh()
        new = np.full(len(self._nodes.rows), float(len(volumes)))
        for volume in volumes:
            new[list(tally.where[volume])] -= 1.0
        fits: Mask = (new == 0) | (tally.counts[driver] + new <= self._limited()[driver])
        return fits


class _Tally:
    """What is attached to each node by its pods, now, or once the leaving have left; kept up to date in a cycle."""

    def __init__(self, cluster: Cluster, *, future: bool) -> None:
        self._cluster, self._future = cluster, future
        self._nodes: Nodes = cluster.nodes
        self._on_row: list[set[Attachment]] = [set() for _ in self._nodes.rows]
        self.where: defaultdict[Attachment, set[int]] = defaultdict(set)
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
            (self.where[attachment].add if is_new else self.where[attachment].discard)(row)
            self.counts[attachment[0]][row] += 1.0 if is_new else -1.0
        self._on_row[row] = found


def _attachments(cluster: Cluster, task: Task) -> list[Attachment]:
    found = (attachment_of(volume) for volume in volumes_of(cluster, task))
    return [attachment for attachment in found if attachment is not None]
