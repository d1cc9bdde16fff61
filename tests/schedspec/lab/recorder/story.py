"""The night of docs/recorder.md: a cluster with two queues, from which a job takes room that is taken back, twice."""

from __future__ import annotations

from pathlib import Path

from tests.schedspec.lab.recorder.recorded_cluster import RecordedCluster


def tell(folder: Path) -> None:
    """Record the night into a folder."""
    cluster = RecordedCluster(folder)
    try:
        for name in ("n1", "n2"):
            cluster.node(name, 8)
        for name in ("online", "batch"):
            cluster.queue(name, deserved={"cpu": "8"}, reclaimable=True)
        cluster.advance(1.0)
        cluster.record()
        cluster.group("train", "batch")
        cluster.runs("train-0", "train", "n1", 8)
        cluster.runs("train-1", "train", "n2", 8)
        cluster.group("serve", "online")
        cluster.pod("serve-0", "serve", 8)
        for victim, preemptor in (("train-0", "serve-0"), ("serve-0", "train-2"), ("train-2", "serve-1")):
            cluster.advance(60.0)
            cluster.evict(victim, "reclaimed by queue")
            cluster.advance(3.0)
            cluster.bind(preemptor, "n1")
            cluster.advance(1.0)
            following = {"train-0": "train-2", "serve-0": "serve-1"}.get(victim)
            if following is not None:
                cluster.pod(following, following.partition("-")[0], 8)
        cluster.advance(120.0)
        cluster.kill()
        cluster.advance(20.0)
        cluster.record()
        cluster.group("vision", "online")
        cluster.pod("vision-0", "vision", 12)
        cluster.advance(300.0)
    finally:
        cluster.close()
