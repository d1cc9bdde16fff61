"""Invariants of a Job under random events, with a controller that may crash at any point."""

from __future__ import annotations

import copy

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from schedspec.scheduler.controllers.job.state import FINISHED, JobPhase
from schedspec.scheduler.controllers.runtime.objects import JOBS
from schedspec.scheduler.kube.resource import PODGROUPS, PODS
from tests.support.controllers.fake_cluster import FakeJobCluster, task

EVENTS = st.sampled_from(["*", "PodFailed", "PodEvicted", "TaskCompleted", "Unknown"])
ACTIONS = st.sampled_from(["AbortJob", "RestartJob", "RestartTask", "RestartPod", "CompleteJob", "TerminateJob"])
POLICIES = st.lists(st.builds(lambda event, action: {"event": event, "action": action}, EVENTS, ACTIONS), max_size=2)


class Life(RuleBasedStateMachine):
    """One Job, with random acts of users, kubelets and schedulers."""

    @initialize(
        replicas=st.lists(st.integers(0, 3), min_size=1, max_size=2),
        policies=POLICIES,
        retries=st.integers(0, 3),
    )
    def begin(self, replicas: list[int], policies: list[dict[str, str]], retries: int) -> None:
        tasks = [task(f"t{place}", number) for place, number in enumerate(replicas)]
        self.fake = FakeJobCluster({"tasks": tasks, "policies": policies, "maxRetry": retries})
        self.version = 0

    @rule(most=st.one_of(st.none(), st.integers(0, 5)))
    def controller(self, most: int | None) -> None:
        self.fake.reconcile_once(self.fake.decide, most)

    @rule(phase=st.sampled_from(["Inqueue", "Running", "Pending", "Unknown"]))
    def scheduler(self, phase: str) -> None:
        self.fake.admit(phase)

    @rule(phase=st.sampled_from(["Running", "Succeeded", "Failed"]), data=st.data())
    def kubelet(self, phase: str, data: st.DataObject) -> None:
        if pods := [name for name in self.fake.pods() if name not in self.fake.pods("Succeeded")]:
            self.fake.set_phase(phase, [data.draw(st.sampled_from(pods))])

    @rule(data=st.data())
    def eviction(self, data: st.DataObject) -> None:
        if pods := self.fake.pods():
            self.fake.evict(data.draw(st.sampled_from(pods)))

    @rule()
    def pods_leave(self) -> None:
        self.fake.remove_terminating()

    @rule(replicas=st.integers(0, 3))
    def user_scales(self, replicas: int) -> None:
        self.fake.change_spec(JOBS, "j", lambda spec: spec["tasks"][0].update(replicas=replicas))

    @invariant()
    def versions_only_grow(self) -> None:
        version = self.fake.job.status.version
        assert version >= self.version
        self.version = version

    @invariant()
    def no_pod_is_created_for_a_gang_that_is_not_admitted(self) -> None:
        group = self.fake.group
        creates = [write for write in self.fake.decide().writes if getattr(write, "resource", None) is PODS]
        creates = [write for write in creates if type(write).__name__ == "Create"]
        if creates:
            assert group is not None
            assert group.status.phase not in ("", "Pending")
            assert {write.body["metadata"]["annotations"]["scheduling.k8s.io/group-name"] for write in creates} == {
                group.metadata.name
            }

    @invariant()
    def the_controller_settles_and_the_pods_fit_the_phase(self) -> None:
        """Without further events, the controller settles, and the pods fit the phase."""
        saved = {key: _copy(body) for key, body in self.fake.objects.items()}
        created, events, again = list(self.fake.created), list(self.fake.events), self.fake.again
        for _ in range(6):
            self.fake.work()
            self.fake.remove_terminating()
        self.fake.work()
        phase, pods = self.fake.phase, self.fake.all(PODS)
        wanted = sum(one.replicas for one in self.fake.job.spec.tasks)
        if phase in FINISHED or phase == JobPhase.ABORTED:
            assert {pod.status.phase for pod in pods} <= {"Succeeded", "Failed"}
            assert not [key for key in self.fake.objects if key[0] == PODGROUPS.id]
        else:
            assert phase in ("Pending", "Running")
            assert len(pods) <= wanted
        self.fake.objects, self.fake.created, self.fake.events, self.fake.again = saved, created, events, again


def _copy(body: dict) -> dict:
    return copy.deepcopy(body)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
