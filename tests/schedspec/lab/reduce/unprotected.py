"""A pytest plugin that plants a defect: no pod is protected before the plugins vote."""

from __future__ import annotations

from typing import Any

from schedspec.scheduler.preemption.request import PreemptionRequest


def protection(self: Any, preemptor: Any, task: Any) -> None:
    """Protect nothing."""
    del self, preemptor, task


def pytest_configure() -> None:
    """Plant the defect."""
    PreemptionRequest.protection = protection  # type: ignore[method-assign]
