"""Choose nodes for tasks: free room, the constraints of the pod's spec, and scores.

`Placement` (`engine`) answers for one cycle on which nodes a task may run and which is best (`ranking`). For a whole
job, `domain_choice` chooses domains, and `empty_nodes` decides whether the job could ever run. The other modules are
indices, and constraints that the engine or a plugin checks.
"""

from __future__ import annotations

from .engine import Placement

__all__ = ["Placement"]
