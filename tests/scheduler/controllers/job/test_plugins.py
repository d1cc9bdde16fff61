"""The objects that the plugins of a Job create, and how their flags change them."""

from __future__ import annotations

import pytest

from schedspec.scheduler.controllers.runtime.objects import NETWORK_POLICIES, SERVICES
from tests.support.controllers.fake_cluster import FakeJobCluster, task


@pytest.mark.parametrize(
    ("flags", "publishes_not_ready", "has_policy"),
    [
        ([], False, True),
        (["--publish-not-ready-addresses"], True, True),
        (["-publish-not-ready-addresses=true"], True, True),
        (["--publish-not-ready-addresses=false"], False, True),
        (["--disable-network-policy"], False, False),
        (["--disable-network-policy=true", "--publish-not-ready-addresses"], True, False),
        (["--disable-network-policy=false"], False, True),
    ],
)
def test_svc_obeys_its_flags(flags: list[str], publishes_not_ready: bool, has_policy: bool) -> None:
    fake = FakeJobCluster({"tasks": [task()], "plugins": {"svc": flags}}).work()
    service = fake.get(SERVICES, "j")
    assert service is not None
    assert service["spec"]["publishNotReadyAddresses"] == publishes_not_ready
    assert (fake.get(NETWORK_POLICIES, "j") is not None) == has_policy


def test_without_svc_only_pods_and_the_podgroup_are_created() -> None:
    fake = FakeJobCluster({"tasks": [task()], "plugins": {"env": []}}).run()
    assert {kind for kind, _ in fake.objects} == {
        "jobs.batch.volcano.sh",
        "podgroups.scheduling.volcano.sh",
        "pods",
    }
