"""An evicted Workload of Kueue could have stayed only if its own quota was free, in its flavors and its cohorts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from schedspec.api.kinds import Kind
from tests.schedspec.monitors.written_history import WrittenHistory, findings

NAME = "needless-workload-eviction"
GPU = "nvidia.com/gpu"


def quota(nominal: int, *, flavor: str = "a", **limits: str) -> dict[str, Any]:
    resource = {"name": GPU, "nominalQuota": str(nominal), **limits}
    return {"resourceGroups": [{"flavors": [{"name": flavor, "resources": [resource]}]}]}


def admitted(queue: str, gpus: int) -> dict[str, Any]:
    part = {"name": "main", "count": 1, "flavors": {GPU: "a"}, "resourceUsage": {GPU: str(gpus)}}
    return {"admission": {"clusterQueue": queue, "podSetAssignments": [part]}}


class Production(WrittenHistory):
    """16 gpus; a Workload of guest with 4 is evicted for one of owner with 4, which then runs."""

    def __init__(
        self,
        guest: dict[str, Any],
        owner: dict[str, Any],
        before: Callable[[Production], None] = lambda _: None,
        *,
        apart: dict[str, Any] | None = None,
        **cohorts: dict[str, Any],
    ) -> None:
        super().__init__()
        for name, spec in cohorts.items():
            self.show(Kind.COHORT, name, spec=spec)
        if apart is not None:
            self.show(Kind.CLUSTERQUEUE, "apart", spec=apart)
        self.show(Kind.NODE, "n1", status={"allocatable": {"pods": "110", GPU: "16"}})
        for name, spec in (("guest", guest), ("owner", owner)):
            self.show(Kind.CLUSTERQUEUE, name, spec=spec)
        self.workload("victim", "guest", admitted("guest", 4))
        self.workload("claim", "owner", {})
        self.bind("victim-0", "victim", "n1", "0", requests={GPU: "4"})
        before(self)
        why = "Preempted to accommodate a workload (UID: claim-uid, JobUID: j) due to reclamation within the cohort"
        self.evict("victim-0", why)
        self.workload("victim", "guest", {})

    def workload(self, name: str, queue: str, status: dict[str, Any]) -> None:
        spec = {"queueName": queue, "podSets": [{"count": 1}]}
        self.show(Kind.WORKLOAD, name, metadata={"namespace": "ns"}, spec=spec, status=status)

    def is_needless(self) -> bool:
        """Start the preemptor, and return whether the monitor finds something."""
        self.workload("claim", "owner", admitted("owner", 4))
        self.bind("claim-0", "claim", "n1", "0", requests={GPU: "4"})
        return NAME in findings(self, "{}")


TOGETHER = {"cohortName": "all"}


@pytest.mark.parametrize(
    ("guest", "owner", "is_needless"),
    [
        (quota(4), quota(4), True),
        (quota(4) | TOGETHER, quota(4) | TOGETHER, True),
        (quota(0) | TOGETHER, quota(4) | TOGETHER, False),
        (quota(0) | TOGETHER, quota(8) | TOGETHER, True),
        (quota(0, borrowingLimit="3") | TOGETHER, quota(8) | TOGETHER, False),
        (quota(0) | TOGETHER, quota(8, lendingLimit="3") | TOGETHER, False),
        (quota(0), quota(8), False),
        (quota(4, flavor="b") | TOGETHER, quota(4) | TOGETHER, False),
    ],
    ids=["own", "cohort", "all-used", "borrowed", "borrows-less", "lends-less", "alone", "other-flavor"],
)
def test_the_quota_of_the_victim_counts_and_not_only_the_nodes(
    guest: dict[str, Any], owner: dict[str, Any], is_needless: bool
) -> None:
    assert Production(guest, owner).is_needless() == is_needless


@pytest.mark.parametrize(
    ("above", "left", "is_needless"),
    [
        (quota(4), {"parentName": "top"}, True),
        (quota(3), {"parentName": "top"}, False),
        (quota(4), {}, False),
        (quota(4), {"parentName": "top"} | quota(0, borrowingLimit="9"), False),
    ],
    ids=["borrows", "too-little", "apart", "limits-of-cohorts-are-not-judged"],
)
def test_a_cohort_borrows_from_its_parent(above: dict[str, Any], left: dict[str, Any], is_needless: bool) -> None:
    guest, owner = quota(0) | {"cohortName": "left"}, quota(4) | {"cohortName": "top"}
    assert Production(guest, owner, top=above, left=left).is_needless() == is_needless


def test_nothing_is_found_if_a_quota_changes_meanwhile() -> None:
    history = Production(quota(0) | TOGETHER, quota(4) | TOGETHER)
    history.show(Kind.CLUSTERQUEUE, "guest", spec=quota(4) | TOGETHER)
    assert not history.is_needless()


def test_the_status_of_a_queue_is_no_change_of_its_quota() -> None:
    history = Production(quota(4), quota(4))
    history.show(Kind.CLUSTERQUEUE, "guest", spec=quota(4), status={"admittedWorkloads": 0})
    assert history.is_needless()


@pytest.mark.parametrize("what", ["ends", "is-deleted", "is-evicted"])
@pytest.mark.parametrize(("queue", "is_needless"), [("guest", False), ("apart", True)])
def test_quota_that_becomes_free_in_the_same_cohort_was_not_free_before(
    queue: str, is_needless: bool, what: str
) -> None:
    """Kueue decides before the victim's pods are marked: what ended in between was not free for it."""

    def before(history: WrittenHistory) -> None:
        history.show(
            Kind.WORKLOAD, "other", metadata={"namespace": "ns"}, spec={"queueName": queue}, status=admitted(queue, 4)
        )
        history.bind("other-0", "other", "n1", "0", requests={GPU: "4"})
        if what == "is-evicted":
            history.evict("other-0", "Preempted to accommodate a workload (UID: third-uid, JobUID: j)")
        elif what == "ends":
            history.show(Kind.POD, "other-0", "gone", **history.pods["other-0"])
        else:
            history.show(Kind.WORKLOAD, "other", "gone", metadata={"namespace": "ns"}, spec={"queueName": queue})

    history = Production(quota(4) | TOGETHER, quota(8) | TOGETHER, before, apart=quota(4))
    assert history.is_needless() == is_needless


def test_the_quota_of_a_workload_whose_pods_did_not_run_becomes_free_as_well() -> None:
    def before(history: Production) -> None:
        history.workload("other", "guest", admitted("guest", 4))
        history.show(Kind.WORKLOAD, "other", "gone", metadata={"namespace": "ns"}, spec={"queueName": "guest"})

    assert not Production(quota(4) | TOGETHER, quota(8) | TOGETHER, before).is_needless()


def test_a_preemptor_that_never_runs_holds_up_no_judgement() -> None:
    def before(history: WrittenHistory) -> None:
        for name, status in (("other", admitted("apart", 4)), ("stuck", {})):
            history.show(Kind.WORKLOAD, name, metadata={"namespace": "ns"}, spec={"queueName": "apart"}, status=status)
        history.bind("other-0", "other", "n1", "0", requests={GPU: "4"})
        history.evict("other-0", "Preempted to accommodate a workload (UID: stuck-uid, JobUID: j)")

    assert Production(quota(4) | TOGETHER, quota(8) | TOGETHER, before, apart=quota(4)).is_needless()
