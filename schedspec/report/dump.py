"""The whole of a failed scenario as files: what the story had no room for."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from ..scenario.run import ScenarioRun
from . import failure as story

_LOG = 400


def write(running: ScenarioRun, problem: BaseException) -> Path:
    """Write the folder of this scenario anew; give its path."""
    folder = running.folder
    folder.mkdir(parents=True, exist_ok=True)
    text = "\n".join(story.tell(running, problem, whole=True)) + "\n"
    (folder / "failure.txt").write_text(text, "utf-8")
    (folder / "policy.yaml").write_text(running.policy, "utf-8")
    if running.history is not None:
        rows = (
            {"at": round(running.history.seconds(it.at), 4), "wall": it.wall, "change": it.change, "object": it.object}
            for it in running.history.since(0)
        )
        (folder / "history.jsonl").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))
    scheduler = running.session.scheduler if running.session is not None else None
    if scheduler is not None:
        (folder / "scheduler.log").write_text("\n".join(scheduler.last_lines(_LOG)) + "\n", "utf-8")
        shutil.rmtree(folder / story.RECORDING, ignore_errors=True)  # of an earlier run
        scheduler.keep_recording(running.began_wall, folder / story.RECORDING)
    return folder
