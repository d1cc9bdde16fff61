"""The shell of the Job controller: a `GangJobController` that also follows Commands."""

from __future__ import annotations

from collections.abc import Iterable

from ...model.objects import Namespace, PodGroup
from ..gang_job import GangJobController, ObservedGangJob
from ..queue.state import queue_for
from ..runtime.commands import CommandBatch, commands_to
from ..runtime.controller import Context
from ..runtime.objects import COMMANDS, JOBS, Command, VolcanoJob
from ..runtime.writes import ReconcileResult
from .reconcile import reconcile
from .state import JobPhase, replicas_of


class JobController(GangJobController[VolcanoJob]):
    """Jobs of `batch.volcano.sh` and their Commands."""

    name = "job"
    kind = JOBS

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._commands = context.view(COMMANDS)
        self._needs.append(self._commands)
        self._commands.informer.on_change(self._command_changed)

    def _is_pending(self, job: VolcanoJob) -> bool:
        return job.status.state.phase in ("", JobPhase.PENDING)

    def _reason_of(self, job: VolcanoJob) -> str:
        return job.status.state.reason

    def _scheduler_names_of(self, job: VolcanoJob) -> Iterable[str]:
        return (job.spec.scheduler_name,)

    def _queue_of(self, job: VolcanoJob, group: PodGroup | None, namespace: Namespace | None) -> str:
        return queue_for(job.spec.queue, group, namespace)

    def _replicas_of(self, job: VolcanoJob) -> int:
        return replicas_of(job)

    def _commands_to(self, key: str, job: VolcanoJob | None) -> CommandBatch:
        candidates = self._commands.by("target", f"{JOBS.kind} {key}")
        return commands_to(candidates, JOBS, key, job.metadata.uid if job else None, self._context.clock())

    def _command_changed(self, before: Command | None, after: Command | None) -> None:
        command = after or before
        if command is not None and command.target.kind == JOBS.kind:
            self._queue.add(f"{command.metadata.namespace}/{command.target.name}")

    def _reconcile(self, seen: ObservedGangJob[VolcanoJob]) -> ReconcileResult:
        return reconcile(seen)
