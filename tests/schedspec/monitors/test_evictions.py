"""Monitors of evictions: a needless, repeated or disproportionate one is found, a necessary one is not."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from schedspec.api.kinds import Kind
from tests.schedspec.monitors.written_history import POLICY, WrittenHistory, a_cluster, findings


def test_an_unneeded_victim_is_found() -> None:
    history = a_cluster()
    for index in range(4):
        history.bind(f"batch-{index}", "batch", "n1", "1")
    for index in (1, 2, 3):
        history.evict(f"batch-{index}")
    history.bind("mine-0", "mine", "n1", "2")
    assert set(findings(history)) == {"needless-eviction"}


def test_an_unneeded_victim_is_found_whatever_details_its_message_has() -> None:
    history = a_cluster()
    for index in range(4):
        history.bind(f"batch-{index}", "batch", "n1", "1")
    for index, details in enumerate((" (victim's queue: guest)", "; tier 2 decided", "; others: 1 is not needed"), 1):
        history.evict(f"batch-{index}", f"reclaimed for ns/mine of queue owner{details}")
    history.bind("mine-0", "mine", "n1", "2")
    assert set(findings(history)) == {"needless-eviction"}


@pytest.mark.parametrize("why", ["reclaimed for ns/mine of queue owner (victim's queue: guest)", "reclaimed"])
@pytest.mark.parametrize(("members", "found"), [(2, []), (1, ["needless-eviction", "needless-eviction"])])
def test_victims_were_needed_if_the_last_pod_is_bound_after_other_pods_ended(
    members: int, found: list[str], why: str
) -> None:
    history = a_cluster()
    for index in range(4):
        history.bind(f"batch-{index}", "batch", "n1", "1")
    for index in range(members):
        history.wait(f"mine-{index}", "mine", "1")
    for index in (2, 3):
        history.evict(f"batch-{index}", why)
    history.bind("mine-0", "mine", "n1", "1")
    for index in (0, 1):  # the whole job starts anew
        history.show(Kind.POD, f"batch-{index}", "gone", **history.pods[f"batch-{index}"])
    for index in range(1, members):
        history.bind(f"mine-{index}", "mine", "n1", "1")
    assert findings(history) == found


@pytest.mark.parametrize(("most", "found"), [("4", set()), ("5", {"needless-eviction"})])
def test_a_victim_was_needed_if_its_queue_was_at_its_capability_at_the_time(most: str, found: set[str]) -> None:
    """Found by exploration (seed 704876): the victim returns once another pod of its queue is evicted."""
    history = WrittenHistory()
    history.node("n1", cpu="6")
    history.queue("guest", capability={"cpu": most})
    for group in ("large", "small", "urgent"):
        history.group(group, "guest")
    history.bind("large-0", "large", "n1", "3")
    history.bind("small-0", "small", "n1", "1", uid="first")
    history.wait("urgent-0", "urgent", "1")
    history.evict("small-0", FOR_URGENT)
    history.bind("urgent-0", "urgent", "n1", "1")
    history.evict("large-0", FOR_URGENT.replace("urgent", "another"), is_gone=False)
    history.bind("small-0", "small", "n1", "1", uid="second")
    assert set(findings(history, PREEMPT)) == found


QUEUE_PLUGINS = (
    "capacity",
    "proportion",
    "capacity-card",
    "capacity-card\n    arguments: {cardUnlimitedCpuMemory: true}",
)


@pytest.mark.parametrize("plugin", QUEUE_PLUGINS)
@pytest.mark.parametrize(("kept", "found"), [("1", set()), ("0", {"needless-eviction"})])
def test_a_victim_was_needed_if_the_idle_capacity_is_guaranteed_to_another_queue(
    kept: str, found: set[str], plugin: str
) -> None:
    """Found by exploration (seeds 2000417 and, under capacity-card, 68214)."""
    history = WrittenHistory()
    history.node("n1", cpu="2")
    history.queue("guest")
    history.queue("owner", guarantee={"resource": {"cpu": kept}})
    history.group("batch", "guest")
    history.group("urgent", "guest")
    history.bind("batch-0", "batch", "n1", "1")
    history.wait("urgent-0", "urgent", "1")
    history.evict("batch-0", FOR_URGENT)
    history.bind("urgent-0", "urgent", "n1", "1")
    assert set(findings(history, PREEMPT.replace("capacity", plugin))) == found


@pytest.mark.parametrize(("most", "found"), [("2", set()), ("3", {"needless-eviction"})])
def test_a_victim_at_a_capability_was_needed_for_a_pod_bound_to_another_node(most: str, found: set[str]) -> None:
    """Found by exploration (seed 3002972)."""
    history = WrittenHistory()
    history.node("n1", cpu="1")
    history.node("n2", cpu="2")
    history.queue("guest", capability={"cpu": most})
    history.group("urgent", "guest")
    for index in (1, 2):
        history.group(f"batch-{index}", "guest")
        history.bind(f"batch-{index}", f"batch-{index}", f"n{index}", "1")
        history.wait(f"urgent-{index}", "urgent", "1")
    history.evict("batch-2", FOR_URGENT)
    history.evict("batch-1", FOR_URGENT)
    history.bind("urgent-2", "urgent", "n2", "1")
    history.bind("urgent-1", "urgent", "n1", "1")
    assert set(findings(history, PREEMPT)) == found


@pytest.mark.parametrize(
    ("most", "order", "found"),
    [
        ("4", ("urgent", "mine"), set()),
        ("5", ("urgent", "mine"), {"needless-eviction"}),
        ("4", ("mine", "urgent"), {"needless-eviction"}),
    ],
)
@pytest.mark.parametrize("later", [False, True], ids=["in one moment", "one after the other"])
def test_a_victim_was_needed_for_quota_whatever_is_evicted_later_for_another_job(
    most: str, order: tuple[str, str], found: set[str], *, later: bool
) -> None:
    """Found by exploration (seed 43334): preempt frees quota in a full queue, then reclaim takes the rest of it."""
    history = WrittenHistory()
    history.node("n1", cpu="3")
    history.node("n2", cpu="2")
    history.queue("guest", capability={"cpu": most})
    history.queue("owner", deserved={"cpu": "2"})
    for group, queue in (("batch", "guest"), ("other", "guest"), ("urgent", "guest"), ("mine", "owner")):
        history.group(group, queue)
    history.bind("batch-0", "batch", "n1", "2")
    history.bind("other-0", "other", "n2", "2")
    history.wait("urgent-0", "urgent", "1")
    history.wait("mine-0", "mine", "2")
    evictions = {"urgent": ("batch-0", FOR_URGENT), "mine": ("other-0", "reclaimed for ns/mine of queue owner")}
    with nullcontext() if later else history.at_once():
        for job in order:
            history.evict(*evictions[job])
    history.bind("mine-0", "mine", "n2", "2")
    history.bind("urgent-0", "urgent", "n1", "1")
    assert set(findings(history, PREEMPT)) == found


@pytest.mark.parametrize(("kept", "found"), [("1", set()), ("0", {"needless-eviction"})])
def test_a_victim_was_needed_for_a_guarantee_whatever_another_job_evicts_later(kept: str, found: set[str]) -> None:
    """Found by exploration (seed 43334): the cpu that is idle is guaranteed, until another eviction frees more."""
    history = WrittenHistory()
    history.node("n1", cpu="3")
    history.node("n2", cpu="4")
    history.queue("third", guarantee={"resource": {"cpu": kept}})
    for group, queue in (("batch", "guest"), ("other", "guest"), ("urgent", "guest"), ("rest", "own"), ("mine", "own")):
        history.queue(queue)
        history.group(group, queue)
    history.bind("batch-0", "batch", "n1", "2")
    history.bind("other-0", "other", "n2", "3")
    history.bind("rest-0", "rest", "n2", "1")
    history.wait("urgent-0", "urgent", "1")
    history.wait("mine-0", "mine", "2")
    with history.at_once():
        history.evict("batch-0", FOR_URGENT)
        history.evict("other-0", "reclaimed for ns/mine of queue own")
    history.bind("mine-0", "mine", "n2", "2")
    history.bind("urgent-0", "urgent", "n1", "1")
    assert set(findings(history, PREEMPT)) == found


@pytest.mark.parametrize(("changes", "found"), [(True, set()), (False, {"needless-eviction"})])
def test_a_victim_was_needed_if_capacity_for_it_became_free_after_a_change(changes: bool, found: set[str]) -> None:
    """Found by exploration (seed 97970): the preemptor's second pod evicts more, once its queue may hold that pod."""
    history = a_cluster()
    history.group("large", "guest")
    for index in range(2):
        history.wait(f"mine-{index}", "mine", "1")
    history.bind("large-0", "large", "n1", "3")
    history.bind("batch-0", "batch", "n1", "1")
    history.evict("batch-0")
    history.bind("mine-0", "mine", "n1", "1")
    if changes:
        history.queue("owner", capability={"cpu": "2"})
    history.evict("large-0")
    history.bind("mine-1", "mine", "n1", "1")
    assert set(findings(history)) == found


def test_a_gang_that_must_be_evicted_as_a_whole_is_one_victim() -> None:
    history = WrittenHistory()
    history.node("n1", cpu="2")
    history.node("n2", cpu="4")
    history.queue("guest")
    history.queue("owner")
    history.group("batch", "guest", 2)
    history.group("mine", "owner")
    history.bind("batch-0", "batch", "n1", "2")
    history.bind("batch-1", "batch", "n2", "2")
    history.evict("batch-0")
    history.evict("batch-1")
    history.bind("mine-0", "mine", "n1", "2")
    assert findings(history) == []


@pytest.mark.parametrize(("cpu", "found"), [("4", set()), ("6", {"needless-eviction"})])
def test_a_whole_gang_was_needed_unless_all_its_members_could_have_stayed(cpu: str, found: set[str]) -> None:
    history = WrittenHistory()
    history.node("n1", cpu=cpu)
    history.queue("guest")
    history.queue("owner")
    history.group("batch", "guest", 4)
    history.group("mine", "owner")
    for index in range(4):
        history.bind(f"batch-{index}", "batch", "n1", "1")
    for index in range(4):
        history.evict(f"batch-{index}")
    history.bind("mine-0", "mine", "n1", "2")
    assert set(findings(history)) == found


def test_a_gang_is_one_victim_although_another_ends_while_it_is_written() -> None:
    """Seen on Kind: one pod was preempted, and was gone before the reclaim of the other pods was written."""
    history = WrittenHistory()
    history.node("n1", cpu="4")
    history.queue("guest")
    history.queue("owner")
    history.group("batch", "guest", 4)
    history.group("urgent", "guest")
    history.group("claim", "owner")
    for index in range(4):
        history.bind(f"batch-{index}", "batch", "n1", "1")
    history.wait("urgent-0", "urgent", "1")
    history.wait("claim-0", "claim", "1")
    history.evict("batch-3", "preempted for ns/urgent", is_gone=False)
    history.evict("batch-0", "reclaimed for ns/claim", is_gone=False)
    history.show(Kind.POD, "batch-3", "gone", **history.pods["batch-3"])
    history.evict("batch-1", "reclaimed for ns/claim", is_gone=False)
    history.evict("batch-2", "reclaimed for ns/claim", is_gone=False)
    history.bind("claim-0", "claim", "n1", "1")
    for index in range(3):
        history.show(Kind.POD, f"batch-{index}", "gone", **history.pods[f"batch-{index}"])
    history.bind("urgent-0", "urgent", "n1", "1")
    assert findings(history, POLICY.replace('"allocate, reclaim"', '"allocate, preempt, reclaim"')) == []


def test_a_pod_that_is_evicted_twice_at_once_counts_once() -> None:
    """The search of the whole history counted the pod of each eviction, so that no node could hold them."""
    history = a_cluster()
    for uid in ("first", "second"):
        history.bind("batch-0", "batch", "n1", "2", uid=uid)
        history.evict("batch-0", "reclaimed for ns/mine of queue owner")
    history.bind("mine-0", "mine", "n1", "2")
    assert "needless-eviction" in findings(history)


def test_a_victim_was_needed_if_another_job_of_the_decision_gets_its_capacity() -> None:
    """Found by exploration (seed 78954): the preemptor started on idle capacity."""
    history = WrittenHistory()
    history.node("n1", cpu="3")
    history.queue("guest")
    history.queue("owner")
    for name, queue in (("batch", "guest"), ("urgent", "guest"), ("mine", "owner")):
        history.group(name, queue)
    history.bind("batch-0", "batch", "n1", "1")
    history.bind("batch-1", "batch", "n1", "1")
    for name in ("urgent-0", "mine-0", "mine-1"):
        history.wait(name, name[:-2], "1")
    with history.at_once():
        history.evict("batch-1", "preempted for ns/urgent", is_gone=False)
        history.evict("batch-0", "reclaimed for ns/mine", is_gone=False)
    history.bind("urgent-0", "urgent", "n1", "1")
    for index in range(2):
        history.show(Kind.POD, f"batch-{index}", "gone", **history.pods[f"batch-{index}"])
    for index in range(2):
        history.bind(f"mine-{index}", "mine", "n1", "1")
    assert findings(history, PREEMPT) == []


def test_a_successor_evicted_for_the_same_preemptor_is_found() -> None:
    history = WrittenHistory()
    history.node("n1", cpu="2")
    history.queue("guest")
    history.queue("owner")
    history.group("batch", "guest")
    history.bind("batch-0", "batch", "n1", "2", uid="first")
    history.evict("batch-0")
    history.bind("batch-0", "batch", "n1", "2", uid="second")
    history.evict("batch-0")
    assert "repeated-eviction" in findings(history)


class _TwoEvictions(WrittenHistory):
    """`batch-0` is evicted for `urgent`; `finish` lets it run and be evicted for `urgent` again."""

    def __init__(self) -> None:
        super().__init__()
        self.node("n1", cpu="2")
        self.queue("guest")
        for group in ("batch", "urgent", "third"):
            self.group(group, "guest")
        self.bind("batch-0", "batch", "n1", "2", uid="batch-first")
        self.evict("batch-0", "preempted for ns/urgent of queue guest")

    def serve(self) -> None:
        self.bind("urgent-0", "urgent", "n1", "2", uid="urgent-first")

    def finish(self) -> list[str]:
        self.bind("batch-0", "batch", "n1", "2", uid=f"batch-{len(self.versions)}")
        self.evict("batch-0", "preempted for ns/urgent of queue guest")
        return [name for name in findings(self, PREEMPT) if name == "repeated-eviction"]


@pytest.mark.parametrize(("another", "found"), [(True, []), (False, ["repeated-eviction"])])
def test_a_pod_may_be_evicted_again_for_nobody_who_is_named_after_a_change(another: bool, found: list[str]) -> None:
    """kube-scheduler and Volcano name no preemptor in their message, which is the same for every eviction."""
    history = a_cluster()
    for uid in ("first", "second"):
        history.bind("batch-0", "batch", "n1", "1", uid=uid)
        history.evict("batch-0", "preempting to accommodate a higher priority pod")
        if another:
            history.group(f"after-{uid}", "owner")
    assert [name for name in findings(history) if name == "repeated-eviction"] == found


@pytest.mark.parametrize(("kind", "found"), [(Kind.GANG, []), (Kind.PODGROUP, ["needless-eviction"])])
def test_a_gang_of_kubernetes_is_not_judged_by_a_policy(kind: Kind, found: list[str]) -> None:
    history = a_cluster()
    history.show(kind, "victims", metadata={"namespace": "ns"}, spec={"queue": "guest"})
    history.bind("victim-0", "victims", "n1", "1")
    history.evict("victim-0", "preempting to accommodate a higher priority pod")
    history.bind("mine-0", "mine", "n1", "1")
    assert findings(history) == found


class TestSecondEviction:
    def test_has_no_new_cause_if_the_preemptor_was_never_bound(self) -> None:
        history = _TwoEvictions()
        history.node("n2", cpu="1")
        assert history.finish()

    def test_has_no_new_cause_if_the_preemptor_still_runs(self) -> None:
        history = _TwoEvictions()
        history.serve()
        history.node("n2", cpu="1")
        assert history.finish()

    @pytest.mark.parametrize("changes", [True, False])
    def test_has_a_new_cause_if_a_change_lets_the_preemptor_claim_more(self, *, changes: bool) -> None:
        """Found by exploration (seed 2004050)."""
        history = _TwoEvictions()
        history.wait("urgent-1", "urgent", "2")
        history.serve()
        if changes:
            history.node("n2", cpu="1")
        assert bool(history.finish()) != changes

    @pytest.mark.parametrize("evictor", ["batch", "late"])
    def test_has_a_new_cause_if_a_new_job_evicted_the_preemptor(self, evictor: str) -> None:
        """Found by exploration (seed 1003711)."""
        history = _TwoEvictions()
        history.serve()
        history.group("late", "guest")
        history.evict("urgent-0", f"reclaimed for ns/{evictor} of queue guest")
        assert bool(history.finish()) == (evictor == "batch")

    @pytest.mark.parametrize("since", [True, False])
    @pytest.mark.parametrize("change", ["node", "queue", "job"])
    def test_has_a_new_cause_after_its_victim_took_the_capacity_only_if_a_limit_changed(
        self, change: str, *, since: bool
    ) -> None:
        """The share of a queue falls and rises again, and its job evicts the other job each time."""
        history, mine = _TwoEvictions(), "preempted for ns/batch of queue guest"
        history.serve()
        if since:
            history.evict("urgent-0", mine)
        if change == "node":
            history.node("n1", cpu="3")
        elif change == "queue":
            history.queue("guest", deserved={"cpu": "2"})
        else:
            history.group("late", "guest")
        if not since:
            history.evict("urgent-0", mine)
        assert bool(history.finish()) != (since and change != "job")

    def test_has_no_new_cause_if_jobs_evict_each_other_in_turn(self) -> None:
        history = _TwoEvictions()
        history.serve()
        history.evict("urgent-0", "preempted for ns/third of queue guest")
        history.bind("third-0", "third", "n1", "2")
        history.evict("third-0", "preempted for ns/batch of queue guest")
        assert history.finish()

    @pytest.mark.parametrize("rounds", [1, 2])
    def test_has_a_new_cause_if_a_third_job_keeps_the_capacity_of_the_preemptor(self, rounds: int) -> None:
        """Found by exploration (seed 10077): the third job keeps the capacity."""
        history = _TwoEvictions()
        for index in range(rounds):
            history.bind(f"urgent-{index}", "urgent", "n1", "2")
            history.evict(f"urgent-{index}", "reclaimed for ns/third of queue guest")
            history.bind(f"third-{index}", "third", "n1", "2")
            found = history.finish()
        assert bool(found) == (rounds > 1)

    @pytest.mark.parametrize("change", ["node", "pod", "queue", "job"])
    def test_has_a_new_cause_if_the_preemptor_lost_capacity_and_something_changed(self, change: str) -> None:
        """Found by exploration (seed 1000393): the preemptor's node was deleted."""
        history = _TwoEvictions()
        history.serve()
        pod = history.pods["urgent-0"]
        if change == "pod":
            history.show(Kind.POD, "urgent-0", **{**pod, "status": {"phase": "Failed"}})
        else:
            history.evict("urgent-0", "reclaimed for ns/third of queue guest")
        if change == "node":
            history.show(Kind.NODE, "n1", "gone")
        elif change == "queue":
            history.show(Kind.QUEUE, "guest", metadata={"generation": 2}, spec={"capability": {"cpu": "3"}})
        elif change == "job":
            history.show(Kind.PODGROUP, "third", "gone", metadata={"namespace": "ns"})
        assert not history.finish()


PREEMPT = POLICY.replace("reclaim", "preempt")
FOR_URGENT = "preempted for ns/urgent of queue guest; tier 1 decided (priority permits)"


@pytest.mark.parametrize(("evicted", "found"), [(2, []), (3, ["disproportionate-eviction"])])
def test_evictions_beyond_a_pods_request_and_the_largest_victim_are_found(evicted: int, found: list[str]) -> None:
    history = a_cluster()
    history.queue("guest", capability={"cpu": "1"})
    history.group("urgent", "guest")
    for index in range(4):
        history.bind(f"batch-{index}", "batch", "n1", "1")
    history.wait("urgent-0", "urgent", "1")
    for index in range(evicted):
        history.evict(f"batch-{index}", FOR_URGENT)
    history.bind("urgent-0", "urgent", "n1", "1")
    assert [name for name in findings(history, PREEMPT) if name.startswith("dis")] == found


def test_the_eviction_of_a_whole_gang_is_in_proportion_to_one_pod() -> None:
    history = a_cluster()
    history.group("gang", "guest", 4)
    history.group("urgent", "guest")
    for index in range(4):
        history.bind(f"gang-{index}", "gang", "n1", "1")
    history.wait("urgent-0", "urgent", "1")
    for index in range(4):
        history.evict(f"gang-{index}", FOR_URGENT)
    history.bind("urgent-0", "urgent", "n1", "1")
    assert findings(history, PREEMPT) == []


def test_evictions_after_a_change_of_a_queue_are_judged_separately() -> None:
    history = a_cluster()
    history.group("urgent", "guest")
    for index in range(4):
        history.bind(f"batch-{index}", "batch", "n1", "1")
    history.wait("urgent-0", "urgent", "1")
    for index in range(4):
        history.evict(f"batch-{index}", FOR_URGENT)
        changed = {"capability": {"cpu": str(4 - index)}}
        history.show(Kind.QUEUE, "guest", metadata={"generation": index + 1}, spec=changed)
    history.bind("urgent-0", "urgent", "n1", "1")
    assert [name for name in findings(history, PREEMPT) if name.startswith("dis")] == []


class WorkloadHistory(WrittenHistory):
    """A history of two queues on eight cpus; Kueue evicts two Workloads of `guest` for one of `owner`."""

    def __init__(
        self,
        requested: str,
        *,
        capability: str = "8",
        reserved: str = "0",
        ends: bool = False,
        pods: int = 1,
        other_nodes: int = 0,
    ) -> None:
        super().__init__()
        for number in range(other_nodes):
            self.show(Kind.NODE, f"control-plane-{number}", status={"allocatable": {"cpu": "64"}})
        self.node("n1", cpu="4")
        self.node("n2", cpu="4")
        self.queue("owner", deserved={"cpu": "4"})
        self.queue("guest", capability={"cpu": capability})
        self.queue("third", guarantee={"resource": {"cpu": reserved}})
        for name, queue in (("claim", "owner"), ("one", "guest"), ("two", "guest")):
            spec = {"queueName": queue, "podSets": [{"count": pods if name == "claim" else 1}]}
            self.show(Kind.WORKLOAD, name, metadata={"namespace": "ns"}, spec=spec)
        self.bind("one-0", "one", "n1", "4")
        self.bind("two-0", "two", "n2", "4")
        self.wait("claim-0", "claim", requested)
        if ends:
            self.bind("other-0", "other", "n1", "0")
        why = "Preempted to accommodate a workload (UID: claim-uid, JobUID: j) due to reclamation within the cohort"
        self.evict("one-0", why)
        self.evict("two-0", why)
        if ends:
            self.show(Kind.POD, "other-0", "gone", **self.pods["other-0"])
        self.bind("claim-0", "claim", "n1", requested)


class TestNeedlessWorkload:
    NAME = "needless-workload-eviction"

    def test_each_of_two_workloads_could_have_stayed(self) -> None:
        assert findings(WorkloadHistory("4")).count(self.NAME) == 2

    def test_both_were_needed(self) -> None:
        assert self.NAME not in findings(WorkloadHistory("8"))

    def test_the_quota_counts_and_the_nodes_do_not(self) -> None:
        assert self.NAME not in findings(WorkloadHistory("5"))

    def test_the_nodes_of_the_cluster_itself_are_no_capacity(self) -> None:
        assert self.NAME not in findings(WorkloadHistory("8", other_nodes=1))

    def test_nothing_is_judged_while_a_pod_of_the_preemptor_is_not_bound(self) -> None:
        assert findings(WorkloadHistory("4", pods=1)).count(self.NAME) == 2
        assert self.NAME not in findings(WorkloadHistory("4", pods=2))

    def test_an_eviction_was_needed_if_its_queue_would_exceed_its_capability(self) -> None:
        assert self.NAME not in findings(WorkloadHistory("4", capability="3"))

    def test_an_eviction_was_needed_if_it_freed_the_guarantee_of_another_queue(self) -> None:
        assert self.NAME not in findings(WorkloadHistory("4", reserved="1"))

    def test_nothing_is_judged_if_another_pod_ended_meanwhile(self) -> None:
        assert self.NAME not in findings(WorkloadHistory("4", ends=True))

    @pytest.mark.parametrize("second_runs", [True, False], ids=["both run", "one runs"])
    def test_capacity_for_a_second_preemptor_is_not_free_while_the_first_one_runs(self, second_runs: bool) -> None:
        history = WrittenHistory()
        for name in ("n1", "n2"):
            history.node(name, cpu="4")
        for name, queue in (("claim", "owner"), ("late", "owner"), ("one", "guest"), ("two", "guest")):
            history.queue(queue)
            history.show(Kind.WORKLOAD, name, metadata={"namespace": "ns"}, spec={"queueName": queue})
        for name, victim, node in (("claim", "one", "n1"), ("late", "two", "n2")):
            history.bind(f"{victim}-0", victim, node, "4")
            history.wait(f"{name}-0", name, "4")
        for name, victim in (("claim", "one"), ("late", "two")):
            history.evict(f"{victim}-0", f"Preempted to accommodate a workload (UID: {name}-uid, JobUID: j)")
        history.bind("claim-0", "claim", "n1", "4")
        if second_runs:
            history.bind("late-0", "late", "n2", "4")
        assert self.NAME not in findings(history)
