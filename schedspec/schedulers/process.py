"""The scheduler under test as a process of its own: started, given a policy, watched for its death, ended.

It is reached by its command line and its HTTP page only; nothing of it is imported.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import urllib3
from tenacity import Retrying

from .. import distribution
from ..api import timeouts
from ..clusters.protocol import SCENARIO
from .daemon import Daemon
from .readiness import NotYetError, patiently, require_in_force

_SEGMENT_BYTES = 8 << 20
"""A scenario's recording is cut out of the last files: small ones are read soon."""


class SchedulerProcess:
    """One scheduler for one cluster: `command` with the arguments of `python -m scheduler`.

    Its log and its policy file are in `folder`.
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
        """`namespace_prefix`: the cluster is shared, and only namespaces of such names and labelled queues are ours."""
        self._daemon = Daemon("the scheduler under test", folder / "scheduler.log", readable)
        self.policy_file = folder / "policy.yaml"
        self._recording = folder / "recording"
        self.command = tuple(command)
        """How it is called the next time it is launched."""
        self._arguments = [
            *("run", "--kubeconfig", str(kubeconfig), "--context", context, "--policy", str(self.policy_file)),
            *("--node-selector", "schedspec.dev/world=true", "--listen", "127.0.0.1:0"),
            *("--record", str(self._recording), "--record-bytes", str(_SEGMENT_BYTES)),
        ]
        if namespace_prefix:
            self._arguments += ["--queue-selector", SCENARIO, "--namespace-prefix", namespace_prefix]
        self._scale = max(scale, 1.0)  # less patience with scenarios makes no process start sooner
        self._address = ""
        self._http = urllib3.PoolManager(retries=False)

    def launch(self, policy: str) -> None:
        """Let it begin: it waits for its CRDs by itself, so that they can be made meanwhile."""
        self.policy_file.parent.mkdir(parents=True, exist_ok=True)
        self._write(policy)
        self._daemon.launch([*self.command, *self._arguments], distribution.environment())

    def start(self, policy: str) -> None:
        """Return when every watch of it has listed and the policy is in force; `launch` may have come before.

        Raises SchedulerDiedError with its last words, PolicyRefusedError.
        """
        if not self._daemon.launched:
            self.launch(policy)
        for attempt in self._until(timeouts.READY, pause=0.02):
            with attempt:
                self._ready()
        self.use_policy(policy)

    def stop(self) -> None:
        """End it, gently first. The second call does nothing, nor does one for another's process."""
        self._daemon.stop()
        self._address = ""
        self._http.clear()

    def keep_recording(self, since: float, to: Path) -> bool:
        """Cut the recording of the run to what was decided since, for `explain` and `replay`."""
        segments = distribution.load("scheduler.recording.segments")
        try:
            return bool(segments.cut(self._recording, since, to))
        except (segments.RecordError, OSError):  # of another program that takes our command line, or a full disk
            return False

    def handle(self) -> dict[str, Any]:
        """What another process needs to reach it."""
        return {"pid": self.pid, "address": self._address}

    def attach(self, handle: dict[str, Any]) -> None:
        """Be the face of a scheduler that another process has started in the same folder."""
        self._daemon.adopt(handle["pid"])
        self._address = handle["address"]

    @property
    def pid(self) -> int:
        """Its process id; 0 when it does not run."""
        return self._daemon.pid

    def check(self) -> None:
        """Raise SchedulerDiedError unless it runs."""
        self._daemon.check()

    def use_policy(self, text: str) -> str:
        """Put a policy into force; its sha256. Usually within 0.2 s.

        Raises PolicyRefusedError with the scheduler's own message, SchedulerDiedError.
        """
        self._write(text)
        wanted = hashlib.sha256(text.encode()).hexdigest()
        for attempt in self._until(timeouts.POLICY, pause=0.01):
            with attempt:
                require_in_force(self.policy(), wanted)
        return wanted

    def policy(self) -> dict[str, Any]:
        """What it says about the policy in force: path, sha256, error."""
        answer: dict[str, Any] = msgspec.json.decode(self._get("/policy"))
        return answer

    def metrics(self) -> str:
        """Its metrics page."""
        return self._get("/metrics").decode()

    def _ready(self) -> None:
        self.check()
        if not self._address:
            first = self._daemon.text().partition("listening on ")[2].partition("\n")
            if not first[1]:
                raise NotYetError(f"the scheduler has not said where it listens\n{self._daemon.last_words()}")
            self._address = first[0].strip()
        self._get("/readyz")

    def _get(self, path: str) -> bytes:
        self.check()
        try:
            response = self._http.request("GET", f"http://{self._address}{path}", timeout=5.0)
        except urllib3.exceptions.HTTPError as problem:
            raise NotYetError(
                f"the scheduler does not answer {path}: {problem}\n{self._daemon.last_words()}"
            ) from problem
        if response.status != 200:
            raise NotYetError(f"{path} says {response.status}: {response.data.decode(errors='replace')[:500]}")
        return response.data

    def _until(self, seconds: float, pause: float) -> Retrying:
        return patiently(seconds * self._scale, pause)

    def _write(self, text: str) -> None:
        """In one piece: the scheduler must never read half a file."""
        draft = self.policy_file.with_suffix(".draft")
        draft.write_text(text, "utf-8")
        draft.replace(self.policy_file)

    def last_lines(self, count: int) -> Sequence[str]:
        """The end of its log."""
        return self._daemon.last_lines(count)


def readable(line: str) -> str:
    """A line of the log for people: level, message, and what was raised in the end. Other text stays as it is."""
    try:
        entry = msgspec.json.decode(line)
        said = str(entry.get("message") or entry.get("event") or "")
        raised = "".join(f"; {it['exc_type']}: {it['exc_value']}" for it in _innermost(entry.get("exception") or ()))
    except (msgspec.DecodeError, AttributeError, KeyError, TypeError):
        return line
    return f"{entry.get('level', 'info')}: {said}{raised}"


def _innermost(raised: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The exceptions of a structured traceback that groups and causes come down to."""
    for it in raised[:1]:
        groups = it.get("exceptions") or ()
        if not groups:
            yield it
        for group in groups:
            yield from _innermost(group)
