"""Write everything known about a failed scenario into files, including what its failure text leaves out."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from ..scenario.run import ScenarioRun
from . import failure, files

_LOG_LINES = 400


def write(running: ScenarioRun, problem: BaseException) -> Path:
    """Write the files into the scenario's folder and return its path. Raises OSError."""
    private = running.session is not None and running.session.ownership.shared
    folder = files.make_folder(running.folder, private=private)
    text = "\n".join(failure.render(running, problem, whole=True)) + "\n"
    files.write(folder / "failure.txt", text, private=private)
    files.write(folder / "policy.yaml", running.policy, private=private)
    if running.history is not None:
        rows = (
            {
                "at": round(running.history.seconds(version.at), 4),
                "wall": version.wall,
                "change": version.change,
                "object": version.object,
            }
            for version in running.history.since(0)
        )
        files.write(
            folder / "history.jsonl", b"".join(msgspec.json.encode(row) + b"\n" for row in rows), private=private
        )
    scheduler = running.session.scheduler if running.session is not None else None
    if scheduler is not None:
        files.write(folder / "scheduler.log", "\n".join(scheduler.last_lines(_LOG_LINES)) + "\n", private=private)
        keep_recording(running)
    return folder


def keep_recording(running: ScenarioRun) -> None:
    """Keep the scheduler's recording of this scenario, for `explain` and `replay`. Raises OSError."""
    scheduler = running.session.scheduler if running.session is not None else None
    if scheduler is None:
        return
    files.make_folder(running.folder, private=running.session is not None and running.session.ownership.shared)
    shutil.rmtree(running.folder / failure.RECORDING, ignore_errors=True)  # left by an earlier run
    since = running.began_wall if running.history is None else running.history.began_wall  # by the cluster's clock
    scheduler.keep_recording(since, running.folder / failure.RECORDING)
