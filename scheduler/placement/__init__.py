"""Choose nodes for tasks: free room, the constraints of the pod's spec, and scores."""

from __future__ import annotations

from .engine import Placement

__all__ = ["Placement"]
