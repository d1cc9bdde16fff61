"""A checkpoint knows which binds the API has refused since the last cycle: the next cycle serves others first."""

from __future__ import annotations

from schedspec.scheduler.core import Core
from schedspec.scheduler.inputs import Assumed, PolicyLoaded, Reverted, apply_input
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.recording.segments import checkpoint_of
from tests.support.core.events import happen, policy_of
from tests.support.core.world import World


def test_a_replayed_checkpoint_serves_a_refused_job_last() -> None:
    world = World(policy_of("plain"))
    jobs = [{"name": "doomed", "tasks": "1 x 4 cpu", "priority": 9}, {"name": "next", "tasks": "1 x 4 cpu"}]
    world.load({"nodes": [{"name": "n1", "has": "4 cpu"}], "queues": [{"name": "default"}], "jobs": jobs})
    happen(world, {"refuse": ["doomed-0", "n1"]})
    restored = Core(Cluster())
    for given in checkpoint_of(world.cluster, PolicyLoaded("", "")):
        if not isinstance(given, PolicyLoaded):
            apply_input(restored, given)
    assert restored.cluster.refused_binds == world.cluster.refused_binds == {"t/doomed-0"}
    assert [bind.task for bind in world.cycle().binds] == ["t/next-0"]


def test_a_refused_eviction_changes_no_order() -> None:
    world = World(policy_of("plain"))
    jobs = [{"name": "victim", "tasks": "1 x 4 cpu running on n1"}]
    world.load({"nodes": [{"name": "n1", "has": "4 cpu"}], "queues": [{"name": "default"}], "jobs": jobs})
    uid = world.objects["Pod", "t/victim-0"]["metadata"]["uid"]
    apply_input(world.core, Assumed("t/victim-0", uid, ""))
    apply_input(world.core, Reverted("t/victim-0", uid))
    assert world.cluster.refused_binds == set()
