"""The whole of a failed scenario as files: what the story had no room for."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from ..scenario.run import ScenarioRun
from . import failure as story
from . import files

_LOG = 400


def write(running: ScenarioRun, problem: BaseException) -> Path:
    """Write the folder of this scenario anew; give its path. Raises OSError."""
    folder = files.make_folder(running.folder)
    text = "\n".join(story.tell(running, problem, whole=True)) + "\n"
    files.write(folder / "failure.txt", text)
    files.write(folder / "policy.yaml", running.policy)
    if running.history is not None:
        rows = (
            {"at": round(running.history.seconds(it.at), 4), "wall": it.wall, "change": it.change, "object": it.object}
            for it in running.history.since(0)
        )
        files.write(folder / "history.jsonl", b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    scheduler = running.session.scheduler if running.session is not None else None
    if scheduler is not None:
        files.write(folder / "scheduler.log", "\n".join(scheduler.last_lines(_LOG)) + "\n")
        shutil.rmtree(folder / story.RECORDING, ignore_errors=True)  # of an earlier run
        scheduler.keep_recording(running.began_wall, folder / story.RECORDING)
    return folder
