"""KAI Scheduler as one of the schedulers under test: its adapter."""

from .adapter import Kai

__all__ = ["Kai"]
