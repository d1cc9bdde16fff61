"""The objects that the plugins of a Job create, and how their flags change them."""

from __future__ import annotations

import pytest

from scheduler.controllers.runtime.objects import NETWORK_POLICIES, SERVICES
from tests.support.controllers.fake_cluster import FakeJobCluster, task


@pytest.mark.parametrize(
    ("flags", "early", "guarded"),
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
def test_svc_does_as_its_flags_say(flags: list[str], early: bool, guarded: bool) -> None:
    fake = FakeJobCluster({"tasks": [task()], "plugins": {"svc": flags}}).work()
    service = fake.get(SERVICES, "j")
    assert service is not None
    assert service["spec"]["publishNotReadyAddresses"] == early
    assert (fake.get(NETWORK_POLICIES, "j") is not None) == guarded


def test_without_svc_nothing_is_made_beside_the_pods() -> None:
    fake = FakeJobCluster({"tasks": [task()], "plugins": {"env": []}}).run()
    assert {kind for kind, _ in fake.objects} == {
        "jobs.batch.volcano.sh",
        "podgroups.scheduling.volcano.sh",
        "pods",
    }
