"""What it means that the scheduler under test is ready for a scenario, wherever it runs."""

from __future__ import annotations

from typing import Any

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from ..api.errors import HarnessError, PolicyRefusedError


class NotYetError(HarnessError):
    """Worth another look."""


def patiently(seconds: float, pause: float) -> Retrying:
    """Attempts, `pause` apart, for as long as they raise NotYetError; the last one's is raised after `seconds`."""
    return Retrying(
        retry=retry_if_exception_type(NotYetError),
        stop=stop_after_delay(seconds),
        wait=wait_fixed(pause),
        reraise=True,
    )


def require_in_force(said: dict[str, Any], wanted: str) -> None:
    """Judge what a scheduler says on its page `/policy`: the policy with the sha256 `wanted` must be in force.

    Raises PolicyRefusedError with the scheduler's own message, NotYetError.
    """
    if said["sha256"] != wanted:
        if said.get("error") and said.get("refused_sha256") == wanted:
            raise PolicyRefusedError(f"the scheduler refused the policy:\n  {said['error']}", str(said["error"]))
        raise NotYetError(f"the scheduler still reports the policy {said['sha256']}, not {wanted}")
