"""Read the moments of incidents from the recording of a cluster: before them, a state leads to the incident."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...scheduler.inputs import ObjectSeen
from ...virtual.state.over_time import inputs_over_time
from ..recorder.judge import Finding, Judge
from ..recorder.versions import VersionReader

JUST_BEFORE = 0.002
"""Seconds before an act at which the cluster is as its scheduler saw it."""


def eviction_times(recording: Path, pod: str) -> Iterator[float]:
    """Yield the times at which a running pod `namespace/name` was marked as a victim or deleted. Raises StateError."""
    known = ""
    for at, given in inputs_over_time(recording):
        if isinstance(given, ObjectSeen) and given.kind == "Pod" and given.object.metadata.key == pod:
            meta, status = given.object.metadata, given.object.status
            marks = {condition.type for condition in status.conditions or () if condition.status == "True"}
            is_victim = meta.deletion_timestamp is not None or "DisruptionTarget" in marks
            if is_victim and meta.uid != known and status.phase not in ("Succeeded", "Failed"):
                known = meta.uid
                yield at


def found_times(recording: Path, monitor: str, policy: str) -> list[float]:
    """Return the times at which a monitor finds something in a recording. Raises StateError."""
    found: list[Finding] = []
    judge = Judge(found.append)
    VersionReader(judge, policy=policy or None).read_all(inputs_over_time(recording))
    judge.end(float("inf"))
    return [finding.at for finding in found if finding.monitor == monitor]
