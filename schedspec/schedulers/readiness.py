"""Wait until the scheduler under test is ready, as a process or in the cluster."""

from __future__ import annotations

from typing import Any

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from ..api.errors import HarnessError, PolicyRefusedError


class NotReadyError(HarnessError):
    """The scheduler is not ready yet; `retrying` checks again."""


def retrying(seconds: float, pause: float) -> Retrying:
    """Return a retrier: every `pause` seconds it retries on NotReadyError; after `seconds` it raises the last one."""
    return Retrying(
        retry=retry_if_exception_type(NotReadyError),
        stop=stop_after_delay(seconds),
        wait=wait_fixed(pause),
        reraise=True,
    )


def require_in_force(report: dict[str, Any], wanted: str) -> None:
    """Check the scheduler's page `/policy`: the policy with the sha256 `wanted` must be in force.

    Raises:
        PolicyRefusedError: the scheduler rejected the policy; with its message.
        NotReadyError: another policy is in force.
    """
    if report["sha256"] != wanted:
        if report.get("error") and report.get("refused_sha256") == wanted:
            raise PolicyRefusedError(f"the scheduler refused the policy:\n  {report['error']}", str(report["error"]))
        raise NotReadyError(f"the scheduler still reports the policy {report['sha256']}, not {wanted}")
