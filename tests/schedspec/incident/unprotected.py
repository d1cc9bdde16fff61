"""A plugin of pytest that plants a defect: nothing protects a pod before the plugins vote."""

from __future__ import annotations

from typing import Any

from scheduler.preemption.request import PreemptionRequest


def protection(self: Any, preemptor: Any, task: Any) -> None:
    """Protect nothing."""
    del self, preemptor, task


def pytest_configure() -> None:
    """Plant it where this module is a plugin."""
    PreemptionRequest.protection = protection  # type: ignore[method-assign]
