"""Our own scheduler inside a simulated cluster, behind the interface of all schedulers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..api.errors import PolicyRefusedError
from .process import cut_recording

if TYPE_CHECKING:
    from ..clusters.simulated import VirtualCluster


class VirtualScheduler:
    """A scheduler that runs in virtual time."""

    def __init__(self, virtual: VirtualCluster, recording: Path) -> None:
        self._virtual, self._recording = virtual, recording
        self._policy = ""

    def launch(self, policy: str) -> None:
        """Put the policy into force; the scheduler runs already."""
        self.use_policy(policy)

    def start(self, policy: str) -> None:
        """Put the policy into force, and let the scheduler list all objects (one second of virtual time)."""
        self.use_policy(policy)
        self._virtual.advance(1.0)

    def stop(self) -> None:
        """Do nothing: the scheduler ends with its cluster."""

    def handle(self) -> dict[str, Any]:
        """Return nothing: no other process can reach the scheduler."""
        return {}

    def attach(self, handle: dict[str, Any]) -> None:
        """Do nothing: no other process can reach the scheduler."""

    def check(self) -> None:
        """Do nothing: if the scheduler dies, the current wait raises its error."""

    def use_policy(self, text: str) -> str:
        """Put a policy into force; return its sha256, or "" if it is in force already. Raises PolicyRefusedError."""
        if text == self._policy:
            return ""
        try:
            found = self._virtual.use_policy(text)
        except ValueError as refused:
            raise PolicyRefusedError(f"the scheduler refused the policy: {refused}", str(refused)) from None
        self._policy = text
        return found

    def keep_recording(self, since: float, to: Path) -> bool:
        """Copy the cycles since `since` from the run's recording to `to`; return whether there are any."""
        return cut_recording(self._recording, since, to)

    def last_lines(self, count: int) -> Sequence[str]:
        """Return nothing: the scheduler has no log of its own."""
        del count
        return ()
