"""Faults in the lifecycle of jobs that wait, start or end: wrong states, and wrong evictions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec

from schedspec.scheduler.controllers.job import reconcile
from schedspec.scheduler.controllers.job.state import JobPhase
from schedspec.scheduler.framework.decisions import Decisions
from schedspec.scheduler.model.cluster import Cluster
from schedspec.scheduler.model.job import PodGroupPhase
from schedspec.scheduler.model.task import COMPLETED
from tests.test_the_tests.faults.acts import admit_everything
from tests.test_the_tests.faults.decisions import Change, after, eviction, overcommit, running
from tests.test_the_tests.faults.fault import Fault, instead


def _reported_as_running() -> Change:
    def change(_: Cluster, decisions: Decisions, __: float) -> Decisions:
        return msgspec.structs.replace(
            decisions, phases={**decisions.phases, **dict.fromkeys(decisions.refusals, PodGroupPhase.RUNNING)}
        )

    return change


def _admits_and_overcommits() -> None:
    admit_everything()
    after(overcommit)()


def _evict_at_each_start() -> Change:
    """Evict a pod of another job whenever a job starts to run."""
    known: set[str] = set()

    def change(cluster: Cluster, decisions: Decisions, _: float) -> Decisions:
        run = {task.job for task in running(cluster, set())}
        new, more = run - known, []
        victim = next(running(cluster, new), None) if known else None
        if new and victim is not None:
            more.append(eviction(cluster, victim, min(new)))
        known.update(new)
        return msgspec.structs.replace(decisions, evictions=[*decisions.evictions, *more])

    return change


def _evict_at_each_end() -> Change:
    """Evict a pod of another job whenever a job has ended."""
    known: set[str] = set()

    def change(cluster: Cluster, decisions: Decisions, _: float) -> Decisions:
        run = {task.job for task in running(cluster, set())}
        ended = sorted(key for key in known - run if _has_ended(cluster, key))
        known.clear()
        known.update(run)
        more = [eviction(cluster, victim, job) for job, victim in zip(ended, running(cluster, set()), strict=False)]
        return msgspec.structs.replace(decisions, evictions=[*decisions.evictions, *more])

    return change


def _has_ended(cluster: Cluster, job: str) -> bool:
    return job not in cluster.jobs or all(it & COMPLETED for it, tasks in cluster.jobs[job].by_status.items() if tasks)


_pods_to_delete = reconcile.pods_to_delete


def _none_of_an_aborted_job(job: Any, status: Any, pods: Any) -> Any:
    """Delete no pod of an aborted job: in virtual time, creating and deleting pods in turn would never end."""
    return [] if status.state.phase == JobPhase.ABORTED else _pods_to_delete(job, status, pods)


FAULTS = (
    Fault(
        "makes-way",
        "evicts a pod for every job that has started",
        after(_evict_at_each_start),
        ("keeps running",),
    ),
    Fault(
        "goes-along",
        "evicts a pod for every job that has ended",
        after(_evict_at_each_end),
        ("hierarchy/use_case",),
    ),
    Fault(
        "says-that-it-runs",
        "reports a waiting PodGroup as running",
        after(_reported_as_running),
        ("kubeflow/backfill", "kubeflow/priority"),
    ),
    Fault(
        "admits-and-overcommits",
        "admits every PodGroup and binds its pods, even if they do not fit",
        _admits_and_overcommits,
        (
            "lifecycle/states: A job that does not fit",
            "card_quota/quota_by_model: Unused quota",
            "gang/all_or_none: A gang that does",
            "gang/all_or_none: Two gangs",
        ),
    ),
    Fault(
        "resumes-unasked",
        "creates pods for an aborted job",
        instead(
            (reconcile, "JobPhase", SimpleNamespace(**{**JobPhase.__members__, "ABORTED": "no phase"})),
            (reconcile, "pods_to_delete", _none_of_an_aborted_job),
        ),
        ("lifecycle/states: Aborted",),
    ),
)
