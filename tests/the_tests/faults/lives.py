"""Faults of what becomes of work that waits or was stopped: what it is said to be, and what is done with it."""

from __future__ import annotations

import msgspec

from scheduler.controllers import job
from scheduler.decisions import Decisions
from scheduler.hooks import Vote
from scheduler.model.cluster import Cluster
from scheduler.model.job import RUNNING
from scheduler.plugins import queue_admission
from scheduler.plugins.queue_plugin import QueuePlugin
from tests.the_tests.faults.decisions import Change, after, overcommit
from tests.the_tests.faults.fault import Fault, always, instead


def _said_to_run() -> Change:
    def change(_: Cluster, decisions: Decisions, __: float) -> Decisions:
        return msgspec.structs.replace(
            decisions, phases={**decisions.phases, **dict.fromkeys(decisions.refusals, RUNNING)}
        )

    return change


def _admits_and_overcommits() -> None:
    instead(
        (QueuePlugin, "job_enqueueable", always(Vote.PERMIT)),
        (queue_admission.Admission, "vote", always(Vote.PERMIT)),
    )()
    after(overcommit)()


FAULTS = (
    Fault(
        "says-that-it-runs",
        "says of a PodGroup that waits that it runs",
        after(_said_to_run),
        ("kubeflow/backfill", "kubeflow/priority"),
    ),
    Fault(
        "admits-and-overcommits",
        "lets every PodGroup in and binds its pods, room or not",
        _admits_and_overcommits,
        ("lifecycle/states: A job that does not fit",),
    ),
    Fault(
        "resumes-unasked",
        "makes pods for a job that was aborted",
        instead((job, "ABORTED", "no phase")),
        ("lifecycle/states: Aborted",),
    ),
)
