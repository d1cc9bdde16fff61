"""An in-memory cluster for the PyTorchJob controller."""

from __future__ import annotations

from typing import Any

from schedspec.scheduler.controllers.pytorchjob import reconcile as pytorchjob
from schedspec.scheduler.controllers.pytorchjob.state import ObservedTraining, queue_of
from schedspec.scheduler.controllers.runtime.objects import PYTORCH_JOBS
from schedspec.scheduler.controllers.runtime.writes import ReconcileResult
from schedspec.scheduler.kube.resource import PODS, PRIORITY_CLASSES
from tests.support.controllers.fake_cluster import Body, FakeCluster, template


class FakeTrainingCluster(FakeCluster):
    """An in-memory cluster with one PyTorchJob, called `t`."""

    def __init__(self, workers: int = 2, master: bool = True, replica: Body | None = None, **spec: Any) -> None:
        super().__init__()
        given = {"template": template("pytorch"), **(replica or {})}
        replicas = {"Master": {"replicas": 1, **given}} if master else {}
        if workers:
            replicas["Worker"] = {"replicas": workers, **given}
        self.put(PYTORCH_JOBS, {"metadata": {"name": "t"}, "spec": {"pytorchReplicaSpecs": replicas, **spec}})

    @property
    def job(self) -> Any:
        return next(iter(self.all(PYTORCH_JOBS)), None)

    @property
    def state(self) -> str:
        """Return the state that `kubectl get` shows."""
        kind: str = self.job.status.conditions[-1].type
        return kind

    def decide(self) -> ReconcileResult:
        if self.job is None:
            return ReconcileResult()
        seen = ObservedTraining(
            self.job,
            self.all(PODS),
            self.group,
            {found.metadata.name: found for found in self.all(PRIORITY_CLASSES)},
            queue=queue_of(self.job, self.group, self.namespace),
            limits=self.limits,
            queue_problem=self.queue_problem,
            scheduler_name="schedspec",
            now=self.now,
        )
        return pytorchjob.reconcile(seen)

    def work(self) -> FakeTrainingCluster:
        self.settle(self.decide)
        return self

    def run(self) -> FakeTrainingCluster:
        self.work()
        self.admit()
        self.work()
        self.set_phase("Running")
        return self.work()
