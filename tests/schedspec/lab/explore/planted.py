"""A pytest plugin that plants a defect: queues accept work beyond their capability."""

from __future__ import annotations

from typing import Any

from schedspec.scheduler.plugins.queue.plugin import QueuePlugin


def allocatable(self: Any, queue: Any, task: Any) -> bool:
    """Permit everything."""
    del self, queue, task
    return True


def pytest_configure() -> None:
    """Plant the defect."""
    QueuePlugin.allocatable = allocatable  # type: ignore[method-assign]
