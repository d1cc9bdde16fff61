"""Read YuniKorn's log: which pods it preempted, and which configurations it took over or refused.

YuniKorn does not mark a pod that it preempts: it deletes the pod. Its event about this follows after up to two seconds,
and never if the pod has gone by then. The log names the pod before YuniKorn deletes it.
"""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any, Final

_PREEMPTED: Final = re.compile(rb"\tPreempting task\t(\{.*\})$")
_REFUSED: Final = re.compile(rb"\t(?:reload configuration failed|Unable to update configmap, ignoring changes)\t(.*)$")
_IN_FORCE: Final = b"Updating placement manager rules on config reload"


class YuniKornLog:
    """The content of the log so far. Thread-safe: the watch of pods reads it, too."""

    def __init__(self, path: Path) -> None:
        self._path, self._lock = path, threading.Lock()
        self.restart()

    def restart(self) -> None:
        """Forget everything: the program begins a new log."""
        with self._lock:
            self._read = 0
            self._in_force = 0
            self._refusals: list[str] = []
            self._preemptors: dict[str, str] = {}

    def eviction(self, uid: str) -> dict[str, Any] | None:
        """Return a condition that describes the preemption of the pod, or None if it was not preempted."""
        with self._lock:
            self._follow()
            preemptor = self._preemptors.get(uid)
        if preemptor is None:
            return None
        message = f"preempted for the application {preemptor}"
        return {"type": "DisruptionTarget", "status": "True", "reason": "PreemptedByYuniKorn", "message": message}

    def configurations(self) -> tuple[int, list[str]]:
        """Return how many configurations came into force, and why others were refused."""
        with self._lock:
            self._follow()
            return self._in_force, list(self._refusals)

    def _follow(self) -> None:
        """Read the complete lines that are new. The caller holds the lock."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as log:
            log.seek(self._read)
            new, newline, _ = log.read().rpartition(b"\n")
        self._read += len(new) + len(newline)
        for line in new.splitlines():
            if found := _PREEMPTED.search(line):
                fields = json.loads(found[1])
                self._preemptors[fields["victimAllocationKey"]] = fields["askApplicationID"]
            elif found := _REFUSED.search(line):
                self._refusals.append(found[1].decode("utf-8", errors="replace"))
            elif _IN_FORCE in line:
                self._in_force += 1
