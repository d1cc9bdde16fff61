"""The scheduler under test as a process of its own: start, policy, detection of its death, stop.

The harness uses only the process's command line and its HTTP pages; it imports none of the scheduler's modules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import urllib3
from tenacity import Retrying

from .. import distribution
from ..api import timeouts
from ..clusters.protocol import SCENARIO
from ..scheduler.recording import segments
from .adapter import Scheduler, sha256
from .daemon import Daemon
from .readiness import NotReadyError, require_in_force, retrying

_SEGMENT_BYTES = 8 << 20
"""Maximum size of a file: a scenario's recording is cut from the last files, and small files are read fast."""


def cut_recording(recording: Path, since: float, to: Path) -> bool:
    """Copy the cycles since `since` (wall time) from a recording to the folder `to`; return whether there are any."""
    try:
        return bool(segments.cut(recording, since, to))
    except (segments.RecordError, OSError):  # a recording of another program with our command line, or a full disk
        return False


class SchedulerProcess(Scheduler):
    """One scheduler for one cluster: `command` with the arguments of `python -m scheduler`.

    `folder` has its log and its policy file.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        kubeconfig: Path,
        context: str,
        *,
        scale: float = 1.0,
        namespace_prefix: str = "",
    ) -> None:
        self._daemon = Daemon("the scheduler under test", folder / "scheduler.log", readable)
        self.policy_file = folder / "policy.yaml"
        self._recording = folder / "recording"
        self.command = tuple(command)
        self._arguments = [
            *("run", "--kubeconfig", str(kubeconfig), "--context", context, "--policy", str(self.policy_file)),
            *("--node-selector", "schedspec.dev/world=true", "--listen", "127.0.0.1:0"),
            *("--record", str(self._recording), "--record-bytes", str(_SEGMENT_BYTES)),
        ]
        if namespace_prefix:
            self._arguments += ["--queue-selector", SCENARIO, "--namespace-prefix", namespace_prefix]
        self._scale = max(scale, 1.0)  # a smaller scale for scenarios does not make a process start faster
        self._address = ""
        self._http = urllib3.PoolManager(retries=False)

    def launch(self, policy: str) -> None:
        """Start the process without waiting. The scheduler waits for its CRDs, which can be installed meanwhile."""
        self.policy_file.parent.mkdir(parents=True, exist_ok=True)
        self._write(policy)
        self._daemon.launch([*self.command, *self._arguments], distribution.environment())

    def start(self, policy: str) -> None:
        """Return when each of its watches has listed and the policy is in force."""
        if not self._daemon.launched:
            self.launch(policy)
        for attempt in self._until(timeouts.READY, pause=0.02):
            with attempt:
                self._ready()
        self.use_policy(policy)

    def stop(self) -> None:
        self._daemon.stop()
        self._address = ""
        self._http.clear()

    def keep_recording(self, since: float, to: Path) -> bool:
        return cut_recording(self._recording, since, to)

    def handle(self) -> dict[str, Any]:
        return {"pid": self.pid, "address": self._address}

    def attach(self, handle: dict[str, Any]) -> None:
        self._daemon.adopt(handle["pid"])
        self._address = handle["address"]

    @property
    def pid(self) -> int:
        """Process id; 0 while the scheduler does not run."""
        return self._daemon.pid

    def check(self) -> None:
        self._daemon.check()

    def use_policy(self, text: str) -> str:
        """Put a policy into force and return its sha256. Usually takes 0.2 s."""
        self._write(text)
        wanted = sha256(text)
        for attempt in self._until(timeouts.POLICY, pause=0.01):
            with attempt:
                require_in_force(self.policy(), wanted)
        return wanted

    def policy(self) -> dict[str, Any]:
        """Return the scheduler's report of the policy in force: path, sha256, error."""
        answer: dict[str, Any] = msgspec.json.decode(self._get("/policy"))
        return answer

    def metrics(self) -> str:
        return self._get("/metrics").decode()

    def _ready(self) -> None:
        self.check()
        if not self._address:
            first = self._daemon.text().partition("listening on ")[2].partition("\n")
            if not first[1]:
                raise NotReadyError(f"the scheduler has not logged its address yet\n{self._daemon.log_tail()}")
            self._address = first[0].strip()
        self._get("/readyz")

    def _get(self, path: str) -> bytes:
        self.check()
        try:
            response = self._http.request("GET", f"http://{self._address}{path}", timeout=5.0)
        except urllib3.exceptions.HTTPError as problem:
            raise NotReadyError(
                f"the scheduler does not answer {path}: {problem}\n{self._daemon.log_tail()}"
            ) from problem
        if response.status != 200:
            raise NotReadyError(f"{path} answers {response.status}: {response.data.decode(errors='replace')[:500]}")
        return response.data

    def _until(self, seconds: float, pause: float) -> Retrying:
        return retrying(seconds * self._scale, pause)

    def _write(self, text: str) -> None:
        """Write the policy file by one rename, so that the scheduler never reads a part of it."""
        draft = self.policy_file.with_suffix(".draft")
        draft.write_text(text, "utf-8")
        draft.replace(self.policy_file)

    def last_lines(self, count: int) -> Sequence[str]:
        return self._daemon.last_lines(count)


def readable(line: str) -> str:
    """Format a line of the log: level, message, and the exceptions (see `_leaves`). Other text stays unchanged."""
    try:
        entry = msgspec.json.decode(line)
        message = str(entry.get("message") or entry.get("event") or "")
        raised = "".join(
            f"; {error['exc_type']}: {error['exc_value']}" for error in _leaves(entry.get("exception") or ())
        )
    except (msgspec.DecodeError, AttributeError, KeyError, TypeError):
        return line
    return f"{entry.get('level', 'info')}: {message}{raised}"


def _leaves(raised: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the exception of a structured traceback; of a group, the exceptions in it. Causes are left out."""
    for error in raised[:1]:
        groups = error.get("exceptions") or ()
        if not groups:
            yield error
        for group in groups:
            yield from _leaves(group)
