"""KAI Scheduler as one of the schedulers under test: adapter, queues and processes."""

from .adapter import Kai

__all__ = ["Kai"]
