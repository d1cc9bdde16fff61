"""drf: serve jobs with the smaller dominant share of the cluster first (semantics: Volcano's `plugins/drf`).

A job's dominant share is its largest fraction of any of the cluster's resources; pipelined tasks count as held.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from ..framework.plugin import Covers, Plugin
from ..framework.session import Session
from ..model import resources
from ..model.job import Job
from ..model.resources import PODS, Resource
from ..model.task import Task, TaskStatus
from ..policy.hooks import JobOrder, Preemptable, VetoReason, Vote
from ..reasons import SmallerShare

DELTA = 1e-6
"""Shares whose difference is smaller than this are equal."""


class Drf(Plugin, JobOrder, Preemptable, VetoReason):
    """Order jobs by dominant share."""

    name = "drf"
    refusal_covers = Covers.LOWER_PRIORITIES
    refused: ClassVar = {
        "enableHierarchy": (
            "hierarchical drf is not supported",
            "remove enableHierarchy from drf; use capacity for a tree of queues",
        )
    }

    def open(self, session: Session) -> None:
        self._session = session
        self._shares: dict[str, float] = {}
        self._total = [(name, amount) for name, amount in session.total.items() if name != PODS]
        session.on_allocation_change(self._forget_share)

    def _forget_share(self, task: Task, _sign: int) -> None:
        self._shares.pop(task.job, None)

    def job_order(self, job: Job) -> float:
        share = self._shares.get(job.key)
        if share is None:
            share = self._shares[job.key] = self._share(_held(job))
        return share

    def _share(self, held: Mapping[str, int]) -> float:
        return max((resources.share(held.get(name, 0), amount) for name, amount in self._total), default=0.0)

    def preemptable(self, preemptor: Task, candidates: Sequence[Task]) -> tuple[list[Task], Vote]:
        """Return the candidates whose jobs would still have at least the share that the preemptor's job would reach."""
        jobs = self._session.cluster.jobs
        mine = self._share(resources.plus(_held(jobs[preemptor.job]), preemptor.request))
        left: dict[str, Resource] = {}
        permitted = []
        for task in candidates:
            if task.job not in jobs:
                continue
            if task.job not in left:
                left[task.job] = _held(jobs[task.job])
            resources.take_from(left[task.job], task.request)
            theirs = self._share(left[task.job])
            if mine < theirs or abs(mine - theirs) <= DELTA:
                permitted.append(task)
        return permitted, Vote.PERMIT

    def veto_reason(self, preemptor: Task, unit: Sequence[Task]) -> SmallerShare:
        jobs, name = self._session.cluster.jobs, unit[0].job
        mine = self._share(resources.plus(_held(jobs[preemptor.job]), preemptor.request))
        return SmallerShare(name, round(self._share(_held(jobs[name])) * 1000), round(mine * 1000))


def _held(job: Job) -> Resource:
    pipelined = job.by_status.get(TaskStatus.PIPELINED, {}).values()
    return resources.plus(job.allocated, *(task.request for task in pipelined))
