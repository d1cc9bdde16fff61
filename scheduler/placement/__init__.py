"""Where a task may go and where best: room, the constraints of its spec, scores."""

from __future__ import annotations

from .engine import Placement

__all__ = ["Placement"]
