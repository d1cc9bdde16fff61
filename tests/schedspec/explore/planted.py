"""A plugin of pytest that plants a defect: queues take work beyond their capability."""

from __future__ import annotations

from typing import Any

from scheduler.plugins.queue.plugin import QueuePlugin


def allocatable(self: Any, queue: Any, task: Any) -> bool:
    """Permit everything."""
    del self, queue, task
    return True


def pytest_configure() -> None:
    """Plant it where this module is a plugin."""
    QueuePlugin.allocatable = allocatable  # type: ignore[method-assign]
